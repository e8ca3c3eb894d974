#pragma once

// The messages of onnx.proto (IR 14) as a table: what turns wire bytes into JSON and back without
// knowing the IR. tests/unit/onnx compares it with nothing; tools/oracle_roundtrip.py does, with
// the official package.

#include <cstdint>
#include <span>
#include <string_view>

namespace tombolo::onnx {

enum class FieldKind : uint8_t {
  kInt32,
  kInt64,
  kUInt64,
  kFloat,
  kDouble,
  kString,
  kBytes,
  kEnum,
  kMessage,
};
enum class Repeat : uint8_t { kOne, kMany, kPacked };
enum class MessageId : uint8_t {
  kModel,
  kAttribute,
  kValueInfo,
  kNode,
  kIntIntListEntry,
  kNodeDeviceConfiguration,
  kShardingSpec,
  kShardedDim,
  kSimpleShardedDim,
  kTrainingInfo,
  kDeviceConfiguration,
  kStringStringEntry,
  kTensorAnnotation,
  kGraph,
  kTensor,
  kTensorSegment,
  kSparseTensor,
  kTensorShape,
  kTensorShapeDimension,
  kType,
  kTypeTensor,
  kTypeSequence,
  kTypeMap,
  kTypeOptional,
  kTypeSparseTensor,
  kTypeOpaque,
  kOperatorSetId,
  kFunction,
};

struct FieldSchema {
  std::string_view name;  ///< as in onnx.proto: snake_case
  uint32_t number;
  FieldKind kind;
  Repeat repeat;
  MessageId message = MessageId::kModel;           ///< of a kMessage
  std::span<const std::string_view> enum_names{};  ///< of a kEnum, by number
};
struct MessageSchema {
  std::string_view name;
  std::span<const FieldSchema> fields;
};

const MessageSchema& schema_of(MessageId message);
/// Null when the message has no field of that number.
const FieldSchema* find_field(const MessageSchema& message, uint32_t number);
/// By either of its names: op_type or opType. Null when there is none.
const FieldSchema* find_field(const MessageSchema& message, std::string_view name);

}  // namespace tombolo::onnx
