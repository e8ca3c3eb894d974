#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {
Status infer_flatten(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr) {
    set_rank(context, 0, 2);
    return ok();
  }
  int64_t axis = context.attributes.get_int("axis", 1);
  const auto rank = static_cast<int64_t>(x->size());
  if (axis < -rank || axis > rank)
    return context.error("axis " + std::to_string(axis) + " is out of range for rank " +
                         std::to_string(rank));
  if (axis < 0) axis += rank;
  const std::span<const SymDim> dims(*x);
  set_shape(context, 0,
            {product_of(dims.first(static_cast<size_t>(axis))),
             product_of(dims.subspan(static_cast<size_t>(axis)))});
  return ok();
}
Status run_flatten(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  const auto rank = static_cast<int64_t>(data->rank());
  int64_t axis = context.attributes.get_int("axis", 1);
  if (axis < -rank || axis > rank)
    return context.error("axis " + std::to_string(axis) + " is out of range for " +
                         to_string(*data));
  if (axis < 0) axis += rank;
  const int64_t dims[] = {product(data->dims(), 0, static_cast<size_t>(axis)),
                          product(data->dims(), static_cast<size_t>(axis), data->rank())};
  context.set_output(0, data->reshaped(dims));
  return ok();
}

}  // namespace

OPERATOR(Flatten) = {
    .name = "Flatten",
    .doc = "a matrix of the axes before and from `axis`",
    .versions = {1, 9, 11, 13, 21, 23, 24, 25},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .attributes = {{"axis", 1}},
    .types = {{"T",
               {{1, kFloats},
                {9, kInts | kComplex | kStr | kBool},
                {13, kBf16},
                {21, kFp8 | kInt4},
                {23, kFp4},
                {24, kE8m0},
                {25, kInt2}}}},
    .infer = infer_flatten,
    .reference = run_flatten,
    .down = {{11, 9, step_axis_from_front}},
};

}  // namespace tombolo::ops
