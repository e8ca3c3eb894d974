#pragma once

// Mean and variance, summed in double: what the normalisations share.

#include <cmath>
#include <cstdint>

namespace tombolo::ops {

struct Moments {
  double mean = 0, variance = 0;  ///< of the population
  double inverse_deviation(double epsilon) const { return 1 / std::sqrt(variance + epsilon); }
};

/// Of `rows` runs of `count` elements each, `step` elements apart. NaN where there is none.
template <typename T>
Moments moments_of(const T* x, int64_t count, int64_t rows = 1, int64_t step = 0) {
  Moments result;
  const double total = static_cast<double>(count) * static_cast<double>(rows);
  double sum = 0;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[r * step + i]);
  result.mean = sum / total;
  double squares = 0;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < count; ++i) {
      const double d = static_cast<double>(x[r * step + i]) - result.mean;
      squares += d * d;
    }
  result.variance = squares / total;
  return result;
}

/// y = (x - mean) * scale + bias, rounded once to T.
template <typename T>
void normalize(const T* x, T* y, int64_t count, double mean, double scale, double bias) {
  for (int64_t i = 0; i < count; ++i)
    y[i] = static_cast<T>((static_cast<double>(x[i]) - mean) * scale + bias);
}

}  // namespace tombolo::ops
