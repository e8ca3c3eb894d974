#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(GridSample) = {
    .name = "GridSample",
    .doc = "samples a tensor at given positions",
    .versions = {16, 20, 22},
    .inputs =
        {
            {"X", "T1"},
            {"grid", "T2"},
        },
    .outputs = {{"Y", "T1"}},
    .attributes =
        {
            {"align_corners", 0},
            {"mode", "bilinear", {.until = 19}},
            {"mode", "linear", {.since = 20}},
            {"padding_mode", "zeros"},
        },
    .types =
        {
            {"T1", {{16, kAll}, {22, kBf16}}},
            {"T2", {{16, kFloats}, {22, kBf16}}},
        },
};

}  // namespace tombolo::ops
