#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_adagrad(InferContext& context) {
  // After R and T: values, gradients, states; out: new values, new states.
  const size_t count = context.input_count() > 2 ? (context.input_count() - 2) / 3 : 0;
  for (size_t i = 0; i < count; ++i) {
    context.same_as_input(i, 2 + i);
    context.same_as_input(count + i, 2 + 2 * count + i);
  }
  return ok();
}
}  // namespace

OPERATOR(Adagrad) = {
    .name = "Adagrad",
    .domain = "ai.onnx.preview.training",
    .doc = "one AdaGrad step for each tensor",
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
            {"decay_factor", 0.0f},
            {"epsilon", 1e-06f},
            {"norm_coefficient", 0.0f},
        },
    .types =
        {
            {"T1", {{1, kFloats32}}},
            {"T2", {{1, kI64}}},
            {"T3", {{1, kFloats32}}},
        },
    .infer = infer_adagrad,
};

}  // namespace tombolo::ops
