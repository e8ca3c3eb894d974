#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Momentum) = {
    .name = "Momentum",
    .domain = "ai.onnx.preview.training",
    .doc = "one step of gradient descent with momentum for each tensor",
    .versions = {1},
    .inputs =
        {
            {"R", "T1"},
            {"T", "T2"},
            {"inputs", "T3", kVariadic, {}, 1, kMixed},
        },
    .outputs = {{"outputs", "T3", kVariadic, {}, 1, kMixed}},
    .attributes =
        {
            {"alpha", required(Attr::kFloat)},
            {"beta", required(Attr::kFloat)},
            {"mode", required(Attr::kString)},
            {"norm_coefficient", required(Attr::kFloat)},
        },
    .types =
        {
            {"T1", {{1, kFloats32}}},
            {"T2", {{1, kI64}}},
            {"T3", {{1, kFloats32}}},
        },
};

}  // namespace tombolo::ops
