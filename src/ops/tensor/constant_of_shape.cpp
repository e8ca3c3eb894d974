#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(ConstantOfShape) = {
    .name = "ConstantOfShape",
    .doc = "a tensor of a given shape filled with one value",
    .versions = {9, 20, 21, 23, 24, 25},
    .inputs = {{"input", "T1"}},
    .outputs = {{"output", "T2"}},
    .attributes = {{"value", Attr::kTensor}},
    .types =
        {
            {"T1", {{9, kI64}}},
            {"T2",
             {{9, kNumbers | kBool},
              {20, kFp8 | kBf16},
              {21, kInt4},
              {23, kFp4},
              {24, kE8m0},
              {25, kInt2}}},
        },
};

}  // namespace tombolo::ops
