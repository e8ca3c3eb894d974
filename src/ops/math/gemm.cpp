#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Gemm) = {
    .name = "Gemm",
    .doc = "alpha * A' * B' + beta * C, with A and B transposed on request",
    .versions = {1, 6, 7, 9, 11, 13},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
            {"C", "T", kSingle, {.until = 10}},
            {"C", "T", kOptional, {.since = 11}},
        },
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"alpha", 1.0f},
            {"beta", 1.0f},
            {"broadcast", 0, {.until = 6}},
            {"transA", 0},
            {"transB", 0},
        },
    .types = {{"T", {{1, kFloats}, {9, kInt32s}, {13, kBf16}}}},
};

}  // namespace tombolo::ops
