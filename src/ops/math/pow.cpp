#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Pow) = {
    .name = "Pow",
    .doc = "x to the power of y with broadcasting, in the type of x",
    .versions = {1, 7, 12, 13, 15},
    .inputs =
        {
            {"X", "T"},
            {"Y", "T", kSingle, {.until = 11}},
            {"Y", "T1", kSingle, {.since = 12}},
        },
    .outputs = {{"Z", "T"}},
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 6}},
            {"broadcast", 0, {.until = 6}},
        },
    .types =
        {
            {"T", {{1, kFloats}, {12, kIndices}, {13, kBf16}}},
            {"T1", {{12, kNumbers}, {15, kBf16}}, {.since = 12}},
        },
};

}  // namespace tombolo::ops
