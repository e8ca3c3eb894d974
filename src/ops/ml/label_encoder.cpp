#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_label_encoder(InferContext& context) {
  const AttributeReader& attributes = context.attributes;
  InferType type = InferType::tensor(DType::kUndefined);
  if (const SymShape* shape = context.shape(0)) type.shape = *shape;
  if (const Constant* values = attributes.get_tensor("values_tensor"))
    type.elem = values->dtype();
  else if (attributes.has("values_strings"))
    type.elem = DType::kString;
  else if (attributes.has("values_int64s"))
    type.elem = DType::kInt64;
  else if (attributes.has("values_floats"))
    type.elem = DType::kFloat32;
  else if (context.opset < 2 || attributes.has("classes_strings"))
    type.elem = context.elem(0) == DType::kString ? DType::kInt64 : DType::kString;
  context.set_output(0, std::move(type));
  return ok();
}
}  // namespace

OPERATOR(LabelEncoder) = {
    .name = "LabelEncoder",
    .domain = "ai.onnx.ml",
    .doc = "maps each element by a table of keys and values",
    .versions = {1, 2, 4},
    .inputs = {{"X", "T1"}},
    .outputs = {{"Y", "T2"}},
    .attributes =
        {
            {"classes_strings", Attr::kStrings, {.until = 1}},
            {"default_int64", -1},
            {"default_string", "_Unused"},
            {"default_float", -0.0f, {.since = 2}},
            {"keys_floats", Attr::kFloats, {.since = 2}},
            {"keys_int64s", Attr::kInts, {.since = 2}},
            {"keys_strings", Attr::kStrings, {.since = 2}},
            {"values_floats", Attr::kFloats, {.since = 2}},
            {"values_int64s", Attr::kInts, {.since = 2}},
            {"values_strings", Attr::kStrings, {.since = 2}},
            {"default_tensor", Attr::kTensor, {.since = 4}},
            {"keys_tensor", Attr::kTensor, {.since = 4}},
            {"values_tensor", Attr::kTensor, {.since = 4}},
        },
    .types =
        {
            {"T1", {{1, kI64 | kStr}, {2, kF32}, {4, kI16 | kI32 | kF64}}},
            {"T2", {{1, kI64 | kStr}, {2, kF32}, {4, kI16 | kI32 | kF64}}},
        },
    .infer = infer_label_encoder,
};

}  // namespace tombolo::ops
