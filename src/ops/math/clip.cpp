#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Clip) = {
    .name = "Clip",
    .doc = "x limited to the interval [min, max]",
    .versions = {1, 6, 11, 12, 13},
    .inputs =
        {
            {"input", "T"},
            {"min", "T", kOptional, {.since = 11}},
            {"max", "T", kOptional, {.since = 11}},
        },
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"consumed_inputs", Attr::kInts, {.until = 5}},
            {"max", Attr::kFloat, {.until = 5}},
            {"max", 3.4028235e+38f, {.since = 6, .until = 10}},
            {"min", Attr::kFloat, {.until = 5}},
            {"min", -3.4028235e+38f, {.since = 6, .until = 10}},
        },
    .types = {{"T", {{1, kFloats}, {12, kInts}, {13, kBf16}}}},
    .functions = {{.versions = {.since = 13}, .opset = 13}},
};

}  // namespace tombolo::ops
