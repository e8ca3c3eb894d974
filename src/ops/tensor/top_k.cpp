#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(TopK) = {
    .name = "TopK",
    .doc = "the k largest or smallest elements along an axis, and their indices",
    .versions = {1, 10, 11, 24},
    .inputs =
        {
            {"X", "T"},
            {"K", "tensor(int64)", kSingle, {.since = 10}},
        },
    .outputs =
        {
            {"Values", "T"},
            {"Indices", "I"},
        },
    .attributes =
        {
            {"axis", -1},
            {"k", required(Attr::kInt), {.until = 9}},
            {"largest", 1, {.since = 11}},
            {"sorted", 1, {.since = 11}},
        },
    .types =
        {
            {"T", {{1, kFloats}, {11, kInts}, {24, kBf16}}},
            {"I", {{1, kI64}}},
        },
};

}  // namespace tombolo::ops
