#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(CausalConvWithState) = {
    .name = "CausalConvWithState",
    .doc = "depthwise causal 1-D convolution that hands on its last samples",
    .versions = {27},
    .inputs =
        {
            {"input", "T"},
            {"weight", "T"},
            {"bias", "T", kOptional},
            {"past_state", "T", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"present_state", "T"},
        },
    .attributes = {{"activation", "none"}},
    .types = {{"T", {{27, kF32 | kF16 | kBf16}}}},
    .functions = {{.opset = 27}},
};

}  // namespace tombolo::ops
