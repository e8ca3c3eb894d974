#include <algorithm>

#include "ops/infer_helpers.h"
#include "ops/kernels/tree.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

Result<TreeClassification> read_tree_classifier(const KernelContext& context, int64_t features) {
  TreeClassification rule;
  TRY(rule.forest, read_forest(context, "class"));
  TRY(rule.labels, read_labels(context, "classlabels_int64s", "classlabels_strings"));
  TRY(rule.transform, read_post_transform(context));
  TRY(rule.base, read_numbers(context, "base_values"));
  rule.forest.targets = rule.labels.count();
  if (rule.forest.targets < 1) return context.error("there are no class labels");
  CHECK_OK(rule.forest.check(context, features));
  const auto classes = static_cast<size_t>(rule.forest.targets);
  if (!rule.base.empty() && rule.base.size() != 1 && rule.base.size() != classes)
    return context.error("base_values has " + std::to_string(rule.base.size()) + " values for " +
                         std::to_string(classes) + " classes");
  rule.one_score = classes <= 2;
  rule.probabilities = true;
  for (const TreeVote& vote : rule.forest.votes) {
    rule.one_score = rule.one_score && vote.target == rule.forest.votes[0].target;
    rule.probabilities = rule.probabilities && vote.weight >= 0;
  }
  return rule;
}

int64_t TreeClassification::decide(std::span<double> sums, std::vector<double>& scores) const {
  if (one_score) {
    const size_t target = forest.votes.empty() ? 0 : static_cast<size_t>(forest.votes[0].target);
    const double score = sums[target] + (base.empty() ? 0 : base[base.size() == 1 ? 0 : target]);
    if (target == 1) {  // the second score is there, the first is zero
      scores = {0, score};
      transform_scores(transform, scores);
    } else {
      class_scores(transform, score,
                   probabilities ? SecondClass::kComplement : SecondClass::kOpposite, scores);
    }
    return score > (probabilities ? 0.5 : 0.0) ? 1 : 0;
  }
  for (size_t i = 0; i < sums.size() && !base.empty(); ++i)
    sums[i] += base[base.size() == 1 ? 0 : i];
  scores.assign(sums.begin(), sums.end());
  transform_scores(transform, scores);
  return greatest(sums);
}

namespace {

Status run_tree_ensemble_classifier(KernelContext& context) {
  TRY(const Tensor x, feature_rows(context, 0));
  TRY(const TreeClassification rule, read_tree_classifier(context, x.dim(1)));
  const auto classes = static_cast<size_t>(rule.forest.targets);
  std::vector<std::vector<double>> rows;
  std::vector<int64_t> numbers;
  std::vector<double> sums(classes);
  std::vector<uint8_t> voted(classes);
  for (int64_t row = 0; row < x.dim(0); ++row) {
    CHECK_OK(rule.forest.predict(x.data<double>() + row * x.dim(1), Aggregate::kSum, sums, voted));
    numbers.push_back(rule.decide(sums, rows.emplace_back()));
  }
  CHECK_OK(give_scores(context, 1, DType::kFloat32, rows, classes));
  return give_labels(context, rule.labels, numbers);
}

}  // namespace

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
    .reference = run_tree_ensemble_classifier,
    .up = {{3, 5, step_deprecated}},
};

}  // namespace tombolo::ops
