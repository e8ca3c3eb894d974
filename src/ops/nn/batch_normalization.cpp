#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(BatchNormalization) = {
    .name = "BatchNormalization",
    .doc = "normalises per channel by running or batch statistics",
    .versions = {1, 6, 7, 9, 14, 15},
    .inputs =
        {
            {"X", "T"},
            {"scale", "T", kSingle, {.until = 14}},
            {"B", "T", kSingle, {.until = 14}},
            {"mean", "T", kSingle, {.until = 13}},
            {"var", "T", kSingle, {.until = 13}},
            {"input_mean", "U", kSingle, {.since = 14, .until = 14}},
            {"input_var", "U", kSingle, {.since = 14, .until = 14}},
            {"scale", "T1", kSingle, {.since = 15}},
            {"B", "T1", kSingle, {.since = 15}},
            {"input_mean", "T2", kSingle, {.since = 15}},
            {"input_var", "T2", kSingle, {.since = 15}},
        },
    .outputs =
        {
            {"Y", "T"},
            {"mean", "T", kOptional, {.until = 13}},
            {"var", "T", kOptional, {.until = 13}},
            {"saved_mean", "T", kOptional, {.until = 13}},
            {"saved_var", "T", kOptional, {.until = 13}},
            {"running_mean", "U", kOptional, {.since = 14, .until = 14}},
            {"running_var", "U", kOptional, {.since = 14, .until = 14}},
            {"running_mean", "T2", kOptional, {.since = 15}},
            {"running_var", "T2", kOptional, {.since = 15}},
        },
    .attributes =
        {
            {"consumed_inputs", required(Attr::kInts), {.until = 5}},
            {"epsilon", 1e-05f},
            {"is_test", 0, {.until = 6}},
            {"momentum", 0.9f},
            {"spatial", 1, {.until = 8}},
            {"training_mode", 0, {.since = 14}},
        },
    .types =
        {
            {"T", {{1, kFloats}, {14, kBf16}}},
            {"U", {{14, kFloats | kBf16}}, {.since = 14, .until = 14}},
            {"T1", {{15, kFloats | kBf16}}, {.since = 15}},
            {"T2", {{15, kFloats | kBf16}}, {.since = 15}},
        },
};

}  // namespace tombolo::ops
