#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Adam) = {
    .name = "Adam",
    .domain = "ai.onnx.preview.training",
    .doc = "one Adam step for each tensor",
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
            {"alpha", 0.9f},
            {"beta", 0.999f},
            {"epsilon", 1e-06f},
            {"norm_coefficient", 0.0f},
            {"norm_coefficient_post", 0.0f},
        },
    .types =
        {
            {"T1", {{1, kFloats32}}},
            {"T2", {{1, kI64}}},
            {"T3", {{1, kFloats32}}},
        },
};

}  // namespace tombolo::ops
