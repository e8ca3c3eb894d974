#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Constant) = {
    .name = "Constant",
    .doc = "a value stored in the node",
    .versions = {1, 9, 11, 12, 13, 19, 21, 23, 24, 25},
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"value", required(Attr::kTensor), {.until = 10}},
            {"value", Attr::kTensor, {.since = 11}},
            {"sparse_value", Attr::kSparseTensor, {.since = 11}},
            {"value_float", Attr::kFloat, {.since = 12}},
            {"value_floats", Attr::kFloats, {.since = 12}},
            {"value_int", Attr::kInt, {.since = 12}},
            {"value_ints", Attr::kInts, {.since = 12}},
            {"value_string", Attr::kString, {.since = 12}},
            {"value_strings", Attr::kStrings, {.since = 12}},
        },
    .types = {{"T",
               {{1, kFloats},
                {9, kInts | kComplex | kStr | kBool},
                {13, kBf16},
                {19, kFp8},
                {21, kInt4},
                {23, kFp4},
                {24, kE8m0},
                {25, kInt2}}}},
};

}  // namespace tombolo::ops
