# make install: the binary, the library with its public headers, a CMake package, a pkg-config file,
# man pages and shell completions (both written by the binary itself).
include(CMakePackageConfigHelpers)

install(TARGETS tombolo_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS tombolo ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tombolo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/THIRD_PARTY_NOTICES
        DESTINATION ${CMAKE_INSTALL_DOCDIR})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/tombolo-config.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/tombolo-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tombolo
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/tombolo-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tombolo-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/tombolo-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/tombolo)
configure_file(${PROJECT_SOURCE_DIR}/cmake/tombolo.pc.in ${CMAKE_CURRENT_BINARY_DIR}/tombolo.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tombolo.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(CODE "
  set(prefix \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
  set(tombolo \"$<TARGET_FILE:tombolo_cli>\")
  file(MAKE_DIRECTORY \"\${prefix}/${CMAKE_INSTALL_MANDIR}/man1\"
       \"\${prefix}/${CMAKE_INSTALL_DATADIR}/bash-completion/completions\"
       \"\${prefix}/${CMAKE_INSTALL_DATADIR}/zsh/site-functions\"
       \"\${prefix}/${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d\")
  execute_process(COMMAND \${tombolo} man --list OUTPUT_VARIABLE verbs OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND \${tombolo} man OUTPUT_FILE \"\${prefix}/${CMAKE_INSTALL_MANDIR}/man1/tombolo.1\")
  string(REPLACE \"\\n\" \";\" verbs \"\${verbs}\")
  foreach(verb IN LISTS verbs)
    execute_process(COMMAND \${tombolo} man \${verb}
      OUTPUT_FILE \"\${prefix}/${CMAKE_INSTALL_MANDIR}/man1/tombolo-\${verb}.1\")
  endforeach()
  execute_process(COMMAND \${tombolo} completion bash
    OUTPUT_FILE \"\${prefix}/${CMAKE_INSTALL_DATADIR}/bash-completion/completions/tombolo\")
  execute_process(COMMAND \${tombolo} completion zsh
    OUTPUT_FILE \"\${prefix}/${CMAKE_INSTALL_DATADIR}/zsh/site-functions/_tombolo\")
  execute_process(COMMAND \${tombolo} completion fish
    OUTPUT_FILE \"\${prefix}/${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d/tombolo.fish\")
")
