#include <algorithm>

#include "ops/infer_generic.h"
#include "ops/kernels/recurrent.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {

template <typename T>
Status rnn(KernelContext& context, DType dtype) {
  TRY(RecurrentShape read, read_recurrent(context, 1, {"Tanh"}));
  TRY(Recurrence<T> layer, Recurrence<T>::read(context, std::move(read)));
  const RecurrentShape& shape = layer.shape;
  TRY(Tensor recurrent, context.allocate(dtype_of<T>(), {{shape.batch, shape.hidden}}));
  layer.run([&](int64_t d, auto active) {
    T* h = layer.state(d);
    layer.recur(d, h, 0, 1, recurrent.data<T>());
    const Activation& f = shape.activation(d, 0);
    for (int64_t b = 0; b < shape.batch; ++b) {
      const T* gate = active(b);
      if (gate == nullptr) continue;
      for (int64_t j = 0; j < shape.hidden; ++j) {
        const int64_t at = b * shape.hidden + j;
        h[at] = static_cast<T>(
            f(shape.clipped(static_cast<double>(gate[j] + recurrent.data<T>()[at]))));
      }
    }
  });
  return layer.finish(dtype);
}

Status run_rnn(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x, [&]<typename T>() { return rnn<T>(context, x->dtype()); });
}

}  // namespace

constexpr std::initializer_list<Literal> kRNNActivations = {"Tanh", "Tanh"};

OPERATOR(RNN) = {
    .name = "RNN",
    .doc = "simple recurrent layer",
    .versions = {1, 7, 14, 22},
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
            {"Y_h", "T", kOptional},
        },
    .attributes =
        {
            {"activation_alpha", Attr::kFloats},
            {"activation_beta", Attr::kFloats},
            {"activations", &kRNNActivations},
            {"clip", Attr::kFloat},
            {"direction", "forward"},
            {"hidden_size", Attr::kInt},
            {"output_sequence", 0, {.until = 6}},
            {"layout", 0, {.since = 14}},
        },
    .types =
        {
            {"T", {{1, kFloats}, {22, kBf16}}},
            {"T1", {{1, kI32}}},
        },
    .infer = infer_recurrent,
    .reference = run_rnn,
    .up = {{1, 7, step_drop_output_sequence}},
    .down = {{14, 7, step_batch_second}},
};

}  // namespace tombolo::ops
