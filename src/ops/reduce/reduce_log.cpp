#include <cmath>
#include <limits>

#include "ops/infer_generic.h"
#include "ops/kernels/reduce.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

constexpr Literal kReduceLogSum = R"(
wide = Cast <to = 11> (data)
sum = ReduceSum <keepdims: int = @keepdims, noop_with_empty_axes: int = @noop_with_empty_axes> (wide, axes)
logarithm = Log (sum)
reduced = CastLike (logarithm, data)
)";

namespace {

struct LogSumReducer {
  template <typename T>
  double start() const {
    return 0;
  }
  template <typename T>
  void add(double& sum, T x) const {
    sum += static_cast<double>(x);
  }
  double finish(double sum, int64_t) const { return std::log(sum); }
};

Status run_reduce_log_sum(KernelContext& context) { return run_reduce(context, LogSumReducer()); }

}  // namespace

OPERATOR(ReduceLogSum) = {
    .name = "ReduceLogSum",
    .doc = "logarithm of the sum over axes",
    .versions = {1, 11, 13, 18, 28},
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
    .types =
        {
            {"T", {{1, kInt32s | kFloats}, {13, kBf16}}, {.until = 27}},
            {"T", {{28, kFloats | kBf16}}, {.since = 28}},
        },
    .functions =
        {
            {.versions = {.since = 18, .until = 27}, .opset = 18, .text = kReduceLogSum},
            {.versions = {.since = 28}, .opset = 28, .text = kReduceLogSum},
        },
    .infer = infer_reduce,
    .reference = run_reduce_log_sum,
    .up = {{13, 18, step_axes_to_input}, {18, 28, step_no_integers}},
    .down = {{28, 18, step_as_it_is},
             {18, 13, step_axes_to_attribute},
             {11, 1, step_axis_from_front}},
};

constexpr Literal kReduceLogSumExp = R"(
wide = Cast <to = 11> (data)
exponential = Exp (wide)
sum = ReduceSum <keepdims: int = @keepdims, noop_with_empty_axes: int = @noop_with_empty_axes> (exponential, axes)
logarithm = Log (sum)
reduced = CastLike (logarithm, data)
)";

namespace {

/// A sum of exponentials relative to the greatest exponent so far, so that none overflows.
struct ScaledSum {
  double greatest = -std::numeric_limits<double>::infinity();
  double sum = 0;
};

struct LogSumExpReducer {
  template <typename T>
  ScaledSum start() const {
    return {};
  }
  template <typename T>
  void add(ScaledSum& state, T number) const {
    const double x = static_cast<double>(number);
    if (x == state.greatest) {  // infinities too: their difference would be NaN
      state.sum += 1;
    } else if (x < state.greatest) {
      state.sum += std::exp(x - state.greatest);
    } else {
      state.sum = state.sum * std::exp(state.greatest - x) + 1;
      state.greatest = x;
    }
  }
  double finish(const ScaledSum& state, int64_t) const {
    return state.greatest + std::log(state.sum);
  }
};

Status run_reduce_log_sum_exp(KernelContext& context) {
  return run_reduce(context, LogSumExpReducer());
}

}  // namespace

OPERATOR(ReduceLogSumExp) = {
    .name = "ReduceLogSumExp",
    .doc = "logarithm of the sum of exponentials over axes",
    .versions = {1, 11, 13, 18, 28},
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
    .types =
        {
            {"T", {{1, kInt32s | kFloats}, {13, kBf16}}, {.until = 27}},
            {"T", {{28, kFloats | kBf16}}, {.since = 28}},
        },
    .functions =
        {
            {.versions = {.since = 18, .until = 27}, .opset = 18, .text = kReduceLogSumExp},
            {.versions = {.since = 28}, .opset = 28, .text = kReduceLogSumExp},
        },
    .infer = infer_reduce,
    .reference = run_reduce_log_sum_exp,
    .up = {{13, 18, step_axes_to_input}, {18, 28, step_no_integers}},
    .down = {{28, 18, step_as_it_is},
             {18, 13, step_axes_to_attribute},
             {11, 1, step_axis_from_front}},
};

}  // namespace tombolo::ops
