#include <algorithm>
#include <limits>
#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/movement.h"

#include "ops/schema.h"
#include "ops/step_context.h"

namespace tombolo::ops {

namespace {
Status infer_one_hot(InferContext& context) {
  const SymShape* indices = context.shape(0);
  InferType type = InferType::tensor(context.elem(2));
  SymDim depth;
  if (const auto given = scalar_of(context, 1)) {
    depth = *given;
  } else if (const Tensor* tensor = context.constant(1); tensor != nullptr && tensor->size() == 1) {
    depth = static_cast<int64_t>(tensor->get_double(0));
  }
  if (indices != nullptr) {
    const size_t rank = indices->size() + 1;
    TRY(const size_t axis, checked_axis(context, context.attributes.get_int("axis", -1), rank));
    SymShape out = *indices;
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(axis), depth);
    type.shape = std::move(out);
  }
  context.set_output(0, std::move(type));
  return ok();
}
Status run_one_hot(KernelContext& context) {
  TRY(const Tensor* indices, context.input(0));
  TRY(const Tensor* depth_tensor, context.input(1));
  TRY(const Tensor* values, context.input(2));
  const auto is_number = [](const Tensor& x) {
    return is_integer(x.dtype()) || is_float(x.dtype());
  };
  if (!is_number(*indices) || !is_number(*depth_tensor))
    return context.error("indices and depth must be numbers, are " + to_string(*indices) + " and " +
                         to_string(*depth_tensor));
  if (depth_tensor->size() != 1 || values->size() != 2)
    return context.error("depth must have one element and values two, are " +
                         to_string(*depth_tensor) + " and " + to_string(*values));
  const int64_t depth = depth_tensor->get_int64(0);
  if (depth < 0) return context.error("depth " + std::to_string(depth) + " is negative");
  TRY(const int64_t axis, normalize_axis(context.attributes.get_int("axis", -1),
                                         static_cast<int64_t>(indices->rank()) + 1));
  const auto at = static_cast<size_t>(axis);
  Dims dims = indices->dims();
  dims.insert(static_cast<uint32_t>(at), depth);
  TRY(Tensor * out, context.output(0, values->dtype(), dims));
  fill_elements(*values, 0, *out, 0, out->size());
  const int64_t inner = product(indices->dims(), at, indices->rank());
  for (int64_t i = 0; i < indices->size(); ++i) {
    // An index outside [-depth, depth) leaves its column off.
    const int64_t index = indices->get_int64(i);
    if (index < -depth || index >= depth) continue;
    const int64_t place = index < 0 ? index + depth : index;
    fill_elements(*values, 1, *out, (i / inner * depth + place) * inner + i % inner, 1);
  }
  return ok();
}

}  // namespace

namespace {

/// Negative indices counted as out of range; now they count from the end.
Status step_negative_indices(StepContext& step) {
  const DType dtype = step.dtype(0);
  if (dtype == DType::kUndefined) return step.cannot("the type of the indices is not known");
  if (kUnsigned.has_tensor(dtype)) return ok();
  if (const auto indices = step.constant_ints(0);
      indices && std::all_of(indices->begin(), indices->end(), [](int64_t i) { return i >= 0; }))
    return ok();
  Value* indices = step.node.input(0);
  if (dtype != DType::kInt64) {  // other types are cast to int64 before use
    Node& cast = step.before("Cast", {indices}, "indices");
    cast.set_int("to", static_cast<int64_t>(DType::kInt64));
    indices = cast.output(0);
  }
  Value* const zero = step.scalar(int64_t{0}, "zero");
  Value* const outside = step.scalar(std::numeric_limits<int64_t>::max(), "outside");
  Node& negative = step.before("Less", {indices, zero}, "negative");
  Node& where = step.before("Where", {negative.output(0), outside, indices}, "indices");
  step.node.set_input(0, where.output(0));
  return ok();
}

}  // namespace

OPERATOR(OneHot) = {
    .name = "OneHot",
    .doc = "a new axis with on at the index and off elsewhere",
    .versions = {9, 11, 28},
    .inputs =
        {
            {"indices", "T1"},
            {"depth", "T2"},
            {"values", "T3"},
        },
    .outputs = {{"output", "T3"}},
    .attributes = {{"axis", -1}},
    .types =
        {
            {"T1", {{9, kNumbers}}},
            {"T2", {{9, kNumbers}}},
            {"T3", {{9, kAll}, {28, kBf16}}},
        },
    .infer = infer_one_hot,
    .reference = run_one_hot,
    .up = {{9, 11, step_negative_indices}},
};

}  // namespace tombolo::ops
