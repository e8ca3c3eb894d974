#include <cmath>

#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_elu(KernelContext& context) {
  const float alpha = context.attributes.get_float("alpha", 1.0f);
  return map(context, [alpha](auto x) { return x < 0 ? alpha * std::expm1(x) : x; });
}

}  // namespace

OPERATOR(Elu) = {
    .name = "Elu",
    .doc = "x, or alpha * (e^x - 1) below zero",
    .versions = {1, 6, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"alpha", 1.0f},
            {"consumed_inputs", Attr::kInts, {.until = 5}},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
    .functions = {{.versions = {.since = 6}, .opset = 18, .text = R"(
alpha_f = Constant <value_float: float = @alpha> ()
alpha = CastLike (alpha_f, X)
zero_f = Constant <value = float {0}> ()
zero = CastLike (zero_f, X)
one_f = Constant <value = float {1}> ()
one = CastLike (one_f, X)
negative = Less (X, zero)
exponential = Exp (X)
below = Sub (exponential, one)
scaled = Mul (alpha, below)
Y = Where (negative, scaled, X)
)"}},

    .infer = infer_unary,
    .reference = run_elu,
};

}  // namespace tombolo::ops
