#include <cmath>

#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_swish(KernelContext& context) {
  const float alpha = context.attributes.get_float("alpha", 1.0f);
  return map(context, [alpha](auto x) { return x / (1 + std::exp(-alpha * x)); });
}

}  // namespace

OPERATOR(Swish) = {
    .name = "Swish",
    .doc = "x * sigmoid(alpha * x)",
    .versions = {24},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"alpha", 1.0f}},
    .types = {{"T", {{24, kFloats | kBf16}}}},
    .functions = {{.opset = 24, .text = R"(
alpha_f = Constant <value_float: float = @alpha> ()
alpha = CastLike (alpha_f, X)
scaled = Mul (alpha, X)
gate = Sigmoid (scaled)
Y = Mul (X, gate)
)"}},

    .infer = infer_unary,
    .reference = run_swish,
};

}  // namespace tombolo::ops
