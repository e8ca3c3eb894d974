#pragma once

#include <cstdint>

namespace tombolo {

/// y[i, j] = sum over k of (a[i, k] - b[j, k])^2, or its root, for `rows` of a, `width` apart, and
/// the columns of one packed panel of b (pack_b, pack_wide: [k][panel_width]); of float or double.
template <typename T>
struct DistanceTile {
  const T *a, *panel;
  int64_t width, panel_width;
  bool root;
  T* y;
  int64_t ldy, cols;
};
template <typename T>
void distance_rows(const DistanceTile<T>& tile, int64_t rows);

/// The same from products: y holds those of the rows of a and of b, `squares` are the sums of their
/// squares. Where little is left of these the difference is what rounding left of it: such pairs,
/// and what is not finite, are computed as above.
template <typename T>
struct DistanceProducts {
  const T *a, *b;  ///< rows of `width`
  const T *squares_a, *squares_b;
  int64_t width;
  bool root;
  T* y;
  int64_t ldy, rows, cols;
};
template <typename T>
void distances_of_products(const DistanceProducts<T>& products);

/// sum over i of x[i]^2 for each row.
template <typename T>
void sums_of_squares(const T* x, int64_t rows, int64_t width, T* sums);

/// Whether distances are mostly much less than the numbers they are between, of some pairs.
template <typename T>
bool mostly_near(const T* a, int64_t rows, const T* b, int64_t columns, int64_t width);

}  // namespace tombolo
