#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(ThresholdedRelu) = {
    .name = "ThresholdedRelu",
    .doc = "x above alpha, else 0",
    .versions = {10, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"alpha", 1.0f}},
    .types = {{"T", {{10, kFloats}, {22, kBf16}}}},
    .functions = {{.opset = 18, .text = R"(
alpha_f = Constant <value_float: float = @alpha> ()
alpha = CastLike (alpha_f, X)
zero_f = Constant <value = float {0}> ()
zero = CastLike (zero_f, X)
above = Greater (X, alpha)
Y = Where (above, X, zero)
)"}},
};

}  // namespace tombolo::ops
