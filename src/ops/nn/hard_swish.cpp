#include "ops/schema.h"

namespace tombolo::ops {

constexpr Literal kHardSwish = R"(
gate = HardSigmoid <alpha = 0.16666667, beta = 0.5> (X)
Y = Mul (X, gate)
)";

OPERATOR(HardSwish) = {
    .name = "HardSwish",
    .doc = "x * max(0, min(1, x / 6 + 1/2))",
    .versions = {14, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .types = {{"T", {{14, kFloats}, {22, kBf16}}}},
    .functions =
        {
            {.versions = {.until = 21}, .opset = 14, .text = kHardSwish},
            {.versions = {.since = 22}, .opset = 22, .text = kHardSwish},
        },
};

}  // namespace tombolo::ops
