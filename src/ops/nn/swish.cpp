#include "ops/schema.h"

namespace tombolo::ops {

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
};

}  // namespace tombolo::ops
