#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Squeeze) = {
    .name = "Squeeze",
    .doc = "removes axes of length 1",
    .versions = {1, 11, 13, 21, 23, 24, 25},
    .inputs =
        {
            {"data", "T"},
            {"axes", "tensor(int64)", kOptional, {.since = 13}},
        },
    .outputs = {{"squeezed", "T"}},
    .attributes = {{"axes", Attr::kInts, {.until = 12}}},
    .types = {{"T",
               {{1, kAll}, {13, kBf16}, {21, kFp8 | kInt4}, {23, kFp4}, {24, kE8m0}, {25, kInt2}}}},
};

}  // namespace tombolo::ops
