#include <cmath>

#include "ops/infer_generic.h"
#include "ops/kernels/reduce.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {

struct L1Reducer {
  template <typename T>
  T start() const {
    return T{0};
  }
  template <typename T>
  void add(T& sum, T x) const {
    sum = wrap_add(sum, x < T{0} ? wrap_sub(T{0}, x) : x);
  }
  template <typename T>
  T finish(T sum, int64_t) const {
    return sum;
  }
};

Status run_reduce_l1(KernelContext& context) { return run_reduce(context, L1Reducer()); }

}  // namespace

OPERATOR(ReduceL1) = {
    .name = "ReduceL1",
    .doc = "sum of absolute values over axes",
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
    .functions = {{.versions = {.since = 18}, .opset = 18, .text = R"(
size = Abs (data)
reduced = ReduceSum <keepdims: int = @keepdims, noop_with_empty_axes: int = @noop_with_empty_axes> (size, axes)
)"}},
    .infer = infer_reduce,
    .reference = run_reduce_l1,
    .up = {{13, 18, step_axes_to_input}},
    .down = {{18, 13, step_axes_to_attribute}, {11, 1, step_axis_from_front}},
};

namespace {

/// Integers are squared and summed as doubles; the root is truncated.
struct L2Reducer {
  template <typename T>
  double start() const {
    return 0;
  }
  template <typename T>
  void add(double& sum, T x) const {
    sum += static_cast<double>(x) * static_cast<double>(x);
  }
  double finish(double sum, int64_t) const { return std::sqrt(sum); }
};

Status run_reduce_l2(KernelContext& context) { return run_reduce(context, L2Reducer()); }

}  // namespace

OPERATOR(ReduceL2) = {
    .name = "ReduceL2",
    .doc = "square root of the sum of squares over axes",
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
    .functions = {{.versions = {.since = 18}, .opset = 18, .text = R"(
wide = Cast <to = 11> (data)
square = Mul (wide, wide)
sum = ReduceSum <keepdims: int = @keepdims, noop_with_empty_axes: int = @noop_with_empty_axes> (square, axes)
root = Sqrt (sum)
reduced = CastLike (root, data)
)"}},
    .infer = infer_reduce,
    .reference = run_reduce_l2,
    .up = {{13, 18, step_axes_to_input}},
    .down = {{18, 13, step_axes_to_attribute}, {11, 1, step_axis_from_front}},
};

namespace {

struct SumSquareReducer {
  template <typename T>
  T start() const {
    return T{0};
  }
  template <typename T>
  void add(T& sum, T x) const {
    sum = wrap_add(sum, wrap_mul(x, x));
  }
  template <typename T>
  T finish(T sum, int64_t) const {
    return sum;
  }
};

Status run_reduce_sum_square(KernelContext& context) {
  return run_reduce(context, SumSquareReducer());
}

}  // namespace

OPERATOR(ReduceSumSquare) = {
    .name = "ReduceSumSquare",
    .doc = "sum of squares over axes",
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
    .functions = {{.versions = {.since = 18}, .opset = 18, .text = R"(
square = Mul (data, data)
reduced = ReduceSum <keepdims: int = @keepdims, noop_with_empty_axes: int = @noop_with_empty_axes> (square, axes)
)"}},
    .infer = infer_reduce,
    .reference = run_reduce_sum_square,
    .up = {{13, 18, step_axes_to_input}},
    .down = {{18, 13, step_axes_to_attribute}, {11, 1, step_axis_from_front}},
};

}  // namespace tombolo::ops
