#include "ops/infer_helpers.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {
Status infer_tree_ensemble_classifier(InferContext& context) {
  const auto strings = context.attributes.get_strings("classlabels_strings");
  const auto ints = context.attributes.get_ints("classlabels_int64s");
  const size_t classes = std::max(strings.size(), ints.size());
  const SymShape* x = context.shape(0);
  InferType labels = InferType::tensor(!strings.empty() ? DType::kString : DType::kInt64);
  InferType scores = InferType::tensor(DType::kFloat32);
  if (x != nullptr) {
    const SymDim rows = x->size() == 2 ? (*x)[0] : x->size() == 1 ? SymDim(1) : SymDim();
    labels.shape = SymShape{rows};
    scores.shape = SymShape{rows, classes > 1 ? SymDim(static_cast<int64_t>(classes)) : SymDim()};
  }
  context.set_output(0, std::move(labels));
  context.set_output(1, std::move(scores));
  return ok();
}
}  // namespace

OPERATOR(TreeEnsembleClassifier) = {
    .name = "TreeEnsembleClassifier",
    .domain = "ai.onnx.ml",
    .doc = "class by decision trees, in the older attribute layout",
    .versions = {1, 3, 5},
    .deprecated = {5},
    .inputs = {{"X", "T1"}},
    .outputs =
        {
            {"Y", "T2"},
            {"Z", "tensor(float)"},
        },
    .attributes =
        {
            {"base_values", Attr::kFloats},
            {"class_ids", Attr::kInts},
            {"class_nodeids", Attr::kInts},
            {"class_treeids", Attr::kInts},
            {"class_weights", Attr::kFloats},
            {"classlabels_int64s", Attr::kInts},
            {"classlabels_strings", Attr::kStrings},
            {"nodes_falsenodeids", Attr::kInts},
            {"nodes_featureids", Attr::kInts},
            {"nodes_hitrates", Attr::kFloats},
            {"nodes_missing_value_tracks_true", Attr::kInts},
            {"nodes_modes", Attr::kStrings},
            {"nodes_nodeids", Attr::kInts},
            {"nodes_treeids", Attr::kInts},
            {"nodes_truenodeids", Attr::kInts},
            {"nodes_values", Attr::kFloats},
            {"post_transform", "NONE"},
            {"base_values_as_tensor", Attr::kTensor, {.since = 3}},
            {"class_weights_as_tensor", Attr::kTensor, {.since = 3}},
            {"nodes_hitrates_as_tensor", Attr::kTensor, {.since = 3}},
            {"nodes_values_as_tensor", Attr::kTensor, {.since = 3}},
        },
    .types =
        {
            {"T1", {{1, kFloats32 | kIndices}}},
            {"T2", {{1, kI64 | kStr}}},
        },
    .infer = infer_tree_ensemble_classifier,
    .up = {{3, 5, step_deprecated}},
};

}  // namespace tombolo::ops
