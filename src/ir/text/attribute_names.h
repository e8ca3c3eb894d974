#pragma once

// The names of attribute types in ONNX text, indexed by AttributeProto.AttributeType.

#include <string_view>

#include "ir/attribute.h"

namespace tombolo::text {

inline constexpr std::string_view kAttributeTypeNames[] = {
    "undefined",      "float",      "int",        "string",  "tensor", "graph",
    "floats",         "ints",       "strings",    "tensors", "graphs", "sparse_tensor",
    "sparse_tensors", "type_proto", "type_protos"};

/// "undefined" for a number that is none of ONNX's.
inline std::string_view attribute_type_name(AttrType type) {
  const auto index = static_cast<size_t>(type);
  return kAttributeTypeNames[index < std::size(kAttributeTypeNames) ? index : 0];
}

}  // namespace tombolo::text
