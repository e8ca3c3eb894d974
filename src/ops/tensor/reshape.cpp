#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/schema.h"
#include "ops/step_context.h"

namespace tombolo::ops {

namespace {
Status infer_reshape(InferContext& context) {
  std::optional<SymShape> target;
  if (context.opset >= 5) {
    target = elements_or_unknown(context, 1);
  } else {
    SymShape list;
    for (const int64_t dim : context.attributes.get_ints("shape")) list.push_back(dim);
    target = std::move(list);
  }
  if (!target) return ok();
  const bool allow_zero = context.opset >= 14 && context.attributes.get_int("allowzero", 0) != 0;
  TRY(SymShape out, reshaped(context, context.shape(0), *target, allow_zero));
  if (const SymShape* elements = context.ints(0); elements != nullptr && out.size() <= 1)
    context.set_value(0, *elements);
  set_shape(context, 0, std::move(out));
  return ok();
}
Status run_reshape(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  TRY(const std::vector<int64_t> shape, required_ints(context, 1, "shape"));
  const bool allow_zero = context.attributes.get_int("allowzero", 0) != 0;
  Dims dims;
  std::optional<size_t> open;
  for (size_t j = 0; j < shape.size(); ++j) {
    int64_t dim = shape[j];
    if (dim == -1) {
      if (open) return context.error("shape " + dims_to_string(shape) + " has two dims of -1");
      open = j;
      dim = 1;
    } else if (dim == 0 && !allow_zero) {
      if (j >= data->rank())
        return context.error("shape " + dims_to_string(shape) + " copies dim " + std::to_string(j) +
                             " of " + to_string(*data) + ", which it does not have");
      dim = data->dim(j);
    } else if (dim < 0) {
      return context.error("shape " + dims_to_string(shape) + " has a negative dim");
    }
    dims.push_back(dim);
  }
  const int64_t known = element_count(dims);
  if (open && known > 0 && data->size() % known == 0) dims[*open] = data->size() / known;
  if ((open && known == 0) || element_count(dims) != data->size())
    return context.error(to_string(*data) + " cannot take the shape " + dims_to_string(shape));
  context.set_output(0, data->reshaped(dims));
  return ok();
}

}  // namespace

namespace {

Status step_shape_to_input(StepContext& step) {
  if (!step.get_ints("shape")) return step.cannot("there is no shape");
  step.ints_to_input("shape", 1);
  return ok();
}

}  // namespace

namespace {

/// A length of 0 meant "as it was".
Status step_zero_copies(StepContext& step) {
  if (step.get_int("allowzero", 0) != 0) {
    const auto shape = step.constant_ints(1);
    if (!shape) return step.cannot("a length of 0 always meant the one of the input");
    for (const int64_t length : *shape)
      if (length == 0) return step.cannot("a length of 0 always meant the one of the input");
  }
  step.node.remove_attribute("allowzero");
  return ok();
}

}  // namespace

OPERATOR(Reshape) = {
    .name = "Reshape",
    .doc = "the same elements in another shape",
    .versions = {1, 5, 13, 14, 19, 21, 23, 24, 25},
    .inputs =
        {
            {"data", "T"},
            {"shape", "tensor(int64)", kSingle, {.since = 5}},
        },
    .outputs = {{"reshaped", "T"}},
    .attributes =
        {
            {"consumed_inputs", Attr::kInts, {.until = 4}},
            {"shape", Attr::kInts, {.until = 4}},
            {"allowzero", 0, {.since = 14}},
        },
    .types = {{"T",
               {{1, kFloats},
                {5, kInts | kComplex | kStr | kBool},
                {13, kBf16},
                {19, kFp8},
                {21, kInt4},
                {23, kFp4},
                {24, kE8m0},
                {25, kInt2}}}},
    .infer = infer_reshape,
    .reference = run_reshape,
    .up = {{1, 5, step_shape_to_input}},
    .down = {{14, 13, step_zero_copies}},
};

}  // namespace tombolo::ops
