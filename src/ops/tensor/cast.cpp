#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Cast) = {
    .name = "Cast",
    .doc = "converts the element type",
    .versions = {1, 6, 9, 13, 19, 21, 23, 24, 25, 28},
    .inputs = {{"input", "T1"}},
    .outputs = {{"output", "T2"}},
    .attributes =
        {
            {"to", required(Attr::kString), {.until = 5}},
            {"to", required(Attr::kInt), {.since = 6}},
            {"saturate", 1, {.since = 19}},
            {"round_mode", "up", {.since = 24}},
        },
    .types =
        {
            {"T1",
             {{1, kNumbers | kBool},
              {9, kStr},
              {13, kBf16},
              {19, kFp8},
              {21, kInt4},
              {23, kFp4},
              {24, kE8m0},
              {25, kInt2},
              {28, kFp6}}},
            {"T2",
             {{1, kNumbers | kBool},
              {9, kStr},
              {13, kBf16},
              {19, kFp8},
              {21, kInt4},
              {23, kFp4},
              {24, kE8m0},
              {25, kInt2},
              {28, kFp6}}},
        },
};

}  // namespace tombolo::ops
