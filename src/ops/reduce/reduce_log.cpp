#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(ReduceLogSum) = {
    .name = "ReduceLogSum",
    .doc = "logarithm of the sum over axes",
    .versions = {1, 11, 13, 18, 28},
    .inputs =
        {
            {"data", "T"},
            {"axes", "tensor(int64)", kOptional, {.since = 18}},
        },
    .outputs = {{"reduced", "T"}},
    .attributes =
        {
            {"axes", Attr::kInts, {.until = 17}},
            {"keepdims", 1},
            {"noop_with_empty_axes", 0, {.since = 18}},
        },
    .types =
        {
            {"T", {{1, kInt32s | kFloats}, {13, kBf16}}, {.until = 27}},
            {"T", {{28, kFloats | kBf16}}, {.since = 28}},
        },
    .functions =
        {
            {.versions = {.since = 18, .until = 27}, .opset = 18},
            {.versions = {.since = 28}, .opset = 28},
        },
};

OPERATOR(ReduceLogSumExp) = {
    .name = "ReduceLogSumExp",
    .doc = "logarithm of the sum of exponentials over axes",
    .versions = {1, 11, 13, 18, 28},
    .inputs =
        {
            {"data", "T"},
            {"axes", "tensor(int64)", kOptional, {.since = 18}},
        },
    .outputs = {{"reduced", "T"}},
    .attributes =
        {
            {"axes", Attr::kInts, {.until = 17}},
            {"keepdims", 1},
            {"noop_with_empty_axes", 0, {.since = 18}},
        },
    .types =
        {
            {"T", {{1, kInt32s | kFloats}, {13, kBf16}}, {.until = 27}},
            {"T", {{28, kFloats | kBf16}}, {.since = 28}},
        },
    .functions =
        {
            {.versions = {.since = 18, .until = 27}, .opset = 18},
            {.versions = {.since = 28}, .opset = 28},
        },
};

}  // namespace tombolo::ops
