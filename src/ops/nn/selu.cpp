#include <cmath>

#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"
#include "ops/step_context.h"

namespace tombolo::ops {

namespace {

Status run_selu(KernelContext& context) {
  // The defaults of operator set 1 were the same numbers, cut to four places.
  const bool first = context.opset < 6;
  const float alpha =
      context.attributes.get_float("alpha", first ? 1.6732f : 1.67326319217681884765625f);
  const float gamma =
      context.attributes.get_float("gamma", first ? 1.0507f : 1.05070102214813232421875f);
  return map(context,
             [alpha, gamma](auto x) { return gamma * (x > 0 ? x : alpha * std::expm1(x)); });
}

}  // namespace

namespace {

/// The defaults got more digits.
Status step_default_coefficients(StepContext& step) {
  if (!step.has("alpha")) step.node.set_float("alpha", 1.6732f);
  if (!step.has("gamma")) step.node.set_float("gamma", 1.0507f);
  return ok();
}

}  // namespace

OPERATOR(Selu) = {
    .name = "Selu",
    .doc = "gamma * x, or gamma * alpha * (e^x - 1) below zero",
    .versions = {1, 6, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"alpha", 1.6732f, {.until = 5}},
            {"alpha", 1.6732632f, {.since = 6}},
            {"consumed_inputs", Attr::kInts, {.until = 5}},
            {"gamma", 1.0507f, {.until = 5}},
            {"gamma", 1.050701f, {.since = 6}},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
    .functions = {{.versions = {.since = 6}, .opset = 18, .text = R"(
alpha_f = Constant <value_float: float = @alpha> ()
alpha = CastLike (alpha_f, X)
gamma_f = Constant <value_float: float = @gamma> ()
gamma = CastLike (gamma_f, X)
zero_f = Constant <value = float {0}> ()
zero = CastLike (zero_f, X)
exponential = Exp (X)
rising = Mul (alpha, exponential)
below = Sub (rising, alpha)
negative = Less (X, zero)
elu = Where (negative, below, X)
Y = Mul (gamma, elu)
)"}},

    .infer = infer_unary,
    .reference = run_selu,
    .up = {{1, 6, step_default_coefficients}},
};

}  // namespace tombolo::ops
