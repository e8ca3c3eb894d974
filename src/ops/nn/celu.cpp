#include <cmath>

#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_celu(KernelContext& context) {
  const float alpha = context.attributes.get_float("alpha", 1.0f);
  return map(context, [alpha](auto x) { return x > 0 ? x : alpha * std::expm1(x / alpha); });
}

}  // namespace

OPERATOR(Celu) = {
    .name = "Celu",
    .doc = "max(x, 0) + min(alpha * (e^(x / alpha) - 1), 0)",
    .versions = {12, 28},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"alpha", 1.0f}},
    .types = {{"T", {{12, kF32}, {28, kF16 | kF64 | kBf16}}}},
    .functions =
        {
            {.versions = {.until = 27}, .opset = 12, .text = R"(
alpha = Constant <value_float: float = @alpha> ()
inner = Div (X, alpha)
unit = Elu <alpha = 1.0> (inner)
Y = Mul (alpha, unit)
)"},
            {.versions = {.since = 28}, .opset = 28, .text = R"(
alpha_f = Constant <value_float: float = @alpha> ()
alpha = CastLike (alpha_f, X)
inner = Div (X, alpha)
unit = Elu <alpha = 1.0> (inner)
Y = Mul (alpha, unit)
)"},
        },
    .infer = infer_unary,
    .reference = run_celu,
};

}  // namespace tombolo::ops
