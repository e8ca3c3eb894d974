#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Transpose) = {
    .name = "Transpose",
    .doc = "permutes the axes; reverses them by default",
    .versions = {1, 13, 21, 23, 24, 25},
    .inputs = {{"data", "T"}},
    .outputs = {{"transposed", "T"}},
    .attributes = {{"perm", Attr::kInts}},
    .types = {{"T",
               {{1, kAll}, {13, kBf16}, {21, kFp8 | kInt4}, {23, kFp4}, {24, kE8m0}, {25, kInt2}}}},
};

}  // namespace tombolo::ops
