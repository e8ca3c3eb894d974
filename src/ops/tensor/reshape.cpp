#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Reshape) = {
    .name = "Reshape",
    .doc = "the same elements in another shape",
    .versions = {1, 5, 13, 14, 19, 21, 23, 24, 25},
    .inputs =
        {
            {"data", "T"},
            {"shape", "tensor(int64)", kSingle, {.since = 5}},
        },
    .outputs = {{"reshaped", "T"}},
    .attributes =
        {
            {"consumed_inputs", Attr::kInts, {.until = 4}},
            {"shape", Attr::kInts, {.until = 4}},
            {"allowzero", 0, {.since = 14}},
        },
    .types = {{"T",
               {{1, kFloats},
                {5, kInts | kComplex | kStr | kBool},
                {13, kBf16},
                {19, kFp8},
                {21, kInt4},
                {23, kFp4},
                {24, kE8m0},
                {25, kInt2}}}},
};

}  // namespace tombolo::ops
