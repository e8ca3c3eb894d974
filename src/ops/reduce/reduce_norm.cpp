#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(ReduceL1) = {
    .name = "ReduceL1",
    .doc = "sum of absolute values over axes",
    .versions = {1, 11, 13, 18},
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
    .types = {{"T", {{1, kInt32s | kFloats}, {13, kBf16}}}},
    .functions = {{.versions = {.since = 18}, .opset = 18}},
};

OPERATOR(ReduceL2) = {
    .name = "ReduceL2",
    .doc = "square root of the sum of squares over axes",
    .versions = {1, 11, 13, 18},
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
    .types = {{"T", {{1, kInt32s | kFloats}, {13, kBf16}}}},
    .functions = {{.versions = {.since = 18}, .opset = 18}},
};

OPERATOR(ReduceSumSquare) = {
    .name = "ReduceSumSquare",
    .doc = "sum of squares over axes",
    .versions = {1, 11, 13, 18},
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
    .types = {{"T", {{1, kInt32s | kFloats}, {13, kBf16}}}},
    .functions = {{.versions = {.since = 18}, .opset = 18}},
};

}  // namespace tombolo::ops
