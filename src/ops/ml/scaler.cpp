#include "ops/infer_generic.h"
#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(Scaler) = {
    .name = "Scaler",
    .domain = "ai.onnx.ml",
    .doc = "(x - offset) * scale per feature",
    .versions = {1},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "tensor(float)"}},
    .attributes =
        {
            {"offset", Attr::kFloats},
            {"scale", Attr::kFloats},
        },
    .types = {{"T", {{1, kFloats32 | kIndices}}}},
    .infer = infer_unary,
};

}  // namespace tombolo::ops
