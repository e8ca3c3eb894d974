#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(LpNormalization) = {
    .name = "LpNormalization",
    .doc = "divides by the p-norm along an axis",
    .versions = {1, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"axis", -1},
            {"p", 2},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
};

}  // namespace tombolo::ops
