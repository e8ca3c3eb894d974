#include "ops/infer_generic.h"
#include "ops/kernels/reduce.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {

/// The mean of nothing is NaN, or 0 in integers; the mean of integers truncates towards zero.
struct MeanReducer {
  template <typename T>
  T start() const {
    return T{0};
  }
  template <typename T>
  void add(T& sum, T x) const {
    sum = wrap_add(sum, x);
  }
  template <typename T>
  T finish(T sum, int64_t count) const {
    if (std::is_integral_v<T> && count == 0) return T{0};
    return sum / static_cast<T>(count);
  }
};

Status run_reduce_mean(KernelContext& context) { return run_reduce(context, MeanReducer()); }

}  // namespace

OPERATOR(ReduceMean) = {
    .name = "ReduceMean",
    .doc = "mean over axes",
    .versions = {1, 11, 13, 18},
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
    .types = {{"T", {{1, kInt32s | kFloats}, {13, kBf16}}}},
    .infer = infer_reduce,
    .reference = run_reduce_mean,
    .up = {{13, 18, step_axes_to_input}},
    .down = {{18, 13, step_axes_to_attribute}, {11, 1, step_axis_from_front}},
};

namespace {

struct ProductReducer {
  template <typename T>
  T start() const {
    return T{1};
  }
  template <typename T>
  void add(T& product, T x) const {
    product = wrap_mul(product, x);
  }
  template <typename T>
  T finish(T product, int64_t) const {
    return product;
  }
};

Status run_reduce_prod(KernelContext& context) { return run_reduce(context, ProductReducer()); }

}  // namespace

OPERATOR(ReduceProd) = {
    .name = "ReduceProd",
    .doc = "product over axes",
    .versions = {1, 11, 13, 18},
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
    .types = {{"T", {{1, kInt32s | kFloats}, {13, kBf16}}}},
    .infer = infer_reduce,
    .reference = run_reduce_prod,
    .up = {{13, 18, step_axes_to_input}},
    .down = {{18, 13, step_axes_to_attribute}, {11, 1, step_axis_from_front}},
};

}  // namespace tombolo::ops
