# Adds the generated index of operators to tombolo_ops (see index.cmake).
file(GLOB_RECURSE operator_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/ops/*/*.cpp)
set(operator_list ${CMAKE_CURRENT_BINARY_DIR}/operator_sources.txt)
list(JOIN operator_sources "\n" operator_lines)
file(CONFIGURE OUTPUT ${operator_list} CONTENT "${operator_lines}\n" @ONLY)
set(operator_index ${CMAKE_CURRENT_BINARY_DIR}/op_index.cpp)
add_custom_command(
  OUTPUT ${operator_index}
  COMMAND ${CMAKE_COMMAND} -DSOURCES_FILE=${operator_list} -DOUTPUT=${operator_index}
          -DMACRO=OPERATOR -DTYPE=OpDecl -DPREFIX=op -DHEADER=ops/op_index.h -DSPACE=tombolo::ops
          -DINDEX=kOperatorIndex -P ${PROJECT_SOURCE_DIR}/cmake/index.cmake
  DEPENDS ${operator_sources} ${operator_list} ${PROJECT_SOURCE_DIR}/cmake/index.cmake
  COMMENT "Listing operators" VERBATIM)
target_sources(tombolo_ops PRIVATE ${operator_index})
