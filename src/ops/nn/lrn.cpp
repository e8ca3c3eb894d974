#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(LRN) = {
    .name = "LRN",
    .doc = "normalises by the energy of neighbouring channels",
    .versions = {1, 13},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"alpha", 0.0001f},
            {"beta", 0.75f},
            {"bias", 1.0f},
            {"size", required(Attr::kInt)},
        },
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
};

}  // namespace tombolo::ops
