#pragma once

// What both ways to compute attention are made of: with keys as lanes (attention.cpp), and with
// queries as lanes (attention_turned.cpp).

#include <algorithm>
#include <cstdint>

#include "runtime/kernels/attention/attention.h"
#include "runtime/kernels/matmul/gemm.h"

namespace tombolo {

/// Queries for which keys are not worth packing.
inline constexpr int64_t kFewQueries = 8;
/// Floats of a value that LastValues takes at most.
inline constexpr int64_t kLongValue = 480;

/// The keys that count for one query.
struct KeyRange {
  int64_t from, to;
};
KeyRange range_of(const AttentionShape& s, const AttentionData& d, int64_t b, int64_t row);

/// Whether the keys that count are the same for all queries of one of the batch.
inline bool same_for_all(const AttentionShape& s) {
  return !s.causal && s.left < 0 && s.right < 0 && s.last < 0;
}

/// Whether values are packed to lie in one piece, not a head apart: many queries read all of them
/// again and again, and where they lie they may push each other out of the first cache.
inline bool gathers_values(const AttentionShape& s) {
  const int64_t many = rows_collide(s.v.step_stride) ? gemm_tiles().panel() + 1 : 64;
  return s.v.step_stride != s.value_size && s.rows >= many;
}

/// c[rows, columns) = a b by tiles, or += it, b in panels `panel_step` apart. Of a long b what the
/// first cache holds meets all rows before the next.
void attention_product(int64_t rows, int64_t columns, int64_t k, const float* a, int64_t lda,
                       const float* b, int64_t ldb, int64_t panel_step, float* c, int64_t ldc,
                       bool add = false);

/// Rows of y, `step` apart, times a factor each.
void scale_rows(float* y, int64_t step, int64_t rows, int64_t n, const float* factors);

/// The last ones of n values, `step` apart, with zeros behind them: tiles read whole vectors, which
/// would end behind what is there.
class LastValues {
 public:
  static constexpr int64_t kMost = kLongValue + 32;  ///< floats of all
  LastValues(const float* v, int64_t step, int64_t n, int64_t size)
      : ld_(round_up(size, gemm_tiles().lanes)),
        count_(ld_ == size ? 0
                           : std::min(n, (ld_ - size + step - 1) / std::max<int64_t>(step, 1))) {
    for (int64_t i = 0; i < count_; ++i) {
      std::copy_n(v + (n - count_ + i) * step, size, copy_ + i * ld_);
      std::fill_n(copy_ + i * ld_ + size, ld_ - size, 0.0f);
    }
  }
  int64_t count() const { return count_; }
  int64_t ld() const { return ld_; }
  const float* at() const { return copy_; }

 private:
  const int64_t ld_, count_;
  float copy_[kMost];
};

}  // namespace tombolo
