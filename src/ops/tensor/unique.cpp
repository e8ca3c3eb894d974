#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Unique) = {
    .name = "Unique",
    .doc = "distinct elements or slices, with first places, inverse and counts",
    .versions = {11, 28},
    .inputs = {{"X", "T"}},
    .outputs =
        {
            {"Y", "T"},
            {"indices", "tensor(int64)", kOptional},
            {"inverse_indices", "tensor(int64)", kOptional},
            {"counts", "tensor(int64)", kOptional},
        },
    .attributes =
        {
            {"axis", Attr::kInt},
            {"sorted", 1},
        },
    .types = {{"T", {{11, kAll}, {28, kBf16}}}},
};

}  // namespace tombolo::ops
