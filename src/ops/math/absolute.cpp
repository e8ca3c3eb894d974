#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Abs) = {
    .name = "Abs",
    .doc = "y = |x|, element by element",
    .versions = {1, 6, 13},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {6, kInts}, {13, kBf16}}}},
};

OPERATOR(Neg) = {
    .name = "Neg",
    .doc = "y = -x",
    .versions = {1, 6, 13},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {6, kSigned}, {13, kBf16}}}},
};

OPERATOR(Sign) = {
    .name = "Sign",
    .doc = "-1, 0 or 1 by the sign of x",
    .versions = {9, 13},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{9, kNumbers}, {13, kBf16}}}},
};

}  // namespace tombolo::ops
