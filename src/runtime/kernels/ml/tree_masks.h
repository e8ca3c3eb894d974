#pragma once

// Small decision trees without walks (QuickScorer: Lucchese et al., SIGIR 2015; its vectors: SIGIR
// 2016): every test of a tree is made for rows side by side, and one that fails strikes out the
// leaves below its first child. The first leaf that is left is where a walk would end.

#include <cstdint>
#include <vector>

#include "runtime/kernels/ml/flat_forest.h"
#include "runtime/kernels/ml/linear_scores.h"

namespace tombolo {

struct MaskForest {
  struct Column {
    int64_t feature;
    bool opposite;  ///< -x
  };
  /// Unless x <= split, a word keeps only these leaves. The first leaf has the lowest bit.
  struct Test {
    float split;
    uint32_t keep;
    int32_t column;
  };
  /// 32 leaves of a tree, and the tests that strike out some of them.
  struct Word {
    int32_t tests_end;
    uint32_t leaves;
  };
  struct Tree {
    int32_t words_end, targets_end;
    int32_t values;  ///< [targets][words][32], in `values`
  };
  int64_t features = 0;
  bool whole_rows = false;      ///< the first columns are all features
  std::vector<Column> columns;  ///< what else tests look at
  std::vector<Test> tests;
  std::vector<Word> words;
  std::vector<Tree> trees;
  std::vector<int32_t> targets;  ///< those that the leaves of a tree vote for
  std::vector<float> values;

  /// False where a tree has many leaves, tests are not of order, or votes have no place of their
  /// own or are no floats: walks serve those.
  bool build(const FlatForest<float>& forest, int64_t target_count);
  /// Cycles that so many rows take, or so.
  double cost(int64_t rows) const;

  /// Floats of columns, what tests look at in rows of x: to[i * kLinearRows + r].
  size_t column_floats() const {
    const auto first = static_cast<size_t>(whole_rows ? features : 0);
    return (first + columns.size()) * static_cast<size_t>(kLinearRows);
  }
  void gather(const float* x, int64_t rows, float* to) const;
  /// sums[t * kLinearRows + r] += the votes of trees [first, last), in their order.
  void add(int64_t first, int64_t last, const float* columns, int64_t rows, double* sums) const;

 private:
  bool add_tree(const FlatForest<float>& forest, int32_t root, int64_t target_count,
                std::vector<int32_t>& column_of);
};

}  // namespace tombolo
