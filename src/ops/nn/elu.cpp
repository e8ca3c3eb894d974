#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Elu) = {
    .name = "Elu",
    .doc = "x, or alpha * (e^x - 1) below zero",
    .versions = {1, 6, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"alpha", 1.0f},
            {"consumed_inputs", Attr::kInts, {.until = 5}},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
    .functions = {{.versions = {.since = 6}, .opset = 18}},
};

}  // namespace tombolo::ops
