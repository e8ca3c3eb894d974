#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(GatherElements) = {
    .name = "GatherElements",
    .doc = "elements picked along an axis, one index an element",
    .versions = {11, 13},
    .inputs =
        {
            {"data", "T"},
            {"indices", "Tind"},
        },
    .outputs = {{"output", "T"}},
    .attributes = {{"axis", 0}},
    .types =
        {
            {"T", {{11, kAll}, {13, kBf16}}},
            {"Tind", {{11, kIndices}}},
        },
};

}  // namespace tombolo::ops
