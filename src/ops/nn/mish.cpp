#include "ops/schema.h"

namespace tombolo::ops {

constexpr Literal kMish = R"(
soft = Softplus (X)
gate = Tanh (soft)
Y = Mul (X, gate)
)";

OPERATOR(Mish) = {
    .name = "Mish",
    .doc = "x * tanh(log(1 + e^x))",
    .versions = {18, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .types = {{"T", {{18, kFloats}, {22, kBf16}}}},
    .functions =
        {
            {.versions = {.until = 21}, .opset = 18, .text = kMish},
            {.versions = {.since = 22}, .opset = 22, .text = kMish},
        },
};

}  // namespace tombolo::ops
