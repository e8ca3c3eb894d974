# cmake -DSOURCES_FILE=... -DOUTPUT=... -P kernel_index.cmake
# Writes the index of all fast kernels: one pointer for each line that starts with KERNEL(symbol).
# As op_index.cmake does for operators.
file(STRINGS ${SOURCES_FILE} sources)
set(names "")
foreach(source IN LISTS sources)
  file(STRINGS ${source} lines REGEX "^KERNEL\\(")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^KERNEL\\(([A-Za-z0-9_]+)\\).*" "\\1" name "${line}")
    list(APPEND names ${name})
  endforeach()
endforeach()
list(SORT names)

set(declarations "")
set(rows "")
foreach(name IN LISTS names)
  string(APPEND declarations "extern const KernelRow kernel_${name};\n")
  string(APPEND rows "    &kernel_${name},\n")
endforeach()
set(text "// Made by cmake/kernel_index.cmake.
#include \"runtime/kernels/kernel.h\"

namespace tombolo {
${declarations}
static const KernelRow* const kRows[] = {
${rows}};
const std::span<const KernelRow* const> kKernelIndex(kRows);

}  // namespace tombolo
")

set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
