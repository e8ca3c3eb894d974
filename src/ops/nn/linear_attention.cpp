#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(LinearAttention) = {
    .name = "LinearAttention",
    .doc = "attention without softmax as a recurrence over a state matrix",
    .versions = {27},
    .inputs =
        {
            {"query", "T"},
            {"key", "T"},
            {"value", "T"},
            {"past_state", "S", kOptional},
            {"decay", "T", kOptional},
            {"beta", "T", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"present_state", "S"},
        },
    .attributes =
        {
            {"chunk_size", 64},
            {"kv_num_heads", required(Attr::kInt)},
            {"q_num_heads", required(Attr::kInt)},
            {"scale", 0.0f},
            {"update_rule", "gated_delta"},
        },
    .types =
        {
            {"T", {{27, kF32 | kF16 | kBf16}}},
            {"S", {{27, kF32 | kF16 | kBf16}}},
        },
    .functions = {{.opset = 27}},
};

}  // namespace tombolo::ops
