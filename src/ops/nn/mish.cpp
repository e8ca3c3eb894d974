#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Mish) = {
    .name = "Mish",
    .doc = "x * tanh(log(1 + e^x))",
    .versions = {18, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .types = {{"T", {{18, kFloats}, {22, kBf16}}}},
    .functions =
        {
            {.versions = {.until = 21}, .opset = 18},
            {.versions = {.since = 22}, .opset = 22},
        },
};

}  // namespace tombolo::ops
