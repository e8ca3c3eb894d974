#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_adam(InferContext& context) {
  // After R and T: values, gradients, first and second moments; out: all but the gradients.
  const size_t count = context.input_count() > 2 ? (context.input_count() - 2) / 4 : 0;
  for (size_t i = 0; i < count; ++i) {
    context.same_as_input(i, 2 + i);
    context.same_as_input(count + i, 2 + 2 * count + i);
    context.same_as_input(2 * count + i, 2 + 3 * count + i);
  }
  return ok();
}
}  // namespace

OPERATOR(Adam) = {
    .name = "Adam",
    .domain = "ai.onnx.preview.training",
    .doc = "one Adam step for each tensor",
    .versions = {1},
    .inputs =
        {
            {"R", "T1"},
            {"T", "T2"},
            {"inputs", "T3", kVariadic, {}, 1, kMixed},
        },
    .outputs = {{"outputs", "T3", kVariadic, {}, 1, kMixed}},
    .attributes =
        {
            {"alpha", 0.9f},
            {"beta", 0.999f},
            {"epsilon", 1e-06f},
            {"norm_coefficient", 0.0f},
            {"norm_coefficient_post", 0.0f},
        },
    .types =
        {
            {"T1", {{1, kFloats32}}},
            {"T2", {{1, kI64}}},
            {"T3", {{1, kFloats32}}},
        },
    .infer = infer_adam,
};

}  // namespace tombolo::ops
