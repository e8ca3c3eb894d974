#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Gather) = {
    .name = "Gather",
    .doc = "slices along an axis picked by an index tensor",
    .versions = {1, 11, 13},
    .inputs =
        {
            {"data", "T"},
            {"indices", "Tind"},
        },
    .outputs = {{"output", "T"}},
    .attributes = {{"axis", 0}},
    .types =
        {
            {"T", {{1, kAll}, {13, kBf16}}},
            {"Tind", {{1, kIndices}}},
        },
};

}  // namespace tombolo::ops
