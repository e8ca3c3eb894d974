# cmake -DSOURCES_FILE=... -DOUTPUT=... -P op_index.cmake
# Writes the index of all operators: one pointer for each line that starts with OPERATOR(Name).
# The output is touched only when the set of operators changes, so that work on one operator
# rebuilds one file.
file(STRINGS ${SOURCES_FILE} sources)
set(names "")
foreach(source IN LISTS sources)
  file(STRINGS ${source} lines REGEX "^OPERATOR\\(")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^OPERATOR\\(([A-Za-z0-9_]+)\\).*" "\\1" name "${line}")
    list(APPEND names ${name})
  endforeach()
endforeach()
list(SORT names)

set(declarations "")
set(rows "")
foreach(name IN LISTS names)
  string(APPEND declarations "extern const OpDecl op_${name};\n")
  string(APPEND rows "    &op_${name},\n")
endforeach()
set(text "// Made by cmake/op_index.cmake.
#include \"ops/op_index.h\"

namespace tombolo {
namespace ops {
${declarations}}  // namespace ops

static const OpDecl* const kRows[] = {
${rows}};
const std::span<const OpDecl* const> kOperatorIndex(kRows);

}  // namespace tombolo
")
string(REPLACE "    &op_" "    &ops::op_" text "${text}")

set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
