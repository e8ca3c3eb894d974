#pragma once

// Decision trees for walks without branches: every test is "x <= split", and the children of a node
// lie side by side.

#include <cstdint>
#include <vector>

#include "ops/kernels/tree.h"

namespace tombolo {

/// Leads to `child` when x <= split, else to `child + 1`. A leaf has a split that is not a number,
/// and is its own second child: a walk that has arrived stays.
template <typename T>
struct FlatNode {
  T split;
  uint32_t feature;  ///< with kEqual and kMissing
  int32_t child;

  static constexpr uint32_t kMissing = 1u << 31;  ///< what is not a number goes to the first child
  static constexpr uint32_t kEqual = 1u << 30;    ///< the test is x == split
  static constexpr uint32_t kFeature = kEqual - 1;
};

template <typename T>
struct FlatForest {
  std::vector<FlatNode<T>> nodes;
  std::vector<int32_t> source;  ///< the node of the Forest that each is
  std::vector<int32_t> roots;
  std::vector<int32_t> depths;  ///< of the tree below each root
  /// Of each leaf for each target, where a leaf has at most one vote for each: at the leaf's own
  /// place for one target, else at the row that it has in `leaf_rows`.
  std::vector<double> weights;
  std::vector<int32_t> leaf_rows;
  uint32_t features = 0;
  bool general = false;   ///< kMissing or kEqual is used
  bool mirrored = false;  ///< a row is followed by its opposite, which some nodes look at

  /// Whether node `at` leads nowhere else.
  bool is_leaf(int32_t at) const { return nodes[static_cast<size_t>(at)].child == at - 1; }
  /// False when the trees are no trees (nodes have several parents, or lead in a circle), or a test
  /// is not one of order.
  bool build(const ops::Forest& forest, int64_t width);

 private:
  void collect_weights(const ops::Forest& forest);
  bool place(const ops::Forest& forest, size_t at, int32_t slot, std::vector<uint8_t>& seen);
};

}  // namespace tombolo
