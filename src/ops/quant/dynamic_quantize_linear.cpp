#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(DynamicQuantizeLinear) = {
    .name = "DynamicQuantizeLinear",
    .doc = "quantises to uint8 by the range found in the data",
    .versions = {11},
    .inputs = {{"x", "T1"}},
    .outputs =
        {
            {"y", "T2"},
            {"y_scale", "tensor(float)"},
            {"y_zero_point", "T2"},
        },
    .types =
        {
            {"T1", {{11, kF32}}},
            {"T2", {{11, kU8}}},
        },
    .functions = {{.opset = 11}},
};

}  // namespace tombolo::ops
