# Flags that every target of the project shares. Floating-point contraction is off so that a
# result does not depend on whether the compiler found a multiply next to an add.
add_library(tombolo_flags INTERFACE)
# A warning is an error with the compilers that the project is developed with; another compiler's new
# warning must not keep a user from building.
if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.")
    OR (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^14\\."))
  set(known_compiler ON)
else()
  set(known_compiler OFF)
endif()
option(TOMBOLO_WERROR "Treat warnings as errors" ${known_compiler})
target_compile_options(tombolo_flags INTERFACE
  -Wall -Wextra -Wpedantic $<$<BOOL:${TOMBOLO_WERROR}>:-Werror> -Wshadow=local -Wno-missing-field-initializers
  -ffp-contract=off -fno-math-errno -fvisibility=hidden
  # Paths in messages and debug info are relative, so that ccache hits across checkouts.
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # gcc collects its garbage from some 100 MiB on, a tenth of the time of a file here; of half a GiB none reaches
  # much more than that in all.
  target_compile_options(tombolo_flags INTERFACE --param=ggc-min-heapsize=524288)
endif()
# For targets that compute little: see their use.
set(TOMBOLO_COLD_CODE $<$<CONFIG:Release>:-O1>)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # clang takes no "=local"; its plain -Wshadow is the stricter one, so it is left to gcc.
  target_compile_options(tombolo_flags INTERFACE -Wno-unknown-warning-option -Wno-shadow)
endif()
if(TOMBOLO_SANITIZE OR TOMBOLO_FUZZ)
  target_compile_options(tombolo_flags INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>) # behind the checks gcc 12 no longer sees what is set
  target_link_options(tombolo_flags INTERFACE -fsanitize=address,undefined)
endif()
if(TOMBOLO_SANITIZE_THREADS)
  # gcc warns that it does not see through atomic_thread_fence; the code has to be read for these.
  target_compile_options(tombolo_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer -Wno-tsan
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(tombolo_flags INTERFACE -fsanitize=thread)
endif()
if(TOMBOLO_FUZZ)
  target_compile_options(tombolo_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
