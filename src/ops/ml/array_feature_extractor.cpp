#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(ArrayFeatureExtractor) = {
    .name = "ArrayFeatureExtractor",
    .domain = "ai.onnx.ml",
    .doc = "columns of the last axis picked by index",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"Y", "tensor(int64)"},
        },
    .outputs = {{"Z", "T"}},
    .types = {{"T", {{1, kFloats32 | kIndices | kStr}}}},
};

}  // namespace tombolo::ops
