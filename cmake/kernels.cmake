# Adds the generated index of fast kernels to tombolo_runtime (see index.cmake).
file(GLOB_RECURSE kernel_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/runtime/kernels/*.cpp)
set(kernel_list ${CMAKE_CURRENT_BINARY_DIR}/kernel_sources.txt)
list(JOIN kernel_sources "\n" kernel_lines)
file(CONFIGURE OUTPUT ${kernel_list} CONTENT "${kernel_lines}\n" @ONLY)
set(kernel_index ${CMAKE_CURRENT_BINARY_DIR}/kernel_index.cpp)
add_custom_command(
  OUTPUT ${kernel_index}
  COMMAND ${CMAKE_COMMAND} -DSOURCES_FILE=${kernel_list} -DOUTPUT=${kernel_index}
          -DMACRO=KERNEL -DTYPE=KernelRow -DPREFIX=kernel -DHEADER=runtime/kernels/kernel.h
          -DSPACE=tombolo -DINDEX=kKernelIndex -P ${PROJECT_SOURCE_DIR}/cmake/index.cmake
  DEPENDS ${kernel_sources} ${kernel_list} ${PROJECT_SOURCE_DIR}/cmake/index.cmake
  COMMENT "Listing kernels" VERBATIM)
target_sources(tombolo_runtime PRIVATE ${kernel_index})

# Files that are compiled once for the baseline, unlike those that Highway compiles for each target, hold little but
# headers: several at a time.
set(once "")
foreach(file ${kernel_sources})
  file(STRINGS ${file} targets REGEX "runtime/kernels/targets.h" LIMIT_COUNT 1)
  if(NOT targets)
    list(APPEND once ${file})
  endif()
endforeach()
tombolo_unity(tombolo_runtime 4 ${once})
