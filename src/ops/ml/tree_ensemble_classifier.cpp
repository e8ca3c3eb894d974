#include <algorithm>

#include "ops/infer_helpers.h"
#include "ops/kernels/tree.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {

/// Two classes of which only one ever gets votes: one score decides, as in ONNX Runtime.
struct BinaryVote {
  bool one_score = false;      ///< all votes are for one class
  bool probabilities = false;  ///< no vote is negative: the score is a probability
};

Status run_tree_ensemble_classifier(KernelContext& context) {
  TRY(const Tensor x, feature_rows(context, 0));
  TRY(Forest forest, read_forest(context, "class"));
  TRY(const ClassLabels labels, read_labels(context, "classlabels_int64s", "classlabels_strings"));
  TRY(const PostTransform transform, read_post_transform(context));
  TRY(const std::vector<double> base, read_numbers(context, "base_values"));
  forest.targets = labels.count();
  if (forest.targets < 1) return context.error("there are no class labels");
  CHECK_OK(forest.check(context, x.dim(1)));
  const auto classes = static_cast<size_t>(forest.targets);
  if (!base.empty() && base.size() != 1 && base.size() != classes)
    return context.error("base_values has " + std::to_string(base.size()) + " values for " +
                         std::to_string(classes) + " classes");
  BinaryVote binary{classes <= 2, true};
  for (const TreeVote& vote : forest.votes) {
    binary.one_score = binary.one_score && vote.target == forest.votes[0].target;
    binary.probabilities = binary.probabilities && vote.weight >= 0;
  }
  std::vector<std::vector<double>> rows;
  std::vector<int64_t> numbers;
  std::vector<double> scores(classes);
  std::vector<uint8_t> voted(classes);
  for (int64_t row = 0; row < x.dim(0); ++row) {
    CHECK_OK(
        forest.predict(context, x.data<double>() + row * x.dim(1), Aggregate::kSum, scores, voted));
    if (binary.one_score) {
      const size_t target = forest.votes.empty() ? 0 : static_cast<size_t>(forest.votes[0].target);
      const double score =
          scores[target] + (base.empty() ? 0 : base[base.size() == 1 ? 0 : target]);
      numbers.push_back(score > (binary.probabilities ? 0.5 : 0.0) ? 1 : 0);
      if (target == 1) {  // the second score is there, the first is zero
        rows.push_back({0, score});
        transform_scores(transform, rows.back());
        continue;
      }
      rows.push_back(
          class_scores(transform, score,
                       binary.probabilities ? SecondClass::kComplement : SecondClass::kOpposite));
      continue;
    }
    for (size_t i = 0; i < classes && !base.empty(); ++i)
      scores[i] += base[base.size() == 1 ? 0 : i];
    numbers.push_back(greatest(scores));
    rows.push_back(scores);
    transform_scores(transform, rows.back());
  }
  CHECK_OK(give_scores(context, 1, DType::kFloat32, rows, labels.count()));
  return give_labels(context, labels, numbers);
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
