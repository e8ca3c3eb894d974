#include "ops/schema.h"

namespace tombolo::ops {

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
};

}  // namespace tombolo::ops
