#pragma once

// The kinds of attribute, numbered as AttributeProto.AttributeType of onnx.proto. Apart from
// attribute.h so that operator tables need not see tensors and graphs.

#include <cstdint>
#include <string_view>

namespace tombolo {

enum class AttrType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
  kTensors = 9,
  kGraphs = 10,
  kSparseTensor = 11,
  kSparseTensors = 12,
  kType = 13,
  kTypes = 14,
};

/// "INT", "FLOATS", "TYPE_PROTO": as the official schemas print it
std::string_view to_string(AttrType type);

}  // namespace tombolo
