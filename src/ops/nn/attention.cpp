#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Attention) = {
    .name = "Attention",
    .doc = "scaled dot-product attention with mask, cache and grouped heads",
    .versions = {23, 24, 25},
    .inputs =
        {
            {"Q", "T1"},
            {"K", "T1"},
            {"V", "T2"},
            {"attn_mask", "U", kOptional},
            {"past_key", "T1", kOptional},
            {"past_value", "T2", kOptional},
            {"nonpad_kv_seqlen", "tensor(int64)", kOptional, {.since = 24}},
        },
    .outputs =
        {
            {"Y", "T1"},
            {"present_key", "T1", kOptional},
            {"present_value", "T2", kOptional},
            {"qk_matmul_output", "T1", kOptional},
        },
    .attributes =
        {
            {"is_causal", 0},
            {"kv_num_heads", Attr::kInt},
            {"q_num_heads", Attr::kInt},
            {"qk_matmul_output_mode", 0},
            {"scale", Attr::kFloat},
            {"softcap", 0.0f},
            {"softmax_precision", Attr::kInt},
            {"left_window_size", -1, {.since = 25}},
            {"right_window_size", -1, {.since = 25}},
        },
    .types =
        {
            {"T1", {{23, kFloats | kBf16}}},
            {"T2", {{23, kFloats | kBf16}}},
            {"U", {{23, kNumbers | kBool | kBf16}}},
        },
    .functions =
        {
            {.versions = {.until = 23}, .opset = 23},
            {.versions = {.since = 24, .until = 24}, .opset = 24},
            {.versions = {.since = 25}, .opset = 25},
        },
};

}  // namespace tombolo::ops
