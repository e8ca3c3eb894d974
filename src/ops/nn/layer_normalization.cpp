#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(LayerNormalization) = {
    .name = "LayerNormalization",
    .doc = "normalises the axes from `axis` on to mean 0 and variance 1, then scales",
    .versions = {17},
    .inputs =
        {
            {"X", "T"},
            {"Scale", "T"},
            {"B", "T", kOptional},
        },
    .outputs =
        {
            {"Y", "T"},
            {"Mean", "U", kOptional},
            {"InvStdDev", "U", kOptional},
        },
    .attributes =
        {
            {"axis", -1},
            {"epsilon", 1e-05f},
            {"stash_type", 1},
        },
    .types =
        {
            {"T", {{17, kFloats | kBf16}}},
            {"U", {{17, kF32 | kBf16}}},
        },
    .functions =
        {
            {.opset = 17},
            {.opset = 18},
        },
};

}  // namespace tombolo::ops
