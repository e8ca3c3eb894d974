#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_svm_regressor(InferContext& context) { return infer_rows(context, 0, 1); }
}  // namespace

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
    .infer = infer_svm_regressor,
};

}  // namespace tombolo::ops
