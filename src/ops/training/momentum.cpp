#include "ops/infer_helpers.h"
#include "ops/kernels/optimizer.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

// Of each tensor: X, its gradient G, and its momentum V.
Status run_momentum(KernelContext& context) {
  const double alpha = static_cast<double>(context.attributes.get_float("alpha", 0));
  const double beta = static_cast<double>(context.attributes.get_float("beta", 0));
  const double decay = static_cast<double>(context.attributes.get_float("norm_coefficient", 0));
  const Text mode = context.attributes.get_string("mode", "");
  if (mode != "standard" && mode != "nesterov")
    return context.error("mode \"" + std::string(mode) + "\" is not known");
  return run_optimizer<3, 2>(
      context, [&](const std::array<double, 3>& x, double count, double rate) {
        const double g = decay * x[0] + x[1];
        const double v = alpha * x[2] + (count > 0 ? beta : 1) * g;
        return std::array<double, 2>{x[0] - rate * (mode == "nesterov" ? g + alpha * v : v), v};
      });
}

}  // namespace

namespace {
Status infer_momentum(InferContext& context) {
  // After R and T: values, gradients, momenta; out: new values, new momenta.
  const size_t count = context.input_count() > 2 ? (context.input_count() - 2) / 3 : 0;
  for (size_t i = 0; i < count; ++i) {
    context.same_as_input(i, 2 + i);
    context.same_as_input(count + i, 2 + 2 * count + i);
  }
  return ok();
}
}  // namespace

OPERATOR(Momentum) = {
    .name = "Momentum",
    .domain = "ai.onnx.preview.training",
    .doc = "one step of gradient descent with momentum for each tensor",
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
            {"alpha", required(Attr::kFloat)},
            {"beta", required(Attr::kFloat)},
            {"mode", required(Attr::kString)},
            {"norm_coefficient", required(Attr::kFloat)},
        },
    .types =
        {
            {"T1", {{1, kFloats32}}},
            {"T2", {{1, kI64}}},
            {"T3", {{1, kFloats32}}},
        },
    .infer = infer_momentum,
    .reference = run_momentum,
};

}  // namespace tombolo::ops
