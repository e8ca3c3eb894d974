#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Selu) = {
    .name = "Selu",
    .doc = "gamma * x, or gamma * alpha * (e^x - 1) below zero",
    .versions = {1, 6, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"alpha", 1.6732f, {.until = 5}},
            {"alpha", 1.6732632f, {.since = 6}},
            {"consumed_inputs", Attr::kInts, {.until = 5}},
            {"gamma", 1.0507f, {.until = 5}},
            {"gamma", 1.050701f, {.since = 6}},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
    .functions = {{.versions = {.since = 6}, .opset = 18}},
};

}  // namespace tombolo::ops
