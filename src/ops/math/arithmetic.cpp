#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Add) = {
    .name = "Add",
    .doc = "a + b with broadcasting",
    .versions = {1, 6, 7, 13, 14},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T"}},
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 6}},
            {"broadcast", 0, {.until = 6}},
            {"consumed_inputs", Attr::kInts, {.until = 5}},
        },
    .types = {{"T", {{1, kFloats}, {6, kInt32s}, {13, kBf16}, {14, kInt8s | kInt16s}}}},
};

OPERATOR(Sub) = {
    .name = "Sub",
    .doc = "a - b with broadcasting",
    .versions = {1, 6, 7, 13, 14},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T"}},
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 6}},
            {"broadcast", 0, {.until = 6}},
            {"consumed_inputs", Attr::kInts, {.until = 5}},
        },
    .types = {{"T", {{1, kFloats}, {6, kInt32s}, {13, kBf16}, {14, kInt8s | kInt16s}}}},
};

OPERATOR(Mul) = {
    .name = "Mul",
    .doc = "a * b with broadcasting",
    .versions = {1, 6, 7, 13, 14},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T"}},
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 6}},
            {"broadcast", 0, {.until = 6}},
            {"consumed_inputs", Attr::kInts, {.until = 5}},
        },
    .types = {{"T", {{1, kFloats}, {6, kInt32s}, {13, kBf16}, {14, kInt8s | kInt16s}}}},
};

OPERATOR(Div) = {
    .name = "Div",
    .doc = "a / b with broadcasting; integers truncate towards zero",
    .versions = {1, 6, 7, 13, 14},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T"}},
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 6}},
            {"broadcast", 0, {.until = 6}},
            {"consumed_inputs", Attr::kInts, {.until = 5}},
        },
    .types = {{"T", {{1, kFloats}, {6, kInt32s}, {13, kBf16}, {14, kInt8s | kInt16s}}}},
};

}  // namespace tombolo::ops
