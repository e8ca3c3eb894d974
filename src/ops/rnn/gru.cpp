#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(GRU) = {
    .name = "GRU",
    .doc = "gated recurrent unit layer",
    .versions = {1, 3, 7, 14, 22},
    .inputs =
        {
            {"X", "T"},
            {"W", "T"},
            {"R", "T"},
            {"B", "T", kOptional},
            {"sequence_lens", "T1", kOptional},
            {"initial_h", "T", kOptional},
        },
    .outputs =
        {
            {"Y", "T", kOptional},
            {"Y_h", "T", kSingle, {.until = 2}},
            {"Y_h", "T", kOptional, {.since = 3}},
        },
    .attributes =
        {
            {"activation_alpha", Attr::kFloats},
            {"activation_beta", Attr::kFloats},
            {"activations", Attr::kStrings},
            {"clip", Attr::kFloat},
            {"direction", "foward", {.until = 2}},
            {"direction", "forward", {.since = 3}},
            {"hidden_size", Attr::kInt},
            {"output_sequence", 0, {.until = 6}},
            {"linear_before_reset", 0, {.since = 3}},
            {"layout", 0, {.since = 14}},
        },
    .types =
        {
            {"T", {{1, kFloats}, {22, kBf16}}},
            {"T1", {{1, kI32}}},
        },
};

}  // namespace tombolo::ops
