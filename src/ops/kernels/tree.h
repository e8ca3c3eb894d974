#pragma once

// Decision trees in one form, whichever operator they come from.

#include <span>
#include <vector>

#include "ops/kernels/ml.h"

namespace tombolo::ops {

enum class TreeMode : uint8_t { kLeq, kLt, kGte, kGt, kEq, kNeq, kMember, kLeaf };

struct TreeNode {
  TreeMode mode = TreeMode::kLeaf;
  bool missing_is_true = false;
  int64_t feature = 0;
  double split = 0;
  int64_t on_true = 0, on_false = 0;  ///< nodes; unused in a leaf
  size_t first = 0, last = 0;         ///< its members in a kMember node, its votes in a leaf
};
struct TreeVote {
  int64_t target;
  double weight;
};

enum class Aggregate : uint8_t { kAverage, kSum, kMin, kMax };

struct Forest {
  std::vector<TreeNode> nodes;
  std::vector<int64_t> roots;
  std::vector<double> members;
  std::vector<TreeVote> votes;
  int64_t targets = 0;

  /// Checks every index against what it points into, and features against `features`.
  Status check(const KernelContext& context, int64_t features) const;
  /// The votes of leaf `node`, into the sums of one row.
  void add_votes(size_t node, Aggregate aggregate, std::span<double> result,
                 std::span<uint8_t> voted) const;
  /// The votes of all trees for one row, aggregated by target; 0 where no leaf votes. An error
  /// when a tree runs in a circle.
  Status predict(const double* row, Aggregate aggregate, std::span<double> result,
                 std::span<uint8_t> voted) const;
};

/// TreeEnsembleRegressor and TreeEnsemble, read and checked against the number of features.
struct TreeRegression {
  Forest forest;
  Aggregate aggregate = Aggregate::kSum;
  PostTransform transform = PostTransform::kNone;
  std::vector<double> base;
  bool result_as_input = false;  ///< the result has the type of the features, else float

  void finish(std::span<double> scores) const;
};
Result<TreeRegression> read_tree_regressor(const KernelContext& context, int64_t features);
Result<TreeRegression> read_tree_ensemble(const KernelContext& context, int64_t features);

/// TreeEnsembleClassifier.
struct TreeClassification {
  Forest forest;
  ClassLabels labels;
  PostTransform transform = PostTransform::kNone;
  std::vector<double> base;
  // Two classes of which only one ever gets votes: one score decides, as in ONNX Runtime.
  bool one_score = false;      ///< all votes are for one class
  bool probabilities = false;  ///< no vote is negative: the score is a probability

  /// The number of the class for these sums, which are changed, and the scores given out.
  int64_t decide(std::span<double> sums, std::vector<double>& scores) const;
};
Result<TreeClassification> read_tree_classifier(const KernelContext& context, int64_t features);

/// Reads the attributes of TreeEnsembleRegressor and -Classifier; `votes` is the prefix of the
/// leaves' attributes ("target" or "class").
Result<Forest> read_forest(const KernelContext& context, const std::string& votes);

}  // namespace tombolo::ops
