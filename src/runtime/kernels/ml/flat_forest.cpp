#include "runtime/kernels/ml/flat_forest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tombolo {
namespace {

/// The greatest T not above x, in comparisons with numbers of type T.
template <typename T>
T not_above(double x) {
  const T rounded = static_cast<T>(x);
  if (!(static_cast<double>(rounded) > x)) return rounded;
  return std::nextafter(rounded, -std::numeric_limits<T>::infinity());
}
/// The greatest T below x; not a number where there is none.
template <typename T>
T below(double x) {
  const T most = not_above<T>(x);
  if (static_cast<double>(most) < x) return most;
  if (most == -std::numeric_limits<T>::infinity()) return std::numeric_limits<T>::quiet_NaN();
  return std::nextafter(most, -std::numeric_limits<T>::infinity());
}

}  // namespace

template <typename T>
bool FlatForest<T>::build(const ops::Forest& forest, int64_t width) {
  if (forest.nodes.size() > (size_t{1} << 29) || width > FlatNode<T>::kFeature / 2) return false;
  features = static_cast<uint32_t>(width);
  std::vector<uint8_t> seen(forest.nodes.size());
  for (int64_t root : forest.roots) {
    roots.push_back(static_cast<int32_t>(nodes.size()));
    nodes.emplace_back();
    source.push_back(0);
    if (!place(forest, static_cast<size_t>(root), roots.back(), seen)) return false;
  }
  collect_weights(forest);
  return true;
}

template <typename T>
void FlatForest<T>::collect_weights(const ops::Forest& forest) {
  const auto targets = static_cast<size_t>(forest.targets);
  constexpr size_t kMost = 64;  // more would be mostly zeros
  if (targets < 1 || targets > kMost) return;
  std::vector<double> found;
  std::vector<int32_t> rows(nodes.size());
  std::vector<uint8_t> voted(targets);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const ops::TreeNode& node = forest.nodes[static_cast<size_t>(source[i])];
    if (node.mode != ops::TreeMode::kLeaf && targets > 1) continue;
    rows[i] = static_cast<int32_t>(found.size() / targets);
    found.resize(found.size() + targets);
    if (node.mode != ops::TreeMode::kLeaf) continue;
    std::fill(voted.begin(), voted.end(), 0);
    for (size_t v = node.first; v < node.last; ++v) {
      const auto target = static_cast<size_t>(forest.votes[v].target);
      if (voted[target]++ != 0) return;
      found[found.size() - targets + target] = forest.votes[v].weight;
    }
  }
  weights = std::move(found);
  if (targets > 1) leaf_rows = std::move(rows);
}

template <typename T>
bool FlatForest<T>::place(const ops::Forest& forest, size_t root, int32_t slot,
                          std::vector<uint8_t>& seen) {
  struct Open {
    size_t node;
    int32_t slot, depth;
  };
  std::vector<Open> open = {{root, slot, 0}};
  int32_t deepest = 0;
  while (!open.empty()) {
    const auto [at, here, depth] = open.back();
    open.pop_back();
    deepest = std::max(deepest, depth);
    if (seen[at]++ != 0) return false;
    const ops::TreeNode& node = forest.nodes[at];
    source[static_cast<size_t>(here)] = static_cast<int32_t>(at);
    FlatNode<T> flat{std::numeric_limits<T>::quiet_NaN(), 0, here - 1};
    if (node.mode != ops::TreeMode::kLeaf) {
      if (node.feature > FlatNode<T>::kFeature) return false;
      const bool turned = node.mode == ops::TreeMode::kGt || node.mode == ops::TreeMode::kGte ||
                          node.mode == ops::TreeMode::kNeq;
      bool first_is_true = true;
      flat.feature = static_cast<uint32_t>(node.feature);
      switch (node.mode) {
        case ops::TreeMode::kLeq:
        case ops::TreeMode::kGt:
          flat.split = not_above<T>(node.split);
          break;
        case ops::TreeMode::kLt:
        case ops::TreeMode::kGte:
          flat.split = below<T>(node.split);
          break;
        case ops::TreeMode::kEq:
        case ops::TreeMode::kNeq:
          if (static_cast<double>(static_cast<T>(node.split)) == node.split)
            flat.split = static_cast<T>(node.split);
          flat.feature |= FlatNode<T>::kEqual;
          break;
        default:
          return false;
      }
      // No number is above one that is not: then what is asked for is false, whatever x is.
      const bool never = node.split != node.split && node.mode != ops::TreeMode::kNeq;
      if (never) flat.split = std::numeric_limits<T>::quiet_NaN();
      if (turned && !never) first_is_true = false;
      // Where a missing value goes: to `on_true` if the node says so, or if the test is "not
      // equal".
      const bool missing_true = node.missing_is_true || node.mode == ops::TreeMode::kNeq;
      if (missing_true == first_is_true) flat.feature |= FlatNode<T>::kMissing;
      if (flat.feature == (static_cast<uint32_t>(node.feature) | FlatNode<T>::kMissing) &&
          flat.split == flat.split) {
        // "-x < -split" leads where "x <= split" does not: what is no number then goes the right
        // way without being asked for.
        flat.feature = static_cast<uint32_t>(node.feature) + features;
        flat.split = below<T>(-static_cast<double>(flat.split));
        first_is_true = !first_is_true;
        mirrored = true;
      }
      general = general || (flat.feature & (FlatNode<T>::kMissing | FlatNode<T>::kEqual)) != 0;
      flat.child = static_cast<int32_t>(nodes.size());
      nodes.resize(nodes.size() + 2);
      source.resize(nodes.size());
      const auto on_true = static_cast<size_t>(node.on_true);
      const auto on_false = static_cast<size_t>(node.on_false);
      open.push_back({first_is_true ? on_false : on_true, flat.child + 1, depth + 1});
      open.push_back({first_is_true ? on_true : on_false, flat.child, depth + 1});
    }
    nodes[static_cast<size_t>(here)] = flat;
  }
  depths.push_back(deepest);
  return true;
}

template struct FlatForest<float>;
template struct FlatForest<double>;

}  // namespace tombolo
