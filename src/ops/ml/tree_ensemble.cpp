#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_tree_ensemble(InferContext& context) {
  return infer_rows(context, 0, context.attributes.get_int("n_targets", 1));
}
}  // namespace

OPERATOR(TreeEnsemble) = {
    .name = "TreeEnsemble",
    .domain = "ai.onnx.ml",
    .doc = "sums, means, minima or maxima of the leaves reached in decision trees",
    .versions = {5},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"aggregate_function", 1},
            {"leaf_targetids", required(Attr::kInts)},
            {"leaf_weights", required(Attr::kTensor)},
            {"membership_values", Attr::kTensor},
            {"n_targets", Attr::kInt},
            {"nodes_falseleafs", required(Attr::kInts)},
            {"nodes_falsenodeids", required(Attr::kInts)},
            {"nodes_featureids", required(Attr::kInts)},
            {"nodes_hitrates", Attr::kTensor},
            {"nodes_missing_value_tracks_true", Attr::kInts},
            {"nodes_modes", required(Attr::kTensor)},
            {"nodes_splits", required(Attr::kTensor)},
            {"nodes_trueleafs", required(Attr::kInts)},
            {"nodes_truenodeids", required(Attr::kInts)},
            {"post_transform", 0},
            {"tree_roots", required(Attr::kInts)},
        },
    .types = {{"T", {{5, kFloats}}}},
    .infer = infer_tree_ensemble,
};

}  // namespace tombolo::ops
