#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_linear_classifier(InferContext& context) {
  const auto strings = context.attributes.get_strings("classlabels_strings");
  const auto ints = context.attributes.get_ints("classlabels_ints");
  const size_t classes = std::max(strings.size(), ints.size());
  const SymShape* x = context.shape(0);
  InferType labels = InferType::tensor(!strings.empty() ? DType::kString : DType::kInt64);
  InferType scores = InferType::tensor(DType::kFloat32);
  if (x != nullptr) {
    const SymDim rows = x->size() == 2 ? (*x)[0] : x->size() == 1 ? SymDim(1) : SymDim();
    labels.shape = SymShape{rows};
    // One class alone may still give two columns, by post_transform and intercepts.
    scores.shape = SymShape{rows, classes > 1 ? SymDim(static_cast<int64_t>(classes)) : SymDim()};
  }
  context.set_output(0, std::move(labels));
  context.set_output(1, std::move(scores));
  return ok();
}
}  // namespace

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
    .infer = infer_linear_classifier,
};

}  // namespace tombolo::ops
