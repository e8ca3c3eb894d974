#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(LinearClassifier) = {
    .name = "LinearClassifier",
    .domain = "ai.onnx.ml",
    .doc = "class by the highest linear score",
    .versions = {1},
    .inputs = {{"X", "T1"}},
    .outputs =
        {
            {"Y", "T2"},
            {"Z", "tensor(float)"},
        },
    .attributes =
        {
            {"classlabels_ints", Attr::kInts},
            {"classlabels_strings", Attr::kStrings},
            {"coefficients", required(Attr::kFloats)},
            {"intercepts", Attr::kFloats},
            {"multi_class", 0},
            {"post_transform", "NONE"},
        },
    .types =
        {
            {"T1", {{1, kFloats32 | kIndices}}},
            {"T2", {{1, kI64 | kStr}}},
        },
};

}  // namespace tombolo::ops
