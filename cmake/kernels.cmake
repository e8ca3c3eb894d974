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
