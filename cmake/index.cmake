# cmake -DSOURCES_FILE=... -DOUTPUT=... -DMACRO=... -DTYPE=... -DPREFIX=... -DHEADER=... -DSPACE=... -DINDEX=... -P index.cmake
# Writes an index: one pointer for each line that starts with MACRO(Name), to the object PREFIX_Name
# of TYPE in the namespace SPACE. The output is touched only when the set of names changes, so that
# work on one of them rebuilds one file.
file(STRINGS ${SOURCES_FILE} sources)
set(names "")
foreach(source IN LISTS sources)
  file(STRINGS ${source} lines REGEX "^${MACRO}\\(")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^${MACRO}\\(([A-Za-z0-9_]+)\\).*" "\\1" name "${line}")
    list(APPEND names ${name})
  endforeach()
endforeach()
list(SORT names)

set(declarations "")
set(rows "")
foreach(name IN LISTS names)
  string(APPEND declarations "extern const ${TYPE} ${PREFIX}_${name};\n")
  string(APPEND rows "    &${SPACE}::${PREFIX}_${name},\n")
endforeach()
set(text "// Made by cmake/index.cmake.
#include \"${HEADER}\"

namespace ${SPACE} {
${declarations}}  // namespace ${SPACE}

namespace tombolo {

static const ${TYPE}* const kRows[] = {
${rows}};
const std::span<const ${TYPE}* const> ${INDEX}(kRows);

}  // namespace tombolo
")

set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
