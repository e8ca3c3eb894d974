#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_gradient(InferContext& context) {
  // One gradient for each name in xs, which are the first inputs.
  const size_t count = context.attributes.get_strings("xs").size();
  for (size_t i = 0; i < count; ++i) context.same_as_input(i, i);
  return ok();
}
}  // namespace

OPERATOR(Gradient) = {
    .name = "Gradient",
    .domain = "ai.onnx.preview.training",
    .doc = "derivatives of a value with respect to chosen values",
    .versions = {1},
    .inputs = {{"Inputs", "T1", kVariadic, {}, 1, kMixed}},
    .outputs = {{"Outputs", "T2", kVariadic, {}, 1, kMixed}},
    .attributes =
        {
            {"xs", required(Attr::kStrings)},
            {"y", required(Attr::kString)},
            {"zs", Attr::kStrings},
        },
    .types =
        {
            {"T1", {{1, kAll}}},
            {"T2", {{1, kFloats}}},
        },
    .infer = infer_gradient,
};

}  // namespace tombolo::ops
