#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Det) = {
    .name = "Det",
    .doc = "determinant of the matrices in the last two axes",
    .versions = {11, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .types = {{"T", {{11, kFloats}, {22, kBf16}}}},
};

}  // namespace tombolo::ops
