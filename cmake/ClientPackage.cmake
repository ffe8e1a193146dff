# libmoonmq as others use it: a static library, pkg-config, the Lua module, and where they go.
# `cmake --install build/release --component client` installs nothing else.

# One object that shows what include/moonmq.h names, and nothing of the floors beneath: a program
# may have a buffer_init() of its own.
add_custom_command(
  OUTPUT ${CMAKE_BINARY_DIR}/libmoonmq.a
  COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o client_archive.o $<TARGET_OBJECTS:moonmq_client>
          $<TARGET_FILE:moonmq_wire> $<TARGET_FILE:moonmq_base>
  COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=moonmq_* client_archive.o
  COMMAND ${CMAKE_COMMAND} -E rm -f libmoonmq.a
  COMMAND ${CMAKE_AR} rcs libmoonmq.a client_archive.o
  COMMAND ${CMAKE_COMMAND} -E rm -f client_archive.o
  WORKING_DIRECTORY ${CMAKE_BINARY_DIR}
  DEPENDS moonmq_client moonmq_wire moonmq_base $<TARGET_OBJECTS:moonmq_client>
  COMMAND_EXPAND_LISTS VERBATIM)
add_custom_target(moonmq_archive ALL DEPENDS ${CMAKE_BINARY_DIR}/libmoonmq.a)

file(RELATIVE_PATH MOONMQ_PREFIX_FROM_PC /x/${CMAKE_INSTALL_LIBDIR}/pkgconfig /x)
configure_file(cmake/moonmq.pc.in moonmq.pc @ONLY)
install(TARGETS moonmq_shared LIBRARY COMPONENT client)
install(FILES ${CMAKE_BINARY_DIR}/libmoonmq.a DESTINATION ${CMAKE_INSTALL_LIBDIR}
        COMPONENT client)
install(FILES include/moonmq.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT client)
install(FILES ${CMAKE_BINARY_DIR}/moonmq.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT client)

# Its manual page: the header's comments.
add_custom_command(
  OUTPUT ${CMAKE_BINARY_DIR}/libmoonmq.3
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/client_manual.py
          ${CMAKE_SOURCE_DIR}/include/moonmq.h ${PROJECT_VERSION} > ${CMAKE_BINARY_DIR}/libmoonmq.3
  DEPENDS ${CMAKE_SOURCE_DIR}/tools/client_manual.py ${CMAKE_SOURCE_DIR}/include/moonmq.h
  VERBATIM)
add_custom_target(moonmq_manual ALL DEPENDS ${CMAKE_BINARY_DIR}/libmoonmq.3)
add_dependencies(moonmq_shared moonmq_manual)
install(FILES ${CMAKE_BINARY_DIR}/libmoonmq.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3
        COMPONENT client)

# The Lua module holds the library, so that it is one file to copy; any Lua from 5.1 on.
pkg_search_module(LUA lua5.4 lua-5.4 lua54 lua5.3 luajit lua5.1)
if(LUA_FOUND)
  file(GLOB lua_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bindings/lua/*.c)
  add_library(moonmq_lua MODULE ${lua_sources})
  target_include_directories(moonmq_lua PRIVATE ${LUA_INCLUDE_DIRS})
  target_link_libraries(moonmq_lua PRIVATE moonmq_client)
  target_link_options(moonmq_lua PRIVATE -Wl,--exclude-libs,ALL -Wl,--as-needed)
  set_target_properties(moonmq_lua PROPERTIES PREFIX "" OUTPUT_NAME moonmq
                        C_VISIBILITY_PRESET hidden
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lua)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" lua_version "${LUA_VERSION}")
  if(LUA_MODULE_NAME STREQUAL "luajit")
    set(lua_version 5.1)
  endif()
  install(TARGETS moonmq_lua LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/lua/${lua_version}
          COMPONENT lua)
endif()
