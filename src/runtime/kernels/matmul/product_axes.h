#pragma once

// Where the matrices of a MatMul lie, whose sides may be read, and whose result may be written, in
// another order of axes than memory has (attributes perm_a, perm_b and perm_y of ai.tombolo
// MatMul).

#include <optional>
#include <vector>

#include "runtime/kernels/kernel.h"

namespace tombolo {

struct ProductAxes {
  int64_t m = 1, n = 1, k = 1;
  int64_t lda = 0;  ///< from row to row of A; where A is turned, from column to column
  int64_t ldb = 0;  ///< the same of B
  int64_t ldc = 0;
  bool trans_a = false;                   ///< columns of A lie in one piece, not rows
  bool trans_b = false;                   ///< columns of B do
  bool b_shared = false;                  ///< one B for the whole batch
  int64_t matrices = 1;                   ///< of B
  std::vector<int64_t> a_at, b_at, c_at;  ///< of each product: products of one B in a row
  Dims output;

  int64_t batch() const { return static_cast<int64_t>(a_at.size()); }
  int64_t b_row() const { return trans_b ? 1 : ldb; }     ///< elements from row to row
  int64_t b_column() const { return trans_b ? ldb : 1; }  ///< from column to column
};

/// Nothing where shapes do not fit together or a matrix has neither rows nor columns in one piece.
/// `trans_a`, `trans_b`: the last two axes are exchanged, after the perm.
std::optional<ProductAxes> product_axes(const KernelQuery& query, bool trans_a, bool trans_b);

}  // namespace tombolo
