#include "ops/infer_generic.h"
#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(ReduceMax) = {
    .name = "ReduceMax",
    .doc = "maximum over axes",
    .versions = {1, 11, 12, 13, 18, 20},
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
    .types = {{"T", {{1, kInt32s | kFloats}, {12, kInt8s}, {13, kBf16}, {20, kBool}}}},
    .infer = infer_reduce,
};

OPERATOR(ReduceMin) = {
    .name = "ReduceMin",
    .doc = "minimum over axes",
    .versions = {1, 11, 12, 13, 18, 20},
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
    .types = {{"T", {{1, kInt32s | kFloats}, {12, kInt8s}, {13, kBf16}, {20, kBool}}}},
    .infer = infer_reduce,
};

}  // namespace tombolo::ops
