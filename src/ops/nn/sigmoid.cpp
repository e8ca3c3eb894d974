#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Sigmoid) = {
    .name = "Sigmoid",
    .doc = "1 / (1 + e^-x)",
    .versions = {1, 6, 13},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
};

}  // namespace tombolo::ops
