#include <cmath>

#include "ops/function_text.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_causal_conv(InferContext& context) {
  CHECK_OK(infer_unary(context));
  CHECK_OK(expect_rank(context, 0, 3));
  CHECK_OK(expect_rank(context, 1, 3));
  const SymShape* x = context.shape(0);
  const SymShape* w = context.shape(1);
  SymShape state(3);
  if (x != nullptr) {
    state[0] = (*x)[0];
    state[1] = (*x)[1];
  }
  if (w != nullptr) state[2] = (*w)[2] - 1;
  set_shape(context, 1, std::move(state));
  return ok();
}
}  // namespace

namespace {

template <typename T>
Status causal_conv(KernelContext& context, const Tensor& x) {
  TRY(const Tensor* w, context.input(1));
  if (x.rank() != 3 || w->rank() != 3 || w->dim(2) < 1)
    return context.error(
        "input must be [batch, channels, length] and weight [channels, 1, k], are " + to_string(x) +
        " and " + to_string(*w));
  const int64_t batch = x.dim(0), channels = x.dim(1), length = x.dim(2), k = w->dim(2);
  CHECK_OK(check_dims(context, "weight", *w, {{channels, 1, k}}));
  const Text activation = context.attributes.get_string("activation", "none");
  const bool silu = activation == "silu" || activation == "swish";
  if (!silu && activation != "none")
    return context.error("activation \"" + std::string(activation) + "\" is not known");
  TRY(Tensor in, as<T>(context, x));
  TRY(Tensor weights, as<T>(context, *w));
  TRY(Tensor bias, optional_as<T>(context, 2));
  TRY(Tensor past, optional_as<T>(context, 3));
  if (!absent(bias)) CHECK_OK(check_dims(context, "bias", bias, {{channels}}));
  if (!absent(past)) CHECK_OK(check_dims(context, "past_state", past, {{batch, channels, k - 1}}));
  TRY(Tensor y, context.allocate(dtype_of<T>(), x.dims()));
  TRY(Tensor present, context.allocate(dtype_of<T>(), {{batch, channels, k - 1}}));
  context.parallel_for(batch * channels, 1, [&](int64_t first, int64_t last) {
    for (int64_t line = first; line < last; ++line) {
      const int64_t c = line % channels;
      // Element `i` of the line with its past in front.
      const auto at = [&](int64_t i) {
        if (i >= k - 1) return in.data<T>()[line * length + i - (k - 1)];
        return absent(past) ? T{} : past.data<T>()[line * (k - 1) + i];
      };
      for (int64_t t = 0; t < length; ++t) {
        double sum = absent(bias) ? 0 : static_cast<double>(bias.data<T>()[c]);
        for (int64_t j = 0; j < k; ++j)
          sum += static_cast<double>(weights.data<T>()[c * k + j]) * static_cast<double>(at(t + j));
        if (silu) sum /= 1 + std::exp(-sum);
        y.data<T>()[line * length + t] = static_cast<T>(sum);
      }
      for (int64_t i = 0; i < k - 1; ++i) present.data<T>()[line * (k - 1) + i] = at(length + i);
    }
  });
  CHECK_OK(give(context, 1, x.dtype(), std::move(present)));
  return give(context, 0, x.dtype(), std::move(y));
}

Status run_causal_conv_with_state(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x, [&]<typename T>() { return causal_conv<T>(context, *x); });
}

/// Windows of the padded input, gathered, times the kernel.
Status body_of_causal_conv(FunctionContext& context) {
  context.line("one = Constant <value_ints = [1]> ()");
  context.line("two = Constant <value_ints = [2]> ()");
  context.line("last = Constant <value_ints = [-1]> ()");
  context.line("taps = Shape <start = 2> (weight)");
  context.line("lead = Sub (taps, one)");
  if (context.has_input(3)) {
    context.line("padded = Concat <axis = 2> (past_state, input)");
  } else {
    context.line("none = Constant <value_ints = [0]> ()");
    context.line("pads = Concat <axis = 0> (lead, none)");
    context.line("padded = Pad (input, pads, \"\", two)");
  }
  context.line("total = Shape <start = 2> (padded)");
  context.line("kept = Sub (total, lead)");
  context.line("present_state = Slice (padded, kept, total, two)");
  context.line("steps = Shape <start = 2> (input)");
  context.line("zero = Constant <value_int = 0> ()");
  context.line("unit = Constant <value_int = 1> ()");
  context.line("steps_number = Squeeze (steps)");
  context.line("taps_number = Squeeze (taps)");
  context.line("step = Range (zero, steps_number, unit)");
  context.line("tap = Range (zero, taps_number, unit)");
  context.line("step_column = Unsqueeze (step, one)");
  context.line("places = Add (step_column, tap)");
  context.line("windows = Gather <axis = 2> (padded, places)");
  context.line("products = Mul (windows, weight)");
  context.line("sums = ReduceSum <keepdims = 0> (products, last)");
  if (context.has_input(2)) {
    context.line("bias_column = Unsqueeze (bias, one)");
    context.line("plain = Add (sums, bias_column)");
  } else {
    context.line("plain = Identity (sums)");
  }
  if (context.attributes.get_string("activation", "none") == "none") {
    context.line("output = Identity (plain)");
  } else {  // silu and swish are two names
    context.line("share = Sigmoid (plain)");
    context.line("output = Mul (plain, share)");
  }
  return ok();
}

}  // namespace

OPERATOR(CausalConvWithState) = {
    .name = "CausalConvWithState",
    .doc = "depthwise causal 1-D convolution that hands on its last samples",
    .versions = {27},
    .inputs =
        {
            {"input", "T"},
            {"weight", "T"},
            {"bias", "T", kOptional},
            {"past_state", "T", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"present_state", "T"},
        },
    .attributes = {{"activation", "none"}},
    .types = {{"T", {{27, kF32 | kF16 | kBf16}}}},
    .functions = {{.opset = 27, .builder = body_of_causal_conv}},
    .infer = infer_causal_conv,
    .reference = run_causal_conv_with_state,
};

}  // namespace tombolo::ops
