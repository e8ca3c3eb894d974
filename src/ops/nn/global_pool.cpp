#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(GlobalAveragePool) = {
    .name = "GlobalAveragePool",
    .doc = "mean over all spatial axes",
    .versions = {1, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
};

OPERATOR(GlobalMaxPool) = {
    .name = "GlobalMaxPool",
    .doc = "maximum over all spatial axes",
    .versions = {1, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
};

OPERATOR(GlobalLpPool) = {
    .name = "GlobalLpPool",
    .doc = "p-norm over all spatial axes",
    .versions = {1, 2, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"p", 2.0f, {.until = 1}},
            {"p", 2, {.since = 2}},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
};

}  // namespace tombolo::ops
