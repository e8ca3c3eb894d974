#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(PRelu) = {
    .name = "PRelu",
    .doc = "x, or slope * x below zero, the slope being a tensor",
    .versions = {1, 6, 7, 9, 16},
    .inputs =
        {
            {"X", "T"},
            {"slope", "T"},
        },
    .outputs = {{"Y", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {9, kInt32s}, {16, kBf16}}}},
    .functions = {{.versions = {.since = 16}, .opset = 16, .text = R"(
zero_f = Constant <value = float {0}> ()
zero = CastLike (zero_f, X)
negative = Less (X, zero)
scaled = Mul (slope, X)
Y = Where (negative, scaled, X)
)"}},
};

}  // namespace tombolo::ops
