#include "ir/attr_type.h"

#include <cstddef>
#include <iterator>

namespace tombolo {

std::string_view to_string(AttrType type) {
  constexpr std::string_view names[] = {
      "UNDEFINED",      "FLOAT",      "INT",        "STRING",  "TENSOR", "GRAPH",
      "FLOATS",         "INTS",       "STRINGS",    "TENSORS", "GRAPHS", "SPARSE_TENSOR",
      "SPARSE_TENSORS", "TYPE_PROTO", "TYPE_PROTOS"};
  const auto index = static_cast<size_t>(type);
  return index < std::size(names) ? names[index] : "UNDEFINED";
}

}  // namespace tombolo
