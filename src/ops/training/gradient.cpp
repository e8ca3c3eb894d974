#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Gradient) = {
    .name = "Gradient",
    .domain = "ai.onnx.preview.training",
    .doc = "derivatives of a value with respect to chosen values",
    .versions = {1},
    .inputs = {{"Inputs", "T1", kVariadic, {}, 1, kMixed}},
    .outputs = {{"Outputs", "T2", kVariadic, {}, 1, kMixed}},
    .attributes =
        {
            {"xs", required(Attr::kStrings)},
            {"y", required(Attr::kString)},
            {"zs", Attr::kStrings},
        },
    .types =
        {
            {"T1", {{1, kAll}}},
            {"T2", {{1, kFloats}}},
        },
};

}  // namespace tombolo::ops
