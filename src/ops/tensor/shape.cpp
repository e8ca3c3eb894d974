#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Shape) = {
    .name = "Shape",
    .doc = "the dimensions as int64, or a range of them",
    .versions = {1, 13, 15, 19, 21, 23, 24, 25},
    .inputs = {{"data", "T"}},
    .outputs = {{"shape", "T1"}},
    .attributes =
        {
            {"end", Attr::kInt, {.since = 15}},
            {"start", 0, {.since = 15}},
        },
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
