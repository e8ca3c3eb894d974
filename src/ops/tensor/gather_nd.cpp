#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(GatherND) = {
    .name = "GatherND",
    .doc = "elements or slices picked by tuples of indices",
    .versions = {11, 12, 13},
    .inputs =
        {
            {"data", "T"},
            {"indices", "tensor(int64)"},
        },
    .outputs = {{"output", "T"}},
    .attributes = {{"batch_dims", 0, {.since = 12}}},
    .types = {{"T", {{11, kAll}, {13, kBf16}}}},
};

}  // namespace tombolo::ops
