#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(BitCast) = {
    .name = "BitCast",
    .doc = "the same bits read as another element type of equal width",
    .versions = {26},
    .inputs = {{"input", "T1"}},
    .outputs = {{"output", "T2"}},
    .attributes = {{"to", required(Attr::kInt)}},
    .types =
        {
            {"T1",
             {{26, kNumbers | kFp8 | kComplex | kInt4 | kInt2 | kBool | kBf16 | kFp4 | kE8m0}}},
            {"T2",
             {{26, kNumbers | kFp8 | kComplex | kInt4 | kInt2 | kBool | kBf16 | kFp4 | kE8m0}}},
        },
};

}  // namespace tombolo::ops
