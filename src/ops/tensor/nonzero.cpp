#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(NonZero) = {
    .name = "NonZero",
    .doc = "coordinates of the elements that are not zero, in row-major order",
    .versions = {9, 13},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "tensor(int64)"}},
    .types = {{"T", {{9, kAll}, {13, kBf16}}}},
};

}  // namespace tombolo::ops
