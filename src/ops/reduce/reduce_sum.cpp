#include "ops/infer_generic.h"
#include "ops/kernels/reduce.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {

struct SumReducer {
  template <typename T>
  T start() const {
    return T{0};
  }
  template <typename T>
  void add(T& sum, T x) const {
    sum = wrap_add(sum, x);
  }
  template <typename T>
  T finish(T sum, int64_t) const {
    return sum;
  }
};

Status run_reduce_sum(KernelContext& context) { return run_reduce(context, SumReducer()); }

}  // namespace

OPERATOR(ReduceSum) = {
    .name = "ReduceSum",
    .doc = "sum over axes",
    .versions = {1, 11, 13},
    .inputs =
        {
            {"data", "T"},
            {"axes", "tensor(int64)", kOptional, {.since = 13}},
        },
    .outputs = {{"reduced", "T"}},
    .attributes =
        {
            {"axes", Attr::kInts, {.until = 12}},
            {"keepdims", 1},
            {"noop_with_empty_axes", 0, {.since = 13}},
        },
    .types = {{"T", {{1, kInt32s | kFloats}, {13, kBf16}}}},
    .infer = infer_reduce,
    .reference = run_reduce_sum,
    .up = {{11, 13, step_axes_to_input}},
    .down = {{13, 11, step_axes_to_attribute}, {11, 1, step_axis_from_front}},
};

}  // namespace tombolo::ops
