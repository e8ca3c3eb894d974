#include "ops/schema.h"

namespace tombolo::ops {

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
};

}  // namespace tombolo::ops
