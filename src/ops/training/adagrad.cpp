#include <cmath>

#include "ops/infer_helpers.h"
#include "ops/kernels/optimizer.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

// Of each tensor: X, its gradient G, and the sum H of squared gradients.
Status run_adagrad(KernelContext& context) {
  const auto number = [&](const char* name, float fallback) {
    return static_cast<double>(context.attributes.get_float(name, fallback));
  };
  const double decay_factor = number("decay_factor", 0), epsilon = number("epsilon", 1e-6f),
               decay = number("norm_coefficient", 0);
  return run_optimizer<3, 2>(
      context, [&](const std::array<double, 3>& x, double count, double rate) {
        const double g = decay * x[0] + x[1];
        const double h = x[2] + g * g;
        const double step = rate / (1 + count * decay_factor);
        return std::array<double, 2>{x[0] - step * g / (std::sqrt(h) + epsilon), h};
      });
}

}  // namespace

namespace {
Status infer_adagrad(InferContext& context) {
  // After R and T: values, gradients, states; out: new values, new states.
  const size_t count = context.input_count() > 2 ? (context.input_count() - 2) / 3 : 0;
  for (size_t i = 0; i < count; ++i) {
    context.same_as_input(i, 2 + i);
    context.same_as_input(count + i, 2 + 2 * count + i);
  }
  return ok();
}
}  // namespace

OPERATOR(Adagrad) = {
    .name = "Adagrad",
    .domain = "ai.onnx.preview.training",
    .doc = "one AdaGrad step for each tensor",
    .versions = {1},
    .inputs =
        {
            {"R", "T1"},
            {"T", "T2"},
            {"inputs", "T3", kVariadic, {}, 1, kMixed},
        },
    .outputs = {{"outputs", "T3", kVariadic, {}, 1, kMixed}},
    .attributes =
        {
            {"decay_factor", 0.0f},
            {"epsilon", 1e-06f},
            {"norm_coefficient", 0.0f},
        },
    .types =
        {
            {"T1", {{1, kFloats32}}},
            {"T2", {{1, kI64}}},
            {"T3", {{1, kFloats32}}},
        },
    .infer = infer_adagrad,
    .reference = run_adagrad,
};

}  // namespace tombolo::ops
