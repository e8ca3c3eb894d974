#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(SVMRegressor) = {
    .name = "SVMRegressor",
    .domain = "ai.onnx.ml",
    .doc = "regression by support vectors",
    .versions = {1},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "tensor(float)"}},
    .attributes =
        {
            {"coefficients", Attr::kFloats},
            {"kernel_params", Attr::kFloats},
            {"kernel_type", "LINEAR"},
            {"n_supports", 0},
            {"one_class", 0},
            {"post_transform", "NONE"},
            {"rho", Attr::kFloats},
            {"support_vectors", Attr::kFloats},
        },
    .types = {{"T", {{1, kFloats32 | kIndices}}}},
};

}  // namespace tombolo::ops
