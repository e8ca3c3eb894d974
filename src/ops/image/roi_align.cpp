#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(RoiAlign) = {
    .name = "RoiAlign",
    .doc = "samples regions on a grid by bilinear interpolation",
    .versions = {10, 16, 22},
    .inputs =
        {
            {"X", "T1"},
            {"rois", "T1"},
            {"batch_indices", "T2"},
        },
    .outputs = {{"Y", "T1"}},
    .attributes =
        {
            {"mode", "avg"},
            {"output_height", 1},
            {"output_width", 1},
            {"sampling_ratio", 0},
            {"spatial_scale", 1.0f},
            {"coordinate_transformation_mode", "half_pixel", {.since = 16}},
        },
    .types =
        {
            {"T1", {{10, kFloats}, {22, kBf16}}},
            {"T2", {{10, kI64}}},
        },
};

}  // namespace tombolo::ops
