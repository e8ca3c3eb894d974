#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(FeatureVectorizer) = {
    .name = "FeatureVectorizer",
    .domain = "ai.onnx.ml",
    .doc = "joins feature tensors into one float vector a row",
    .versions = {1},
    .inputs = {{"X", "T1", kVariadic}},
    .outputs = {{"Y", "tensor(float)"}},
    .attributes = {{"inputdimensions", Attr::kInts}},
    .types = {{"T1", {{1, kFloats32 | kIndices}}}},
};

}  // namespace tombolo::ops
