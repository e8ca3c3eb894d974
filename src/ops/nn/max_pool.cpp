#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(MaxPool) = {
    .name = "MaxPool",
    .doc = "maximum of each window, and where it was on request",
    .versions = {1, 8, 10, 11, 12, 22},
    .inputs = {{"X", "T"}},
    .outputs =
        {
            {"Y", "T"},
            {"Indices", "I", kOptional, {.since = 8}},
        },
    .attributes =
        {
            {"auto_pad", "NOTSET"},
            {"kernel_shape", required(Attr::kInts)},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
            {"storage_order", 0, {.since = 8}},
            {"ceil_mode", 0, {.since = 10}},
            {"dilations", Attr::kInts, {.since = 10}},
        },
    .types =
        {
            {"T", {{1, kFloats}, {12, kInt8s}, {22, kBf16}}},
            {"I", {{8, kI64}}, {.since = 8}},
        },
};

}  // namespace tombolo::ops
