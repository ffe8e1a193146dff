# Kafka message structs and tables, generated from src/kafka/messages/*.txt at build time.
find_package(Python3 3.8 REQUIRED COMPONENTS Interpreter)

set(KAFKA_GENERATED ${CMAKE_BINARY_DIR}/generated)
file(GLOB kafka_descriptions CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/kafka/messages/*.txt)
add_custom_command(
  OUTPUT ${KAFKA_GENERATED}/kafka/messages.h ${KAFKA_GENERATED}/kafka/messages.c
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/kafka_messages.py
          ${KAFKA_GENERATED}/kafka ${kafka_descriptions}
  DEPENDS ${CMAKE_SOURCE_DIR}/tools/kafka_messages.py ${kafka_descriptions}
  COMMENT "Generating the Kafka messages"
  VERBATIM)
target_sources(moonmq_kafka PRIVATE ${KAFKA_GENERATED}/kafka/messages.h
                                    ${KAFKA_GENERATED}/kafka/messages.c)
target_include_directories(moonmq_kafka PUBLIC ${KAFKA_GENERATED})
