#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Size) = {
    .name = "Size",
    .doc = "the number of elements as int64",
    .versions = {1, 13, 19, 21, 23, 24, 25},
    .inputs = {{"data", "T"}},
    .outputs = {{"size", "T1"}},
    .types =
        {
            {"T",
             {{1, kAll},
              {13, kBf16},
              {19, kFp8},
              {21, kInt4},
              {23, kFp4},
              {24, kE8m0},
              {25, kInt2}}},
            {"T1", {{1, kI64}}},
        },
};

}  // namespace tombolo::ops
