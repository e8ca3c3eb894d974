#pragma once

// How QuantizeLinear and DequantizeLinear share scales, as rows of neighbouring elements: one for
// all, for each index of an axis, or for each block of an axis.

#include <algorithm>
#include <optional>

#include "runtime/kernels/kernel.h"

namespace tombolo {

struct ScaleRows {
  int64_t rows = 1, n = 1;  ///< rows of n elements; the last may be shorter
  int64_t all = 1;          ///< elements
  int64_t block = 1;        ///< elements of a row that share a scale; 0: each has its own
  // Scales of row r begin at ((r / length) * blocks + (r % length) / share) * step.
  int64_t length = 1, blocks = 1, share = 1, step = 1;

  int64_t scales_of(int64_t row) const {
    return (row / length * blocks + row % length / share) * step;
  }
  /// Joins short rows whose elements have scales of their own, the same in each row: how many
  /// became one.
  int64_t join_short() {
    constexpr int64_t kLong = 1024;
    if (block != 0 || step != 0 || n > kLong / 2) return 1;
    const int64_t joined = std::min(rows, kLong / n);
    n *= joined;
    rows = (rows + joined - 1) / joined;
    return joined;
  }
  int64_t elements_of(int64_t row) const { return std::min(n, all - row * n); }
};

/// Of inputs 0 and 1; nothing where the scales do not fit, or nothing is there.
std::optional<ScaleRows> read_scale_rows(const KernelQuery& query);

/// What QuantizeLinear of floats gives, divided in float; nothing where it is asked for otherwise.
std::optional<DType> read_quantised_type(const KernelQuery& query);

}  // namespace tombolo
