#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Upsample) = {
    .name = "Upsample",
    .doc = "old, simpler form of Resize",
    .versions = {1, 7, 9, 10},
    .deprecated = {10},
    .inputs =
        {
            {"X", "T"},
            {"scales", "tensor(float)", kSingle, {.since = 9}},
        },
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"height_scale", required(Attr::kFloat), {.until = 6}},
            {"mode", "nearest"},
            {"width_scale", required(Attr::kFloat), {.until = 6}},
            {"scales", required(Attr::kFloats), {.since = 7, .until = 8}},
        },
    .types = {{"T",
               {{1, kFloats | kIndices | kBool}, {7, kUnsigned | kComplex | kI8 | kI16 | kStr}}}},
};

}  // namespace tombolo::ops
