#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_svm_classifier(InferContext& context) {
  const bool strings = !context.attributes.get_strings("classlabels_strings").empty();
  const SymShape* x = context.shape(0);
  InferType labels = InferType::tensor(strings ? DType::kString : DType::kInt64);
  InferType scores = InferType::tensor(DType::kFloat32);
  if (x != nullptr) {
    const SymDim rows = x->size() == 2 ? (*x)[0] : x->size() == 1 ? SymDim(1) : SymDim();
    labels.shape = SymShape{rows};
    scores.shape = SymShape{rows, SymDim()};
  }
  context.set_output(0, std::move(labels));
  context.set_output(1, std::move(scores));
  return ok();
}
}  // namespace

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
    .infer = infer_svm_classifier,
};

}  // namespace tombolo::ops
