#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Range) = {
    .name = "Range",
    .doc = "start, start + delta, ... up to but without limit",
    .versions = {11, 27},
    .inputs =
        {
            {"start", "T"},
            {"limit", "T"},
            {"delta", "T"},
        },
    .outputs = {{"output", "T"}},
    .attributes = {{"stash_type", 1, {.since = 27}}},
    .types = {{"T", {{11, kFloats32 | kIndices | kI16}, {27, kF16 | kBf16}}}},
    .functions =
        {
            {.versions = {.until = 26}, .opset = 11},
            {.versions = {.since = 27}, .opset = 27},
        },
};

}  // namespace tombolo::ops
