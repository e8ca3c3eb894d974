#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Tile) = {
    .name = "Tile",
    .doc = "repeats along each axis",
    .versions = {1, 6, 13},
    .inputs =
        {
            {"input", "T"},
            {"tiles", "T", kSingle, {.until = 5}},
            {"axis", "T", kSingle, {.until = 5}},
            {"repeats", "T1", kSingle, {.since = 6}},
        },
    .outputs = {{"output", "T"}},
    .types =
        {
            {"T", {{1, kFloats}, {6, kInts | kComplex | kStr | kBool}, {13, kBf16}}},
            {"T1", {{1, kI64}}},
        },
};

}  // namespace tombolo::ops
