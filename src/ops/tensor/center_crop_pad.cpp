#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(CenterCropPad) = {
    .name = "CenterCropPad",
    .doc = "crops or pads around the centre to a given shape",
    .versions = {18},
    .inputs =
        {
            {"input_data", "T"},
            {"shape", "Tind"},
        },
    .outputs = {{"output_data", "T"}},
    .attributes = {{"axes", Attr::kInts}},
    .types =
        {
            {"T", {{18, kAll | kBf16}}},
            {"Tind", {{18, kIndices}}},
        },
    .functions = {{.opset = 18}},
};

}  // namespace tombolo::ops
