#include "ops/infer_helpers.h"
#include <numeric>

#include "ops/schema.h"
#include "ops/step_context.h"

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

namespace {

/// The position in `classes_strings` was the label, in whichever direction the input asks for.
Status step_classes_to_table(StepContext& step) {
  const Attribute* classes = step.node.attribute("classes_strings");
  const DType dtype = step.dtype(0);
  if (dtype != DType::kString && dtype != DType::kInt64)
    return step.cannot("the type of the input is not known");
  std::vector<Text> strings;
  if (classes != nullptr) strings.assign(classes->strings().begin(), classes->strings().end());
  std::vector<int64_t> numbers(strings.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  const bool to_number = dtype == DType::kString;
  step.node.remove_attribute("classes_strings");
  step.node.set_attribute(
      {to_number ? "keys_strings" : "values_strings", AttrType::kStrings, std::move(strings)});
  step.node.set_ints(to_number ? "values_int64s" : "keys_int64s", numbers);
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
    .up = {{1, 2, step_classes_to_table}},
};

}  // namespace tombolo::ops
