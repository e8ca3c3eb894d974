#include <algorithm>

#include "ops/infer_generic.h"
#include "ops/kernels/recurrent.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {

// Gates in the order z, r, h (update, reset, hidden).
template <typename T>
Status gru(KernelContext& context, DType dtype) {
  TRY(RecurrentShape read, read_recurrent(context, 3, {"Sigmoid", "Tanh"}));
  TRY(Recurrence<T> layer, Recurrence<T>::read(context, std::move(read)));
  const RecurrentShape& shape = layer.shape;
  const int64_t hidden = shape.hidden, batch = shape.batch;
  // The reset gate acts on R h + Rb, or on h before it is multiplied.
  const bool linear_before_reset = context.attributes.get_int("linear_before_reset", 0) != 0;
  TRY(Tensor zr, context.allocate(dtype_of<T>(), {{batch, 2 * hidden}}));
  TRY(Tensor reset, context.allocate(dtype_of<T>(), {{batch, hidden}}));
  TRY(Tensor candidate, context.allocate(dtype_of<T>(), {{batch, hidden}}));
  layer.run([&](int64_t d, auto active) {
    T* h = layer.state(d);
    T *gates = zr.data<T>(), *rh = reset.data<T>();
    const Activation &f = shape.activation(d, 0), &g = shape.activation(d, 1);
    layer.recur(d, h, 0, 2, gates);
    for (int64_t b = 0; b < batch; ++b) {
      const T* in = active(b);
      for (int64_t j = 0; j < 2 * hidden; ++j) {
        T& gate = gates[b * 2 * hidden + j];
        if (in != nullptr)
          gate = static_cast<T>(f(shape.clipped(static_cast<double>(in[j] + gate))));
        if (j >= hidden) rh[b * hidden + j - hidden] = gate * h[b * hidden + j - hidden];
      }
    }
    layer.recur(d, linear_before_reset ? h : rh, 2, 1, candidate.data<T>());
    for (int64_t b = 0; b < batch; ++b) {
      const T* in = active(b);
      if (in == nullptr) continue;
      for (int64_t j = 0; j < hidden; ++j) {
        const int64_t at = b * hidden + j;
        const double z = static_cast<double>(gates[b * 2 * hidden + j]);
        const double r = static_cast<double>(gates[b * 2 * hidden + hidden + j]);
        double sum = static_cast<double>(candidate.data<T>()[at]);
        if (linear_before_reset) sum *= r;
        sum = g(shape.clipped(sum + static_cast<double>(in[2 * hidden + j])));
        h[at] = static_cast<T>((1 - z) * sum + z * static_cast<double>(h[at]));
      }
    }
  });
  return layer.finish(dtype);
}

Status run_gru(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x, [&]<typename T>() { return gru<T>(context, x->dtype()); });
}

}  // namespace

namespace {

/// The default was misspelt.
Status step_spell_forward(StepContext& step) {
  if (step.get_string("direction", "") == "foward") step.node.set_string("direction", "forward");
  return ok();
}

}  // namespace

OPERATOR(GRU) = {
    .name = "GRU",
    .doc = "gated recurrent unit layer",
    .versions = {1, 3, 7, 14, 22},
    .inputs =
        {
            {"X", "T"},
            {"W", "T"},
            {"R", "T"},
            {"B", "T", kOptional},
            {"sequence_lens", "T1", kOptional},
            {"initial_h", "T", kOptional},
        },
    .outputs =
        {
            {"Y", "T", kOptional},
            {"Y_h", "T", kSingle, {.until = 2}},
            {"Y_h", "T", kOptional, {.since = 3}},
        },
    .attributes =
        {
            {"activation_alpha", Attr::kFloats},
            {"activation_beta", Attr::kFloats},
            {"activations", Attr::kStrings},
            {"clip", Attr::kFloat},
            {"direction", "foward", {.until = 2}},
            {"direction", "forward", {.since = 3}},
            {"hidden_size", Attr::kInt},
            {"output_sequence", 0, {.until = 6}},
            {"linear_before_reset", 0, {.since = 3}},
            {"layout", 0, {.since = 14}},
        },
    .types =
        {
            {"T", {{1, kFloats}, {22, kBf16}}},
            {"T1", {{1, kI32}}},
        },
    .infer = infer_recurrent,
    .reference = run_gru,
    .up = {{1, 3, step_spell_forward}, {3, 7, step_drop_output_sequence}},
    .down = {{14, 7, step_batch_second}},
};

}  // namespace tombolo::ops
