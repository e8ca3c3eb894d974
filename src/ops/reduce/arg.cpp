#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(ArgMax) = {
    .name = "ArgMax",
    .doc = "index of the maximum along an axis",
    .versions = {1, 11, 12, 13},
    .inputs = {{"data", "T"}},
    .outputs = {{"reduced", "tensor(int64)"}},
    .attributes =
        {
            {"axis", 0},
            {"keepdims", 1},
            {"select_last_index", 0, {.since = 12}},
        },
    .types = {{"T", {{1, kNumbers}, {13, kBf16}}}},
};

OPERATOR(ArgMin) = {
    .name = "ArgMin",
    .doc = "index of the minimum along an axis",
    .versions = {1, 11, 12, 13},
    .inputs = {{"data", "T"}},
    .outputs = {{"reduced", "tensor(int64)"}},
    .attributes =
        {
            {"axis", 0},
            {"keepdims", 1},
            {"select_last_index", 0, {.since = 12}},
        },
    .types = {{"T", {{1, kNumbers}, {13, kBf16}}}},
};

}  // namespace tombolo::ops
