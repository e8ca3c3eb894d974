#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Exp) = {
    .name = "Exp",
    .doc = "e to the power of x",
    .versions = {1, 6, 13},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
};

OPERATOR(Log) = {
    .name = "Log",
    .doc = "natural logarithm",
    .versions = {1, 6, 13},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
};

OPERATOR(Sqrt) = {
    .name = "Sqrt",
    .doc = "square root; NaN below zero",
    .versions = {1, 6, 13},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
};

OPERATOR(Reciprocal) = {
    .name = "Reciprocal",
    .doc = "1 / x",
    .versions = {1, 6, 13},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
};

OPERATOR(Erf) = {
    .name = "Erf",
    .doc = "Gauss error function",
    .versions = {9, 13},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types =
        {
            {"T", {{9, kNumbers}}, {.until = 12}},
            {"T", {{13, kFloats | kBf16}}, {.since = 13}},
        },
};

}  // namespace tombolo::ops
