#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(MaxRoiPool) = {
    .name = "MaxRoiPool",
    .doc = "maximum over each cell of a grid laid on regions",
    .versions = {1, 22},
    .inputs =
        {
            {"X", "T"},
            {"rois", "T"},
        },
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"pooled_shape", required(Attr::kInts)},
            {"spatial_scale", 1.0f},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
};

}  // namespace tombolo::ops
