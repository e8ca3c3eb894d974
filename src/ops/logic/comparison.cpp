#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Equal) = {
    .name = "Equal",
    .doc = "a == b with broadcasting",
    .versions = {1, 7, 11, 13, 19},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T1"}},
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 6}},
            {"broadcast", 0, {.until = 6}},
        },
    .types =
        {
            {"T",
             {{1, kIndices | kBool},
              {11, kUnsigned | kFloats | kI8 | kI16},
              {13, kBf16},
              {19, kStr}}},
            {"T1", {{1, kBool}}},
        },
};

OPERATOR(Greater) = {
    .name = "Greater",
    .doc = "a > b with broadcasting",
    .versions = {1, 7, 9, 13},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T1"}},
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 6}},
            {"broadcast", 0, {.until = 6}},
        },
    .types =
        {
            {"T", {{1, kFloats}, {9, kInts}, {13, kBf16}}},
            {"T1", {{1, kBool}}},
        },
};

OPERATOR(Less) = {
    .name = "Less",
    .doc = "a < b with broadcasting",
    .versions = {1, 7, 9, 13},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T1"}},
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 6}},
            {"broadcast", 0, {.until = 6}},
        },
    .types =
        {
            {"T", {{1, kFloats}, {9, kInts}, {13, kBf16}}},
            {"T1", {{1, kBool}}},
        },
};

constexpr Literal kGreaterOrEqual = R"(
strict = Greater (A, B)
equal = Equal (A, B)
C = Or (strict, equal)
)";

OPERATOR(GreaterOrEqual) = {
    .name = "GreaterOrEqual",
    .doc = "a >= b with broadcasting",
    .versions = {12, 16},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T1"}},
    .types =
        {
            {"T", {{12, kNumbers}, {16, kBf16}}},
            {"T1", {{12, kBool}}},
        },
    .functions =
        {
            {.versions = {.until = 15}, .opset = 12, .text = kGreaterOrEqual},
            {.versions = {.since = 16}, .opset = 16, .text = kGreaterOrEqual},
        },
};

constexpr Literal kLessOrEqual = R"(
strict = Less (A, B)
equal = Equal (A, B)
C = Or (strict, equal)
)";

OPERATOR(LessOrEqual) = {
    .name = "LessOrEqual",
    .doc = "a <= b with broadcasting",
    .versions = {12, 16},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T1"}},
    .types =
        {
            {"T", {{12, kNumbers}, {16, kBf16}}},
            {"T1", {{12, kBool}}},
        },
    .functions =
        {
            {.versions = {.until = 15}, .opset = 12, .text = kLessOrEqual},
            {.versions = {.since = 16}, .opset = 16, .text = kLessOrEqual},
        },
};

}  // namespace tombolo::ops
