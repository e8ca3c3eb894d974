#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(CastMap) = {
    .name = "CastMap",
    .domain = "ai.onnx.ml",
    .doc = "the values of a map as a tensor",
    .versions = {1},
    .inputs = {{"X", "T1"}},
    .outputs = {{"Y", "T2"}},
    .attributes =
        {
            {"cast_to", "TO_FLOAT"},
            {"map_form", "DENSE"},
            {"max_map", 1},
        },
    .types =
        {
            {"T1", {{1, kMapI64Str | kMapI64F32}}},
            {"T2", {{1, kF32 | kI64 | kStr}}},
        },
};

}  // namespace tombolo::ops
