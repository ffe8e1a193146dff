# What the program prints of itself, as files where a system looks for them: the manual page, and
# completion for bash and zsh. The built program makes them, so a cross build has none.
if(NOT CMAKE_CROSSCOMPILING)
  function(printed_by_moonmq file directory)
    add_custom_command(
      OUTPUT ${CMAKE_BINARY_DIR}/${file}
      COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 $<TARGET_FILE:moonmq> ${ARGN}
              > ${CMAKE_BINARY_DIR}/${file}
      DEPENDS moonmq
      VERBATIM)
    set_property(GLOBAL APPEND PROPERTY MOONMQ_PRINTED ${CMAKE_BINARY_DIR}/${file})
    install(FILES ${CMAKE_BINARY_DIR}/${file} DESTINATION ${directory} COMPONENT broker)
  endfunction()
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/completions)
  printed_by_moonmq(moonmq.1 ${CMAKE_INSTALL_MANDIR}/man1 help --manual)
  printed_by_moonmq(completions/moonmq ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
                    completion bash)
  printed_by_moonmq(completions/_moonmq ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
                    completion zsh)
  get_property(printed GLOBAL PROPERTY MOONMQ_PRINTED)
  add_custom_target(moonmq_printed ALL DEPENDS ${printed})
endif()
