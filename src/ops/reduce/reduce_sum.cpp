#include "ops/infer_generic.h"
#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(ReduceSum) = {
    .name = "ReduceSum",
    .doc = "sum over axes",
    .versions = {1, 11, 13},
    .inputs =
        {
            {"data", "T"},
            {"axes", "tensor(int64)", kOptional, {.since = 13}},
        },
    .outputs = {{"reduced", "T"}},
    .attributes =
        {
            {"axes", Attr::kInts, {.until = 12}},
            {"keepdims", 1},
            {"noop_with_empty_axes", 0, {.since = 13}},
        },
    .types = {{"T", {{1, kInt32s | kFloats}, {13, kBf16}}}},
    .infer = infer_reduce,
};

}  // namespace tombolo::ops
