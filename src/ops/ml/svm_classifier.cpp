#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(SVMClassifier) = {
    .name = "SVMClassifier",
    .domain = "ai.onnx.ml",
    .doc = "class by support vectors, with scores or probabilities",
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
            {"coefficients", Attr::kFloats},
            {"kernel_params", Attr::kFloats},
            {"kernel_type", "LINEAR"},
            {"post_transform", "NONE"},
            {"prob_a", Attr::kFloats},
            {"prob_b", Attr::kFloats},
            {"rho", Attr::kFloats},
            {"support_vectors", Attr::kFloats},
            {"vectors_per_class", Attr::kInts},
        },
    .types =
        {
            {"T1", {{1, kFloats32 | kIndices}}},
            {"T2", {{1, kI64 | kStr}}},
        },
};

}  // namespace tombolo::ops
