#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(SplitToSequence) = {
    .name = "SplitToSequence",
    .doc = "cuts a tensor into a sequence of parts",
    .versions = {11, 24},
    .inputs =
        {
            {"input", "T"},
            {"split", "I", kOptional},
        },
    .outputs = {{"output_sequence", "S"}},
    .attributes =
        {
            {"axis", 0},
            {"keepdims", 1},
        },
    .types =
        {
            {"T", {{11, kAll}, {24, kBf16}}},
            {"I", {{11, kIndices}}},
            {"S", {{11, seq_of(kAll)}, {24, seq_of(kBf16)}}},
        },
};

}  // namespace tombolo::ops
