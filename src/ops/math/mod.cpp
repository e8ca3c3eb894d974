#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Mod) = {
    .name = "Mod",
    .doc = "remainder of a / b: sign of b (integers), or of a with fmod=1",
    .versions = {10, 13, 28},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T"}},
    .attributes = {{"fmod", 0}},
    .types = {{"T", {{10, kNumbers}, {13, kBf16}}}},
};

}  // namespace tombolo::ops
