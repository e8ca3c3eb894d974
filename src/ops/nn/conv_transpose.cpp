#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(ConvTranspose) = {
    .name = "ConvTranspose",
    .doc = "transposed convolution",
    .versions = {1, 11, 22},
    .inputs =
        {
            {"X", "T"},
            {"W", "T"},
            {"B", "T", kOptional},
        },
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"auto_pad", "NOTSET"},
            {"dilations", Attr::kInts},
            {"group", 1},
            {"kernel_shape", Attr::kInts},
            {"output_padding", Attr::kInts},
            {"output_shape", Attr::kInts},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
};

}  // namespace tombolo::ops
