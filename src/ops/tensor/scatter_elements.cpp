#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(ScatterElements) = {
    .name = "ScatterElements",
    .doc = "a copy with elements along an axis replaced or combined",
    .versions = {11, 13, 16, 18},
    .inputs =
        {
            {"data", "T"},
            {"indices", "Tind"},
            {"updates", "T"},
        },
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"axis", 0},
            {"reduction", "none", {.since = 16}},
        },
    .types =
        {
            {"T", {{11, kAll}, {13, kBf16}}},
            {"Tind", {{11, kIndices}}},
        },
};

}  // namespace tombolo::ops
