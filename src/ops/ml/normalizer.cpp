#include "ops/infer_generic.h"
#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Normalizer) = {
    .name = "Normalizer",
    .domain = "ai.onnx.ml",
    .doc = "divides each row by its max, L1 or L2 norm",
    .versions = {1},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "tensor(float)"}},
    .attributes = {{"norm", "MAX"}},
    .types = {{"T", {{1, kFloats32 | kIndices}}}},
    .infer = infer_unary,
};

}  // namespace tombolo::ops
