#include <cmath>

#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_swiglu(KernelContext& context) {
  const float alpha = context.attributes.get_float("alpha", 1.0f);
  return zip<kFamilyFloats>(context,
                            [alpha](auto a, auto b) { return a / (1 + std::exp(-alpha * a)) * b; });
}

}  // namespace

OPERATOR(SwiGLU) = {
    .name = "SwiGLU",
    .doc = "swish(A) * B, the gate of gated feed-forward layers",
    .versions = {28},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"Y", "T"}},
    .attributes = {{"alpha", 1.0f}},
    .types = {{"T", {{28, kFloats | kBf16}}}},
    .functions = {{.opset = 28, .text = R"(
alpha_f = Constant <value_float: float = @alpha> ()
alpha = CastLike (alpha_f, A)
scaled = Mul (alpha, A)
gate = Sigmoid (scaled)
swish = Mul (A, gate)
Y = Mul (swish, B)
)"}},

    .infer = infer_unary,
    .reference = run_swiglu,
};

}  // namespace tombolo::ops
