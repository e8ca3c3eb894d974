#include "ops/infer_generic.h"
#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(ReduceMean) = {
    .name = "ReduceMean",
    .doc = "mean over axes",
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
    .infer = infer_reduce,
};

OPERATOR(ReduceProd) = {
    .name = "ReduceProd",
    .doc = "product over axes",
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
    .infer = infer_reduce,
};

}  // namespace tombolo::ops
