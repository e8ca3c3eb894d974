#pragma once

#include <cstdint>

namespace tombolo {

/// y[i, j] = sum over k of (a[i, k] - b[j, k])^2, or its root, for `rows` of a, `width` apart, and
/// the columns of one packed panel of b (pack_b: [k][panel_width]).
struct DistanceTile {
  const float *a, *panel;
  int64_t width, panel_width;
  bool root;
  float* y;
  int64_t ldy, cols;
};
void distance_rows(const DistanceTile& tile, int64_t rows);

}  // namespace tombolo
