#include "ops/kernels/tree.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

namespace tombolo::ops {

Status Forest::check(const KernelContext& context, int64_t features) const {
  const auto count = static_cast<int64_t>(nodes.size());
  for (int64_t root : roots)
    if (root < 0 || root >= count)
      return context.error("a tree starts at node " + std::to_string(root) + " of " +
                           std::to_string(count));
  for (const TreeNode& node : nodes) {
    if (node.mode == TreeMode::kLeaf) continue;
    if (node.on_true < 0 || node.on_true >= count || node.on_false < 0 || node.on_false >= count)
      return context.error(
          "a node leads to node " +
          std::to_string(node.on_true < 0 || node.on_true >= count ? node.on_true : node.on_false) +
          " of " + std::to_string(count));
    if (node.feature < 0 || node.feature >= features)
      return context.error("a node looks at feature " + std::to_string(node.feature) + " of " +
                           std::to_string(features));
  }
  for (const TreeVote& vote : votes)
    if (vote.target < 0 || vote.target >= targets)
      return context.error("a leaf votes for " + std::to_string(vote.target) + " of " +
                           std::to_string(targets) + " targets");
  return ok();
}

namespace {

bool follows(const Forest& forest, const TreeNode& node, double x) {
  if (x != x && node.missing_is_true) return true;
  switch (node.mode) {
    case TreeMode::kLeq:
      return x <= node.split;
    case TreeMode::kLt:
      return x < node.split;
    case TreeMode::kGte:
      return x >= node.split;
    case TreeMode::kGt:
      return x > node.split;
    case TreeMode::kEq:
      return x == node.split;
    case TreeMode::kNeq:
      return x != node.split;
    default:
      return std::find(forest.members.begin() + static_cast<int64_t>(node.first),
                       forest.members.begin() + static_cast<int64_t>(node.last),
                       x) != forest.members.begin() + static_cast<int64_t>(node.last);
  }
}

}  // namespace

void Forest::add_votes(size_t node, Aggregate aggregate, std::span<double> result,
                       std::span<uint8_t> voted) const {
  for (size_t i = nodes[node].first; i < nodes[node].last; ++i) {
    const auto target = static_cast<size_t>(votes[i].target);
    double& sum = result[target];
    const double weight = votes[i].weight;
    if (!voted[target] || aggregate == Aggregate::kSum || aggregate == Aggregate::kAverage)
      sum += weight;
    else
      sum = aggregate == Aggregate::kMin ? std::min(sum, weight) : std::max(sum, weight);
    voted[target] = 1;
  }
}

Status Forest::predict(const double* row, Aggregate aggregate, std::span<double> result,
                       std::span<uint8_t> voted) const {
  std::fill(result.begin(), result.end(), 0.0);
  std::fill(voted.begin(), voted.end(), uint8_t{0});
  for (int64_t root : roots) {
    auto at = static_cast<size_t>(root);
    for (size_t steps = 0; nodes[at].mode != TreeMode::kLeaf; ++steps) {
      if (steps > nodes.size()) return runtime_error("a tree runs in a circle");
      const TreeNode& node = nodes[at];
      at = static_cast<size_t>(follows(*this, node, row[node.feature]) ? node.on_true
                                                                       : node.on_false);
    }
    add_votes(at, aggregate, result, voted);
  }
  if (aggregate == Aggregate::kAverage && !roots.empty())
    for (double& value : result) value /= static_cast<double>(roots.size());
  return ok();
}

Result<Forest> read_forest(const KernelContext& context, const std::string& votes) {
  const AttributeReader& attributes = context.attributes;
  const auto trees = attributes.get_ints("nodes_treeids");
  const auto ids = attributes.get_ints("nodes_nodeids");
  const auto features = attributes.get_ints("nodes_featureids");
  const auto modes = attributes.get_strings("nodes_modes");
  const auto on_true = attributes.get_ints("nodes_truenodeids");
  const auto on_false = attributes.get_ints("nodes_falsenodeids");
  const auto missing = attributes.get_ints("nodes_missing_value_tracks_true");
  TRY(const std::vector<double> splits, read_numbers(context, "nodes_values"));
  const size_t count = trees.size();
  if (ids.size() != count || features.size() != count || modes.size() != count ||
      on_true.size() != count || on_false.size() != count || splits.size() != count ||
      (!missing.empty() && missing.size() != count))
    return context.error("the nodes_* attributes have different lengths");
  static constexpr std::string_view kModes[] = {"BRANCH_LEQ",    "BRANCH_LT", "BRANCH_GTE",
                                                "BRANCH_GT",     "BRANCH_EQ", "BRANCH_NEQ",
                                                "BRANCH_MEMBER", "LEAF"};
  Forest forest;
  std::map<std::pair<int64_t, int64_t>, int64_t> places;
  std::map<int64_t, int64_t> first_of_tree;
  for (size_t i = 0; i < count; ++i) {
    TreeNode node;
    const auto mode = std::find(std::begin(kModes), std::end(kModes), modes[i]);
    if (mode == std::end(kModes) || *mode == "BRANCH_MEMBER")
      return context.error("nodes_modes has the value \"" + std::string(modes[i]) + "\"");
    node.mode = static_cast<TreeMode>(mode - std::begin(kModes));
    node.feature = features[i];
    node.split = splits[i];
    node.missing_is_true = !missing.empty() && missing[i] != 0;
    const auto place = static_cast<int64_t>(i);
    if (!places.try_emplace({trees[i], ids[i]}, place).second)
      return context.error("node " + std::to_string(ids[i]) + " of tree " +
                           std::to_string(trees[i]) + " is there twice");
    if (first_of_tree.try_emplace(trees[i], place).second) forest.roots.push_back(place);
    forest.nodes.push_back(node);
  }
  const auto find = [&](int64_t tree, int64_t id) {
    const auto found = places.find({tree, id});
    return found == places.end() ? int64_t{-1} : found->second;
  };
  for (size_t i = 0; i < count; ++i) {
    forest.nodes[i].on_true = find(trees[i], on_true[i]);
    forest.nodes[i].on_false = find(trees[i], on_false[i]);
  }

  // Votes come in any order; each leaf gets its own together.
  const auto vote_trees = attributes.get_ints(votes + "_treeids");
  const auto vote_nodes = attributes.get_ints(votes + "_nodeids");
  const auto vote_targets = attributes.get_ints(votes + "_ids");
  TRY(const std::vector<double> weights, read_numbers(context, (votes + "_weights").c_str()));
  if (vote_nodes.size() != vote_trees.size() || vote_targets.size() != vote_trees.size() ||
      weights.size() != vote_trees.size())
    return context.error("the " + votes + "_* attributes have different lengths");
  std::vector<std::pair<int64_t, size_t>> by_leaf;
  for (size_t i = 0; i < vote_trees.size(); ++i) {
    const int64_t leaf = find(vote_trees[i], vote_nodes[i]);
    if (leaf < 0)
      return context.error("a vote is for node " + std::to_string(vote_nodes[i]) + " of tree " +
                           std::to_string(vote_trees[i]) + ", which is not there");
    by_leaf.push_back({leaf, i});
  }
  std::stable_sort(by_leaf.begin(), by_leaf.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < by_leaf.size(); ++i) {
    TreeNode& leaf = forest.nodes[static_cast<size_t>(by_leaf[i].first)];
    if (i == 0 || by_leaf[i - 1].first != by_leaf[i].first) leaf.first = i;
    leaf.last = i + 1;
    forest.votes.push_back({vote_targets[by_leaf[i].second], weights[by_leaf[i].second]});
  }
  return forest;
}

}  // namespace tombolo::ops
