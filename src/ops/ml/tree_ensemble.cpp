#include "ops/infer_helpers.h"
#include "ops/kernels/tree.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// Interior nodes first, then one node for each leaf.
Result<Forest> read_nodes(const KernelContext& context) {
  const AttributeReader& attributes = context.attributes;
  const auto features = attributes.get_ints("nodes_featureids");
  const auto on_true = attributes.get_ints("nodes_truenodeids");
  const auto on_false = attributes.get_ints("nodes_falsenodeids");
  const auto true_leafs = attributes.get_ints("nodes_trueleafs");
  const auto false_leafs = attributes.get_ints("nodes_falseleafs");
  const auto missing = attributes.get_ints("nodes_missing_value_tracks_true");
  const auto targets = attributes.get_ints("leaf_targetids");
  TRY(const Tensor modes, read_tensor(context, "nodes_modes"));
  TRY(const Tensor splits, read_tensor(context, "nodes_splits"));
  TRY(const Tensor weights, read_tensor(context, "leaf_weights"));
  TRY(const Tensor members, read_tensor(context, "membership_values"));
  const size_t count = features.size();
  const auto differs = [](const Tensor& tensor, size_t size) {
    return tensor.size() != static_cast<int64_t>(size) || is_string(tensor.dtype());
  };
  if (on_true.size() != count || on_false.size() != count || true_leafs.size() != count ||
      false_leafs.size() != count || differs(modes, count) || differs(splits, count) ||
      (!missing.empty() && missing.size() != count) || differs(weights, targets.size()))
    return context.error("the nodes_* or leaf_* attributes have different lengths");
  Forest forest;
  forest.targets = attributes.get_int("n_targets", 1);
  const auto interior = static_cast<int64_t>(count);
  int64_t member = 0;
  for (size_t i = 0; i < count; ++i) {
    TreeNode node;
    const int64_t mode = modes.get_int64(static_cast<int64_t>(i));
    if (mode < 0 || mode > static_cast<int64_t>(TreeMode::kMember))
      return context.error("nodes_modes has the value " + std::to_string(mode));
    node.mode = static_cast<TreeMode>(mode);
    node.feature = features[i];
    node.split = splits.get_double(static_cast<int64_t>(i));
    node.missing_is_true = !missing.empty() && missing[i] != 0;
    const auto place = [&](int64_t id, int64_t is_leaf) {
      const auto limit = is_leaf != 0 ? static_cast<int64_t>(targets.size()) : interior;
      return id < 0 || id >= limit ? -1 : is_leaf != 0 ? interior + id : id;
    };
    node.on_true = place(on_true[i], true_leafs[i]);
    node.on_false = place(on_false[i], false_leafs[i]);
    if (node.mode == TreeMode::kMember) {  // its set ends with a NaN
      node.first = forest.members.size();
      while (true) {
        if (absent(members) || member >= members.size())
          return context.error("membership_values has too few sets");
        const double value = members.get_double(member++);
        if (value != value) break;
        forest.members.push_back(value);
      }
      node.last = forest.members.size();
    }
    forest.nodes.push_back(node);
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    TreeNode leaf;
    leaf.first = i;
    leaf.last = i + 1;
    forest.nodes.push_back(leaf);
    forest.votes.push_back({targets[i], weights.get_double(static_cast<int64_t>(i))});
  }
  const auto roots = attributes.get_ints("tree_roots");
  forest.roots.assign(roots.begin(), roots.end());
  return forest;
}

}  // namespace

Result<TreeRegression> read_tree_ensemble(const KernelContext& context, int64_t features) {
  TreeRegression rule;
  TRY(rule.forest, read_nodes(context));
  const int64_t aggregate = context.attributes.get_int("aggregate_function", 1);
  const int64_t transform = context.attributes.get_int("post_transform", 0);
  if (aggregate < 0 || aggregate > 3 || transform < 0 || transform > 4)
    return context.error("aggregate_function is " + std::to_string(aggregate) +
                         ", post_transform is " + std::to_string(transform));
  if (rule.forest.targets < 1)
    return context.error("n_targets is " + std::to_string(rule.forest.targets));
  CHECK_OK(rule.forest.check(context, features));
  rule.aggregate = static_cast<Aggregate>(aggregate);
  rule.transform = static_cast<PostTransform>(transform);
  rule.result_as_input = true;
  return rule;
}

namespace {

Status run_tree_ensemble(KernelContext& context) {
  TRY(const Tensor x, feature_rows(context, 0));
  TRY(const TreeRegression rule, read_tree_ensemble(context, x.dim(1)));
  const int64_t targets = rule.forest.targets;
  TRY(Tensor y, context.allocate(DType::kFloat64, {{x.dim(0), targets}}));
  std::vector<uint8_t> voted(static_cast<size_t>(targets));
  for (int64_t row = 0; row < x.dim(0); ++row) {
    const std::span<double> scores(y.data<double>() + row * targets, voted.size());
    CHECK_OK(rule.forest.predict(x.data<double>() + row * x.dim(1), rule.aggregate, scores, voted));
    rule.finish(scores);
  }
  return give(context, 0, context.value(0).tensor().dtype(), std::move(y));
}

}  // namespace

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
    .reference = run_tree_ensemble,
};

}  // namespace tombolo::ops
