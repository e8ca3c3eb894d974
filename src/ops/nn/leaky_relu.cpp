#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(LeakyRelu) = {
    .name = "LeakyRelu",
    .doc = "x, or alpha * x below zero",
    .versions = {1, 6, 16},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"alpha", 0.01f},
            {"consumed_inputs", Attr::kInts, {.until = 5}},
        },
    .types = {{"T", {{1, kFloats}, {16, kBf16}}}},
    .functions = {{.versions = {.since = 16}, .opset = 16}},
};

}  // namespace tombolo::ops
