#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(InstanceNormalization) = {
    .name = "InstanceNormalization",
    .doc = "normalises each channel of each sample",
    .versions = {1, 6, 22},
    .inputs =
        {
            {"input", "T"},
            {"scale", "T"},
            {"B", "T"},
        },
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"consumed_inputs", Attr::kInts, {.until = 5}},
            {"epsilon", 1e-05f},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
};

}  // namespace tombolo::ops
