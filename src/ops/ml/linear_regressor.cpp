#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_linear_regressor(InferContext& context) {
  return infer_rows(context, 0, context.attributes.get_int("targets", 1));
}
}  // namespace

OPERATOR(LinearRegressor) = {
    .name = "LinearRegressor",
    .domain = "ai.onnx.ml",
    .doc = "linear function of the features",
    .versions = {1},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "tensor(float)"}},
    .attributes =
        {
            {"coefficients", Attr::kFloats},
            {"intercepts", Attr::kFloats},
            {"post_transform", "NONE"},
            {"targets", 1},
        },
    .types = {{"T", {{1, kFloats32 | kIndices}}}},
    .infer = infer_linear_regressor,
};

}  // namespace tombolo::ops
