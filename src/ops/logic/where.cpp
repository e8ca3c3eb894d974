#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Where) = {
    .name = "Where",
    .doc = "x where the condition holds, else y, with broadcasting",
    .versions = {9, 16},
    .inputs =
        {
            {"condition", "B"},
            {"X", "T"},
            {"Y", "T"},
        },
    .outputs = {{"output", "T"}},
    .types =
        {
            {"B", {{9, kBool}}},
            {"T", {{9, kAll}, {16, kBf16}}},
        },
};

}  // namespace tombolo::ops
