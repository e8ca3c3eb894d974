#include "ops/infer_helpers.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {
Status infer_tree_ensemble_regressor(InferContext& context) {
  return infer_rows(context, 0, context.attributes.get_int("n_targets", 1));
}
}  // namespace

OPERATOR(TreeEnsembleRegressor) = {
    .name = "TreeEnsembleRegressor",
    .domain = "ai.onnx.ml",
    .doc = "regression by decision trees, in the older attribute layout",
    .versions = {1, 3, 5},
    .deprecated = {5},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "tensor(float)"}},
    .attributes =
        {
            {"aggregate_function", "SUM"},
            {"base_values", Attr::kFloats},
            {"n_targets", Attr::kInt},
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
            {"target_ids", Attr::kInts},
            {"target_nodeids", Attr::kInts},
            {"target_treeids", Attr::kInts},
            {"target_weights", Attr::kFloats},
            {"base_values_as_tensor", Attr::kTensor, {.since = 3}},
            {"nodes_hitrates_as_tensor", Attr::kTensor, {.since = 3}},
            {"nodes_values_as_tensor", Attr::kTensor, {.since = 3}},
            {"target_weights_as_tensor", Attr::kTensor, {.since = 3}},
        },
    .types = {{"T", {{1, kFloats32 | kIndices}}}},
    .infer = infer_tree_ensemble_regressor,
    .up = {{3, 5, step_deprecated}},
};

}  // namespace tombolo::ops
