#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(MaxUnpool) = {
    .name = "MaxUnpool",
    .doc = "puts pooled values back where MaxPool found them",
    .versions = {9, 11, 22},
    .inputs =
        {
            {"X", "T1"},
            {"I", "T2"},
            {"output_shape", "T2", kOptional},
        },
    .outputs = {{"output", "T1"}},
    .attributes =
        {
            {"kernel_shape", required(Attr::kInts)},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
        },
    .types =
        {
            {"T1", {{9, kFloats}, {22, kBf16}}},
            {"T2", {{9, kI64}}},
        },
};

}  // namespace tombolo::ops
