#pragma once

// Root mean square normalisation of rows.

#include <cmath>
#include <cstdint>

namespace tombolo::ops {

/// sqrt(mean(x^2) + epsilon) of one row.
template <typename T>
double root_mean_square(const T* x, int64_t width, double epsilon) {
  double sum = 0;
  for (int64_t j = 0; j < width; ++j) sum += static_cast<double>(x[j]) * static_cast<double>(x[j]);
  return std::sqrt(sum / static_cast<double>(width) + epsilon);
}

/// x / rms(x) * weight for each of `rows` rows, in place.
template <typename T>
void normalize_rows(T* x, int64_t rows, int64_t width, const T* weight, double epsilon) {
  for (int64_t row = 0; row < rows; ++row, x += width) {
    const double inverse = 1 / root_mean_square(x, width, epsilon);
    for (int64_t j = 0; j < width; ++j)
      x[j] = static_cast<T>(static_cast<double>(x[j]) * inverse * static_cast<double>(weight[j]));
  }
}

}  // namespace tombolo::ops
