#include <limits>

#include "ops/infer_generic.h"
#include "ops/kernels/reduce.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {

/// The number that stands for the extremum of nothing: infinite, or the end of the type's range.
template <typename T>
T end_of_range(DType dtype, bool lowest) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_floating_point_v<T>) {
    return lowest ? -Limits::infinity() : Limits::infinity();
  } else {
    const unsigned unused = 64 - (dtype == DType::kBool ? 1 : bits_of(dtype));
    return lowest ? Limits::lowest() >> unused : Limits::max() >> unused;
  }
}

/// NaN wins.
struct ExtremumReducer {
  DType dtype;
  bool max;
  template <typename T>
  T start() const {
    return end_of_range<T>(dtype, max);
  }
  template <typename T>
  void add(T& best, T x) const {
    if ((max ? x > best : x < best) || x != x) best = x;
  }
  template <typename T>
  T finish(T best, int64_t) const {
    return best;
  }
};

Status run_reduce_max(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  return run_reduce(context, ExtremumReducer{data->dtype(), true}, Bools::kTake);
}

}  // namespace

OPERATOR(ReduceMax) = {
    .name = "ReduceMax",
    .doc = "maximum over axes",
    .versions = {1, 11, 12, 13, 18, 20},
    .inputs =
        {
            {"data", "T"},
            {"axes", "tensor(int64)", kOptional, {.since = 18}},
        },
    .outputs = {{"reduced", "T"}},
    .attributes =
        {
            {"axes", Attr::kInts, {.until = 17}},
            {"keepdims", 1},
            {"noop_with_empty_axes", 0, {.since = 18}},
        },
    .types = {{"T", {{1, kInt32s | kFloats}, {12, kInt8s}, {13, kBf16}, {20, kBool}}}},
    .infer = infer_reduce,
    .reference = run_reduce_max,
    .up = {{13, 18, step_axes_to_input}},
    .down = {{18, 13, step_axes_to_attribute}, {11, 1, step_axis_from_front}},
};

namespace {

Status run_reduce_min(KernelContext& context) {
  TRY(const Tensor* data, context.input(0));
  return run_reduce(context, ExtremumReducer{data->dtype(), false}, Bools::kTake);
}

}  // namespace

OPERATOR(ReduceMin) = {
    .name = "ReduceMin",
    .doc = "minimum over axes",
    .versions = {1, 11, 12, 13, 18, 20},
    .inputs =
        {
            {"data", "T"},
            {"axes", "tensor(int64)", kOptional, {.since = 18}},
        },
    .outputs = {{"reduced", "T"}},
    .attributes =
        {
            {"axes", Attr::kInts, {.until = 17}},
            {"keepdims", 1},
            {"noop_with_empty_axes", 0, {.since = 18}},
        },
    .types = {{"T", {{1, kInt32s | kFloats}, {12, kInt8s}, {13, kBf16}, {20, kBool}}}},
    .infer = infer_reduce,
    .reference = run_reduce_min,
    .up = {{13, 18, step_axes_to_input}},
    .down = {{18, 13, step_axes_to_attribute}, {11, 1, step_axis_from_front}},
};

}  // namespace tombolo::ops
