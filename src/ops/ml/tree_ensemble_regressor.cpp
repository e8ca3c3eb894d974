#include "ops/infer_helpers.h"
#include "ops/kernels/tree.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

void TreeRegression::finish(std::span<double> scores) const {
  for (size_t i = 0; i < scores.size() && !base.empty(); ++i)
    scores[i] += base[base.size() == 1 ? 0 : i];
  transform_scores(transform, scores);
}

Result<TreeRegression> read_tree_regressor(const KernelContext& context, int64_t features) {
  TreeRegression rule;
  TRY(rule.forest, read_forest(context, "target"));
  rule.forest.targets = context.attributes.get_int("n_targets", 1);
  if (rule.forest.targets < 1)
    return context.error("n_targets is " + std::to_string(rule.forest.targets));
  CHECK_OK(rule.forest.check(context, features));
  const Text name = context.attributes.get_string("aggregate_function", "SUM");
  if (name == "AVERAGE")
    rule.aggregate = Aggregate::kAverage;
  else if (name == "MIN")
    rule.aggregate = Aggregate::kMin;
  else if (name == "MAX")
    rule.aggregate = Aggregate::kMax;
  else if (name != "SUM")
    return context.error("aggregate_function \"" + std::string(name) + "\" is not known");
  TRY(rule.transform, read_post_transform(context));
  TRY(rule.base, read_numbers(context, "base_values"));
  const auto targets = static_cast<size_t>(rule.forest.targets);
  if (!rule.base.empty() && rule.base.size() != 1 && rule.base.size() != targets)
    return context.error("base_values has " + std::to_string(rule.base.size()) + " values for " +
                         std::to_string(targets) + " targets");
  return rule;
}

namespace {

Status run_tree_ensemble_regressor(KernelContext& context) {
  TRY(const Tensor x, feature_rows(context, 0));
  TRY(const TreeRegression rule, read_tree_regressor(context, x.dim(1)));
  const int64_t targets = rule.forest.targets;
  TRY(Tensor y, context.allocate(DType::kFloat64, {{x.dim(0), targets}}));
  std::vector<uint8_t> voted(static_cast<size_t>(targets));
  for (int64_t row = 0; row < x.dim(0); ++row) {
    const std::span<double> scores(y.data<double>() + row * targets, voted.size());
    CHECK_OK(rule.forest.predict(x.data<double>() + row * x.dim(1), rule.aggregate, scores, voted));
    rule.finish(scores);
  }
  return give(context, 0, DType::kFloat32, std::move(y));
}

}  // namespace

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
    .reference = run_tree_ensemble_regressor,
    .up = {{3, 5, step_deprecated}},
};

}  // namespace tombolo::ops
