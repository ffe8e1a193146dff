# What the program prints of itself, as files where a system looks for them: the manual page, and
# completion for bash and zsh. They are made as soon as it is linked, so that they are there whenever
# it is. The program runs for that, so a cross build has none, nor one for fuzzers or threads only.
if(NOT CMAKE_CROSSCOMPILING AND NOT MOONMQ_FUZZ AND NOT "thread" IN_LIST MOONMQ_SANITIZE)
  function(printed_by_moonmq file directory)
    add_custom_command(
      TARGET moonmq POST_BUILD
      COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 $<TARGET_FILE:moonmq> ${ARGN}
              > ${CMAKE_BINARY_DIR}/${file}
      BYPRODUCTS ${CMAKE_BINARY_DIR}/${file}
      VERBATIM)
    install(FILES ${CMAKE_BINARY_DIR}/${file} DESTINATION ${directory} COMPONENT broker)
  endfunction()
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/completions)
  printed_by_moonmq(moonmq.1 ${CMAKE_INSTALL_MANDIR}/man1 help --manual)
  printed_by_moonmq(completions/moonmq ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
                    completion bash)
  printed_by_moonmq(completions/_moonmq ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
                    completion zsh)
endif()
