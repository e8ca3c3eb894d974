#include "onnx/schema.h"

namespace tombolo::onnx {

namespace {

/// Whether `name` is `snake` in lowerCamelCase.
bool is_camel_of(std::string_view name, std::string_view snake) {
  size_t at = 0;
  bool upper = false;
  for (const char c : snake) {
    if (c == '_') {
      upper = true;
      continue;
    }
    const char want = upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    upper = false;
    if (at == name.size() || name[at++] != want) return false;
  }
  return at == name.size();
}

constexpr std::string_view kAttributeTypeNames[] = {
    "UNDEFINED",      "FLOAT",      "INT",        "STRING",  "TENSOR", "GRAPH",
    "FLOATS",         "INTS",       "STRINGS",    "TENSORS", "GRAPHS", "SPARSE_TENSOR",
    "SPARSE_TENSORS", "TYPE_PROTO", "TYPE_PROTOS"};
constexpr std::string_view kDataLocationNames[] = {"DEFAULT", "EXTERNAL"};

constexpr FieldSchema kModelFields[] = {
    {"ir_version", 1, FieldKind::kInt64, Repeat::kOne},
    {"producer_name", 2, FieldKind::kString, Repeat::kOne},
    {"producer_version", 3, FieldKind::kString, Repeat::kOne},
    {"domain", 4, FieldKind::kString, Repeat::kOne},
    {"model_version", 5, FieldKind::kInt64, Repeat::kOne},
    {"doc_string", 6, FieldKind::kString, Repeat::kOne},
    {"graph", 7, FieldKind::kMessage, Repeat::kOne, MessageId::kGraph},
    {"opset_import", 8, FieldKind::kMessage, Repeat::kMany, MessageId::kOperatorSetId},
    {"metadata_props", 14, FieldKind::kMessage, Repeat::kMany, MessageId::kStringStringEntry},
    {"training_info", 20, FieldKind::kMessage, Repeat::kMany, MessageId::kTrainingInfo},
    {"functions", 25, FieldKind::kMessage, Repeat::kMany, MessageId::kFunction},
    {"configuration", 26, FieldKind::kMessage, Repeat::kMany, MessageId::kDeviceConfiguration},
};
constexpr FieldSchema kAttributeFields[] = {
    {"name", 1, FieldKind::kString, Repeat::kOne},
    {"f", 2, FieldKind::kFloat, Repeat::kOne},
    {"i", 3, FieldKind::kInt64, Repeat::kOne},
    {"s", 4, FieldKind::kBytes, Repeat::kOne},
    {"t", 5, FieldKind::kMessage, Repeat::kOne, MessageId::kTensor},
    {"g", 6, FieldKind::kMessage, Repeat::kOne, MessageId::kGraph},
    {"floats", 7, FieldKind::kFloat, Repeat::kMany},
    {"ints", 8, FieldKind::kInt64, Repeat::kMany},
    {"strings", 9, FieldKind::kBytes, Repeat::kMany},
    {"tensors", 10, FieldKind::kMessage, Repeat::kMany, MessageId::kTensor},
    {"graphs", 11, FieldKind::kMessage, Repeat::kMany, MessageId::kGraph},
    {"doc_string", 13, FieldKind::kString, Repeat::kOne},
    {"tp", 14, FieldKind::kMessage, Repeat::kOne, MessageId::kType},
    {"type_protos", 15, FieldKind::kMessage, Repeat::kMany, MessageId::kType},
    {"type", 20, FieldKind::kEnum, Repeat::kOne, MessageId::kModel, kAttributeTypeNames},
    {"ref_attr_name", 21, FieldKind::kString, Repeat::kOne},
    {"sparse_tensor", 22, FieldKind::kMessage, Repeat::kOne, MessageId::kSparseTensor},
    {"sparse_tensors", 23, FieldKind::kMessage, Repeat::kMany, MessageId::kSparseTensor},
};
constexpr FieldSchema kValueInfoFields[] = {
    {"name", 1, FieldKind::kString, Repeat::kOne},
    {"type", 2, FieldKind::kMessage, Repeat::kOne, MessageId::kType},
    {"doc_string", 3, FieldKind::kString, Repeat::kOne},
    {"metadata_props", 4, FieldKind::kMessage, Repeat::kMany, MessageId::kStringStringEntry},
};
constexpr FieldSchema kNodeFields[] = {
    {"input", 1, FieldKind::kString, Repeat::kMany},
    {"output", 2, FieldKind::kString, Repeat::kMany},
    {"name", 3, FieldKind::kString, Repeat::kOne},
    {"op_type", 4, FieldKind::kString, Repeat::kOne},
    {"attribute", 5, FieldKind::kMessage, Repeat::kMany, MessageId::kAttribute},
    {"doc_string", 6, FieldKind::kString, Repeat::kOne},
    {"domain", 7, FieldKind::kString, Repeat::kOne},
    {"overload", 8, FieldKind::kString, Repeat::kOne},
    {"metadata_props", 9, FieldKind::kMessage, Repeat::kMany, MessageId::kStringStringEntry},
    {"device_configurations", 10, FieldKind::kMessage, Repeat::kMany,
     MessageId::kNodeDeviceConfiguration},
};
constexpr FieldSchema kIntIntListEntryFields[] = {
    {"key", 1, FieldKind::kInt64, Repeat::kOne},
    {"value", 2, FieldKind::kInt64, Repeat::kMany},
};
constexpr FieldSchema kNodeDeviceConfigurationFields[] = {
    {"configuration_id", 1, FieldKind::kString, Repeat::kOne},
    {"sharding_spec", 2, FieldKind::kMessage, Repeat::kMany, MessageId::kShardingSpec},
    {"pipeline_stage", 3, FieldKind::kInt32, Repeat::kOne},
};
constexpr FieldSchema kShardingSpecFields[] = {
    {"tensor_name", 1, FieldKind::kString, Repeat::kOne},
    {"device", 2, FieldKind::kInt64, Repeat::kMany},
    {"index_to_device_group_map", 3, FieldKind::kMessage, Repeat::kMany,
     MessageId::kIntIntListEntry},
    {"sharded_dim", 4, FieldKind::kMessage, Repeat::kMany, MessageId::kShardedDim},
};
constexpr FieldSchema kShardedDimFields[] = {
    {"axis", 1, FieldKind::kInt64, Repeat::kOne},
    {"simple_sharding", 2, FieldKind::kMessage, Repeat::kMany, MessageId::kSimpleShardedDim},
};
constexpr FieldSchema kSimpleShardedDimFields[] = {
    {"dim_value", 1, FieldKind::kInt64, Repeat::kOne},
    {"dim_param", 2, FieldKind::kString, Repeat::kOne},
    {"num_shards", 3, FieldKind::kInt64, Repeat::kOne},
};
constexpr FieldSchema kTrainingInfoFields[] = {
    {"initialization", 1, FieldKind::kMessage, Repeat::kOne, MessageId::kGraph},
    {"algorithm", 2, FieldKind::kMessage, Repeat::kOne, MessageId::kGraph},
    {"initialization_binding", 3, FieldKind::kMessage, Repeat::kMany,
     MessageId::kStringStringEntry},
    {"update_binding", 4, FieldKind::kMessage, Repeat::kMany, MessageId::kStringStringEntry},
};
constexpr FieldSchema kDeviceConfigurationFields[] = {
    {"name", 1, FieldKind::kString, Repeat::kOne},
    {"num_devices", 2, FieldKind::kInt32, Repeat::kOne},
    {"device", 3, FieldKind::kString, Repeat::kMany},
};
constexpr FieldSchema kStringStringEntryFields[] = {
    {"key", 1, FieldKind::kString, Repeat::kOne},
    {"value", 2, FieldKind::kString, Repeat::kOne},
};
constexpr FieldSchema kTensorAnnotationFields[] = {
    {"tensor_name", 1, FieldKind::kString, Repeat::kOne},
    {"quant_parameter_tensor_names", 2, FieldKind::kMessage, Repeat::kMany,
     MessageId::kStringStringEntry},
};
constexpr FieldSchema kGraphFields[] = {
    {"node", 1, FieldKind::kMessage, Repeat::kMany, MessageId::kNode},
    {"name", 2, FieldKind::kString, Repeat::kOne},
    {"initializer", 5, FieldKind::kMessage, Repeat::kMany, MessageId::kTensor},
    {"doc_string", 10, FieldKind::kString, Repeat::kOne},
    {"input", 11, FieldKind::kMessage, Repeat::kMany, MessageId::kValueInfo},
    {"output", 12, FieldKind::kMessage, Repeat::kMany, MessageId::kValueInfo},
    {"value_info", 13, FieldKind::kMessage, Repeat::kMany, MessageId::kValueInfo},
    {"quantization_annotation", 14, FieldKind::kMessage, Repeat::kMany,
     MessageId::kTensorAnnotation},
    {"sparse_initializer", 15, FieldKind::kMessage, Repeat::kMany, MessageId::kSparseTensor},
    {"metadata_props", 16, FieldKind::kMessage, Repeat::kMany, MessageId::kStringStringEntry},
};
constexpr FieldSchema kTensorFields[] = {
    {"dims", 1, FieldKind::kInt64, Repeat::kMany},
    {"data_type", 2, FieldKind::kInt32, Repeat::kOne},
    {"segment", 3, FieldKind::kMessage, Repeat::kOne, MessageId::kTensorSegment},
    {"float_data", 4, FieldKind::kFloat, Repeat::kPacked},
    {"int32_data", 5, FieldKind::kInt32, Repeat::kPacked},
    {"string_data", 6, FieldKind::kBytes, Repeat::kMany},
    {"int64_data", 7, FieldKind::kInt64, Repeat::kPacked},
    {"name", 8, FieldKind::kString, Repeat::kOne},
    {"raw_data", 9, FieldKind::kBytes, Repeat::kOne},
    {"double_data", 10, FieldKind::kDouble, Repeat::kPacked},
    {"uint64_data", 11, FieldKind::kUInt64, Repeat::kPacked},
    {"doc_string", 12, FieldKind::kString, Repeat::kOne},
    {"external_data", 13, FieldKind::kMessage, Repeat::kMany, MessageId::kStringStringEntry},
    {"data_location", 14, FieldKind::kEnum, Repeat::kOne, MessageId::kModel, kDataLocationNames},
    {"metadata_props", 16, FieldKind::kMessage, Repeat::kMany, MessageId::kStringStringEntry},
};
constexpr FieldSchema kTensorSegmentFields[] = {
    {"begin", 1, FieldKind::kInt64, Repeat::kOne},
    {"end", 2, FieldKind::kInt64, Repeat::kOne},
};
constexpr FieldSchema kSparseTensorFields[] = {
    {"values", 1, FieldKind::kMessage, Repeat::kOne, MessageId::kTensor},
    {"indices", 2, FieldKind::kMessage, Repeat::kOne, MessageId::kTensor},
    {"dims", 3, FieldKind::kInt64, Repeat::kMany},
};
constexpr FieldSchema kTensorShapeFields[] = {
    {"dim", 1, FieldKind::kMessage, Repeat::kMany, MessageId::kTensorShapeDimension},
};
constexpr FieldSchema kTensorShapeDimensionFields[] = {
    {"dim_value", 1, FieldKind::kInt64, Repeat::kOne},
    {"dim_param", 2, FieldKind::kString, Repeat::kOne},
    {"denotation", 3, FieldKind::kString, Repeat::kOne},
};
constexpr FieldSchema kTypeFields[] = {
    {"tensor_type", 1, FieldKind::kMessage, Repeat::kOne, MessageId::kTypeTensor},
    {"sequence_type", 4, FieldKind::kMessage, Repeat::kOne, MessageId::kTypeSequence},
    {"map_type", 5, FieldKind::kMessage, Repeat::kOne, MessageId::kTypeMap},
    {"denotation", 6, FieldKind::kString, Repeat::kOne},
    {"opaque_type", 7, FieldKind::kMessage, Repeat::kOne, MessageId::kTypeOpaque},
    {"sparse_tensor_type", 8, FieldKind::kMessage, Repeat::kOne, MessageId::kTypeSparseTensor},
    {"optional_type", 9, FieldKind::kMessage, Repeat::kOne, MessageId::kTypeOptional},
};
constexpr FieldSchema kTypeTensorFields[] = {
    {"elem_type", 1, FieldKind::kInt32, Repeat::kOne},
    {"shape", 2, FieldKind::kMessage, Repeat::kOne, MessageId::kTensorShape},
};
constexpr FieldSchema kTypeSequenceFields[] = {
    {"elem_type", 1, FieldKind::kMessage, Repeat::kOne, MessageId::kType},
};
constexpr FieldSchema kTypeMapFields[] = {
    {"key_type", 1, FieldKind::kInt32, Repeat::kOne},
    {"value_type", 2, FieldKind::kMessage, Repeat::kOne, MessageId::kType},
};
constexpr FieldSchema kTypeOptionalFields[] = {
    {"elem_type", 1, FieldKind::kMessage, Repeat::kOne, MessageId::kType},
};
constexpr FieldSchema kTypeSparseTensorFields[] = {
    {"elem_type", 1, FieldKind::kInt32, Repeat::kOne},
    {"shape", 2, FieldKind::kMessage, Repeat::kOne, MessageId::kTensorShape},
};
constexpr FieldSchema kTypeOpaqueFields[] = {
    {"domain", 1, FieldKind::kString, Repeat::kOne},
    {"name", 2, FieldKind::kString, Repeat::kOne},
};
constexpr FieldSchema kOperatorSetIdFields[] = {
    {"domain", 1, FieldKind::kString, Repeat::kOne},
    {"version", 2, FieldKind::kInt64, Repeat::kOne},
};
constexpr FieldSchema kFunctionFields[] = {
    {"name", 1, FieldKind::kString, Repeat::kOne},
    {"input", 4, FieldKind::kString, Repeat::kMany},
    {"output", 5, FieldKind::kString, Repeat::kMany},
    {"attribute", 6, FieldKind::kString, Repeat::kMany},
    {"node", 7, FieldKind::kMessage, Repeat::kMany, MessageId::kNode},
    {"doc_string", 8, FieldKind::kString, Repeat::kOne},
    {"opset_import", 9, FieldKind::kMessage, Repeat::kMany, MessageId::kOperatorSetId},
    {"domain", 10, FieldKind::kString, Repeat::kOne},
    {"attribute_proto", 11, FieldKind::kMessage, Repeat::kMany, MessageId::kAttribute},
    {"value_info", 12, FieldKind::kMessage, Repeat::kMany, MessageId::kValueInfo},
    {"overload", 13, FieldKind::kString, Repeat::kOne},
    {"metadata_props", 14, FieldKind::kMessage, Repeat::kMany, MessageId::kStringStringEntry},
};

/// By MessageId.
constexpr MessageSchema kMessages[] = {
    {"ModelProto", kModelFields},
    {"AttributeProto", kAttributeFields},
    {"ValueInfoProto", kValueInfoFields},
    {"NodeProto", kNodeFields},
    {"IntIntListEntryProto", kIntIntListEntryFields},
    {"NodeDeviceConfigurationProto", kNodeDeviceConfigurationFields},
    {"ShardingSpecProto", kShardingSpecFields},
    {"ShardedDimProto", kShardedDimFields},
    {"SimpleShardedDimProto", kSimpleShardedDimFields},
    {"TrainingInfoProto", kTrainingInfoFields},
    {"DeviceConfigurationProto", kDeviceConfigurationFields},
    {"StringStringEntryProto", kStringStringEntryFields},
    {"TensorAnnotation", kTensorAnnotationFields},
    {"GraphProto", kGraphFields},
    {"TensorProto", kTensorFields},
    {"TensorProto.Segment", kTensorSegmentFields},
    {"SparseTensorProto", kSparseTensorFields},
    {"TensorShapeProto", kTensorShapeFields},
    {"TensorShapeProto.Dimension", kTensorShapeDimensionFields},
    {"TypeProto", kTypeFields},
    {"TypeProto.Tensor", kTypeTensorFields},
    {"TypeProto.Sequence", kTypeSequenceFields},
    {"TypeProto.Map", kTypeMapFields},
    {"TypeProto.Optional", kTypeOptionalFields},
    {"TypeProto.SparseTensor", kTypeSparseTensorFields},
    {"TypeProto.Opaque", kTypeOpaqueFields},
    {"OperatorSetIdProto", kOperatorSetIdFields},
    {"FunctionProto", kFunctionFields},
};

}  // namespace

const MessageSchema& schema_of(MessageId message) {
  return kMessages[static_cast<size_t>(message)];
}

const FieldSchema* find_field(const MessageSchema& message, uint32_t number) {
  for (const FieldSchema& field : message.fields)
    if (field.number == number) return &field;
  return nullptr;
}

const FieldSchema* find_field(const MessageSchema& message, std::string_view name) {
  for (const FieldSchema& field : message.fields)
    if (!name.empty() && field.name.front() == name.front() &&
        (field.name == name || is_camel_of(name, field.name)))
      return &field;
  return nullptr;
}

}  // namespace tombolo::onnx
