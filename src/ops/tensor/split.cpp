#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Split) = {
    .name = "Split",
    .doc = "cuts a tensor into parts along an axis",
    .versions = {1, 2, 11, 13, 18},
    .inputs =
        {
            {"input", "T"},
            {"split", "T", kOptional, {.until = 1}},
            {"split", "tensor(int64)", kOptional, {.since = 13}},
        },
    .outputs =
        {
            {"outputs...", "T", kVariadic, {.until = 1}},
            {"outputs", "T", kVariadic, {.since = 2}},
        },
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 1}},
            {"axis", 0, {.since = 2}},
            {"split", Attr::kInts, {.until = 12}},
            {"num_outputs", Attr::kInt, {.since = 18}},
        },
    .types = {{"T", {{1, kFloats}, {2, kInts | kComplex | kStr | kBool}, {13, kBf16}}}},
};

}  // namespace tombolo::ops
