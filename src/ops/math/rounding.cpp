#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Ceil) = {
    .name = "Ceil",
    .doc = "smallest integer not below x",
    .versions = {1, 6, 13},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
};

OPERATOR(Floor) = {
    .name = "Floor",
    .doc = "largest integer not above x",
    .versions = {1, 6, 13},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
};

OPERATOR(Round) = {
    .name = "Round",
    .doc = "nearest integer, halves to even",
    .versions = {11, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .types = {{"T", {{11, kFloats}, {22, kBf16}}}},
};

}  // namespace tombolo::ops
