#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Flatten) = {
    .name = "Flatten",
    .doc = "a matrix of the axes before and from `axis`",
    .versions = {1, 9, 11, 13, 21, 23, 24, 25},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .attributes = {{"axis", 1}},
    .types = {{"T",
               {{1, kFloats},
                {9, kInts | kComplex | kStr | kBool},
                {13, kBf16},
                {21, kFp8 | kInt4},
                {23, kFp4},
                {24, kE8m0},
                {25, kInt2}}}},
};

}  // namespace tombolo::ops
