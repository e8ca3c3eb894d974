# Precompiled headers: the parts of the standard library that nearly every file includes, which cost 0.9 s of
# each file's time without (g++ 12) and 0.1 s with. Nothing of the project is among them: an edit would compile everything anew.
# TOMBOLO_PCH=OFF (the debug preset) compiles without, which finds a missing #include, and lets ccache share
# objects between checkouts.
option(TOMBOLO_PCH "Precompile headers of the standard library" ON)

# tombolo_precompiled(TARGET [AS OTHER] [ALSO HEADER...]): OTHER has the same flags, and its precompiled headers serve both.
function(tombolo_precompiled target)
  if(NOT TOMBOLO_PCH)
    return()
  endif()
  # Out of a precompiled header gcc takes the templates of the standard library for ours, and warns of what it
  # wrongly suspects within std::string. The builds without still have these warnings.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
  cmake_parse_arguments(ARG "" "AS" "ALSO" ${ARGN})
  if(ARG_AS)
    target_precompile_headers(${target} REUSE_FROM ${ARG_AS})
  else()
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <bit> <cmath> <cstdint> <cstring> <functional> <limits>
      <map> <memory> <mutex> <numeric> <optional> <set> <span> <string> <string_view> <tuple> <type_traits>
      <unordered_map> <unordered_set> <utility> <variant> <vector> ${ARG_ALSO})
  endif()
endfunction()
