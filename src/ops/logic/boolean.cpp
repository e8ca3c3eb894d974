#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(And) = {
    .name = "And",
    .doc = "a and b with broadcasting",
    .versions = {1, 7},
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
            {"T", {{1, kBool}}},
            {"T1", {{1, kBool}}},
        },
};

OPERATOR(Or) = {
    .name = "Or",
    .doc = "a or b with broadcasting",
    .versions = {1, 7},
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
            {"T", {{1, kBool}}},
            {"T1", {{1, kBool}}},
        },
};

OPERATOR(Xor) = {
    .name = "Xor",
    .doc = "exactly one of a and b, with broadcasting",
    .versions = {1, 7},
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
            {"T", {{1, kBool}}},
            {"T1", {{1, kBool}}},
        },
};

OPERATOR(Not) = {
    .name = "Not",
    .doc = "negation",
    .versions = {1},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .types = {{"T", {{1, kBool}}}},
};

}  // namespace tombolo::ops
