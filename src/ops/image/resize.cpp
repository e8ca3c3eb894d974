#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Resize) = {
    .name = "Resize",
    .doc = "resamples by nearest, linear or cubic interpolation",
    .versions = {10, 11, 13, 18, 19},
    .inputs =
        {
            {"X", "T", kSingle, {.until = 10}},
            {"X", "T1", kSingle, {.since = 11}},
            {"roi", "T2", kSingle, {.since = 11, .until = 12}},
            {"scales", "tensor(float)", kSingle, {.until = 12}},
            {"roi", "T2", kOptional, {.since = 13}},
            {"scales", "tensor(float)", kOptional, {.since = 13}},
            {"sizes", "tensor(int64)", kOptional, {.since = 11}},
        },
    .outputs =
        {
            {"Y", "T", kSingle, {.until = 10}},
            {"Y", "T1", kSingle, {.since = 11}},
        },
    .attributes =
        {
            {"mode", "nearest"},
            {"coordinate_transformation_mode", "half_pixel", {.since = 11}},
            {"cubic_coeff_a", -0.75f, {.since = 11}},
            {"exclude_outside", 0, {.since = 11}},
            {"extrapolation_value", 0.0f, {.since = 11}},
            {"nearest_mode", "round_prefer_floor", {.since = 11}},
            {"antialias", 0, {.since = 18}},
            {"axes", Attr::kInts, {.since = 18}},
            {"keep_aspect_ratio_policy", "stretch", {.since = 18}},
        },
    .types =
        {
            {"T", {{10, kAll}}, {.until = 10}},
            {"T1", {{11, kAll}, {13, kBf16}}, {.since = 11}},
            {"T2", {{11, kFloats}}, {.since = 11}},
        },
};

}  // namespace tombolo::ops
