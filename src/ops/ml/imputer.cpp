#include "ops/infer_generic.h"
#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Imputer) = {
    .name = "Imputer",
    .domain = "ai.onnx.ml",
    .doc = "replaces a marker value by a constant per feature",
    .versions = {1},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"imputed_value_floats", Attr::kFloats},
            {"imputed_value_int64s", Attr::kInts},
            {"replaced_value_float", 0.0f},
            {"replaced_value_int64", 0},
        },
    .types = {{"T", {{1, kFloats32 | kIndices}}}},
    .infer = infer_unary,
};

}  // namespace tombolo::ops
