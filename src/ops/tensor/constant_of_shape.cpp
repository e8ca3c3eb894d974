#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_constant_of_shape(InferContext& context) {
  InferType type = InferType::tensor(DType::kFloat32);
  const Constant* value = context.attributes.get_tensor("value");
  if (value != nullptr) type.elem = value->dtype();
  const auto shape = elements_or_unknown(context, 0);
  if (shape) {
    for (const SymDim& dim : *shape)
      if (dim.is_value() && dim.value() < 0)
        return context.error("the shape " + shape_to_string(*shape) + " holds a negative number");
    type.shape = *shape;
  }
  context.set_output(0, std::move(type));
  // A small constant vector of whole numbers is followed.
  if (!shape || shape->size() > 1) return ok();
  const SymDim count = shape->empty() ? SymDim(1) : (*shape)[0];
  if (!count.is_value() || count.value() > kMaxElements) return ok();
  SymDim element = 0;
  if (value != nullptr) {
    if (!is_integer(value->dtype()) && value->dtype() != DType::kBool) return ok();
    const auto tensor = value->value(context.node.graph().storage_ptr());
    if (!tensor || tensor->size() != 1) return ok();
    element = tensor->get_int64(0);
  }
  context.set_value(0, SymShape(static_cast<size_t>(count.value()), element));
  return ok();
}
Status run_constant_of_shape(KernelContext& context) {
  TRY(const std::vector<int64_t> shape, context.input_ints(0));
  for (const int64_t dim : shape)
    if (dim < 0) return context.error("shape " + dims_to_string(shape) + " has a negative dim");
  TRY(const auto given, tensor_attribute(context, "value"));
  const Tensor value = given ? *given : Tensor::scalar_float(0);
  if (value.size() != 1)
    return context.error("value must have one element, is " + to_string(value));
  TRY(Tensor * out, context.output(0, value.dtype(), shape));
  fill_elements(value, 0, *out, 0, out->size());
  return ok();
}

}  // namespace

OPERATOR(ConstantOfShape) = {
    .name = "ConstantOfShape",
    .doc = "a tensor of a given shape filled with one value",
    .versions = {9, 20, 21, 23, 24, 25},
    .inputs = {{"input", "T1"}},
    .outputs = {{"output", "T2"}},
    .attributes = {{"value", Attr::kTensor}},
    .types =
        {
            {"T1", {{9, kI64}}},
            {"T2",
             {{9, kNumbers | kBool},
              {20, kFp8 | kBf16},
              {21, kInt4},
              {23, kFp4},
              {24, kE8m0},
              {25, kInt2}}},
        },
    .infer = infer_constant_of_shape,
    .reference = run_constant_of_shape,
};

}  // namespace tombolo::ops
