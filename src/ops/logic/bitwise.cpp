#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(BitwiseAnd) = {
    .name = "BitwiseAnd",
    .doc = "bits set in both",
    .versions = {18},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T"}},
    .types = {{"T", {{18, kInts}}}},
};

OPERATOR(BitwiseOr) = {
    .name = "BitwiseOr",
    .doc = "bits set in either",
    .versions = {18},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T"}},
    .types = {{"T", {{18, kInts}}}},
};

OPERATOR(BitwiseXor) = {
    .name = "BitwiseXor",
    .doc = "bits set in exactly one",
    .versions = {18},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T"}},
    .types = {{"T", {{18, kInts}}}},
};

OPERATOR(BitwiseNot) = {
    .name = "BitwiseNot",
    .doc = "every bit inverted",
    .versions = {18},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .types = {{"T", {{18, kInts}}}},
};

}  // namespace tombolo::ops
