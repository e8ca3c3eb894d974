#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(AffineGrid) = {
    .name = "AffineGrid",
    .doc = "sampling positions of an affine map, for GridSample",
    .versions = {20},
    .inputs =
        {
            {"theta", "T1"},
            {"size", "T2"},
        },
    .outputs = {{"grid", "T1"}},
    .attributes = {{"align_corners", 0}},
    .types =
        {
            {"T1", {{20, kFloats | kBf16}}},
            {"T2", {{20, kI64}}},
        },
    .functions = {{.opset = 20}},
};

}  // namespace tombolo::ops
