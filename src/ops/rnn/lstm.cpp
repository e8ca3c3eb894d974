#include <algorithm>

#include "ops/infer_generic.h"
#include "ops/kernels/recurrent.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {

// Gates in the order i, o, f, c (input, output, forget, cell); peepholes i, o, f.
template <typename T>
Status lstm(KernelContext& context, DType dtype) {
  TRY(RecurrentShape read, read_recurrent(context, 4, {"Sigmoid", "Tanh", "Tanh"}));
  TRY(Recurrence<T> layer, Recurrence<T>::read(context, std::move(read)));
  const RecurrentShape& shape = layer.shape;
  const int64_t hidden = shape.hidden, batch = shape.batch;
  const bool coupled = context.attributes.get_int("input_forget", 0) != 0;
  TRY(Tensor cells, read_state<T>(context, shape, 6, "initial_c"));
  TRY(Tensor peepholes, optional_as<T>(context, 7));
  if (!absent(peepholes))
    CHECK_OK(check_dims(context, "P", peepholes, {{shape.directions, 3 * hidden}}));
  TRY(Tensor recurrent, context.allocate(dtype_of<T>(), {{batch, 4 * hidden}}));
  layer.run([&](int64_t d, auto active) {
    T *h = layer.state(d), *c = cells.data<T>() + d * batch * hidden;
    layer.recur(d, h, 0, 4, recurrent.data<T>());
    const T* p = absent(peepholes) ? nullptr : peepholes.data<T>() + d * 3 * hidden;
    const Activation &f = shape.activation(d, 0), &g = shape.activation(d, 1),
                     &out = shape.activation(d, 2);
    for (int64_t b = 0; b < batch; ++b) {
      const T* in = active(b);
      if (in == nullptr) continue;
      const T* back = recurrent.data<T>() + b * 4 * hidden;
      for (int64_t j = 0; j < hidden; ++j) {
        const int64_t at = b * hidden + j;
        const double before = static_cast<double>(c[at]);
        // The sum that enters a gate; the cell gate has no peephole.
        const auto sum = [&](int64_t gate, double cell) {
          double x = static_cast<double>(in[gate * hidden + j] + back[gate * hidden + j]);
          if (p != nullptr && gate < 3) x += static_cast<double>(p[gate * hidden + j]) * cell;
          return shape.clipped(x);
        };
        const double i = f(sum(0, before));
        const double forget = coupled ? 1 - i : f(sum(2, before));
        const double cell = forget * before + i * g(sum(3, 0));
        const double o = f(sum(1, cell));
        c[at] = static_cast<T>(cell);
        h[at] = static_cast<T>(o * out(shape.clipped(cell)));
      }
    }
  });
  CHECK_OK(give_state<T>(context, shape, 2, dtype, std::move(cells)));
  return layer.finish(dtype);
}

Status run_lstm(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x, [&]<typename T>() { return lstm<T>(context, x->dtype()); });
}

}  // namespace

OPERATOR(LSTM) = {
    .name = "LSTM",
    .doc = "long short-term memory layer",
    .versions = {1, 7, 14, 22},
    .inputs =
        {
            {"X", "T"},
            {"W", "T"},
            {"R", "T"},
            {"B", "T", kOptional},
            {"sequence_lens", "T1", kOptional},
            {"initial_h", "T", kOptional},
            {"initial_c", "T", kOptional},
            {"P", "T", kOptional},
        },
    .outputs =
        {
            {"Y", "T", kOptional},
            {"Y_h", "T", kOptional},
            {"Y_c", "T", kOptional},
        },
    .attributes =
        {
            {"activation_alpha", Attr::kFloats},
            {"activation_beta", Attr::kFloats},
            {"activations", Attr::kStrings},
            {"clip", Attr::kFloat},
            {"direction", "forward"},
            {"hidden_size", Attr::kInt},
            {"input_forget", 0},
            {"output_sequence", 0, {.until = 6}},
            {"layout", 0, {.since = 14}},
        },
    .types =
        {
            {"T", {{1, kFloats}, {22, kBf16}}},
            {"T1", {{1, kI32}}},
        },
    .infer = infer_recurrent,
    .reference = run_lstm,
    .up = {{1, 7, step_drop_output_sequence}},
    .down = {{14, 7, step_batch_second}},
};

}  // namespace tombolo::ops
