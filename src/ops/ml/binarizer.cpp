#include "ops/infer_generic.h"
#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Binarizer) = {
    .name = "Binarizer",
    .domain = "ai.onnx.ml",
    .doc = "1 above the threshold, else 0",
    .versions = {1},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"threshold", 0.0f}},
    .types = {{"T", {{1, kFloats32 | kIndices}}}},
    .infer = infer_unary,
};

}  // namespace tombolo::ops
