#include "ops/infer_generic.h"
#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(ScatterND) = {
    .name = "ScatterND",
    .doc = "a copy with elements or slices replaced or combined, placed by tuples of indices",
    .versions = {11, 13, 16, 18},
    .inputs =
        {
            {"data", "T"},
            {"indices", "tensor(int64)"},
            {"updates", "T"},
        },
    .outputs = {{"output", "T"}},
    .attributes = {{"reduction", "none", {.since = 16}}},
    .types = {{"T", {{11, kAll}, {13, kBf16}}}},
    .infer = infer_unary,
};

}  // namespace tombolo::ops
