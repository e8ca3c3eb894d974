#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(GroupNormalization) = {
    .name = "GroupNormalization",
    .doc = "normalises groups of channels of each sample",
    .versions = {18, 21},
    .deprecated = {18},
    .inputs =
        {
            {"X", "T"},
            {"scale", "T"},
            {"bias", "T"},
        },
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"epsilon", 1e-05f},
            {"num_groups", required(Attr::kInt)},
            {"stash_type", 1, {.since = 21}},
        },
    .types = {{"T", {{18, kFloats | kBf16}}}},
    .functions =
        {
            {.versions = {.until = 20}, .opset = 18},
            {.versions = {.since = 21}, .opset = 21},
        },
};

}  // namespace tombolo::ops
