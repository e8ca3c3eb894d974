#include <cmath>

#include "ops/infer_helpers.h"
#include "ops/kernels/optimizer.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

// Of each tensor: X, its gradient G, and the running means V of G and H of G squared.
Status run_adam(KernelContext& context) {
  const auto number = [&](const char* name, float fallback) {
    return static_cast<double>(context.attributes.get_float(name, fallback));
  };
  const double alpha = number("alpha", 0.9f), beta = number("beta", 0.999f),
               epsilon = number("epsilon", 1e-6f), decay = number("norm_coefficient", 0),
               decay_after = number("norm_coefficient_post", 0);
  return run_optimizer<4, 3>(
      context, [&](const std::array<double, 4>& x, double count, double rate) {
        const double g = decay * x[0] + x[1];
        const double v = alpha * x[2] + (1 - alpha) * g;
        const double h = beta * x[3] + (1 - beta) * g * g;
        if (count > 0) rate *= std::sqrt(1 - std::pow(beta, count)) / (1 - std::pow(alpha, count));
        const double moved = x[0] - rate * v / (std::sqrt(h) + epsilon);
        return std::array<double, 3>{(1 - decay_after) * moved, v, h};
      });
}

}  // namespace

namespace {
Status infer_adam(InferContext& context) {
  // After R and T: values, gradients, first and second moments; out: all but the gradients.
  const size_t count = context.input_count() > 2 ? (context.input_count() - 2) / 4 : 0;
  for (size_t i = 0; i < count; ++i) {
    context.same_as_input(i, 2 + i);
    context.same_as_input(count + i, 2 + 2 * count + i);
    context.same_as_input(2 * count + i, 2 + 3 * count + i);
  }
  return ok();
}
}  // namespace

OPERATOR(Adam) = {
    .name = "Adam",
    .domain = "ai.onnx.preview.training",
    .doc = "one Adam step for each tensor",
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
            {"alpha", 0.9f},
            {"beta", 0.999f},
            {"epsilon", 1e-06f},
            {"norm_coefficient", 0.0f},
            {"norm_coefficient_post", 0.0f},
        },
    .types =
        {
            {"T1", {{1, kFloats32}}},
            {"T2", {{1, kI64}}},
            {"T3", {{1, kFloats32}}},
        },
    .infer = infer_adam,
    .reference = run_adam,
};

}  // namespace tombolo::ops
