#pragma once

#include <cstdint>

namespace tombolo {

/// y = softmax(x) (or its logarithm) of rows of n doubles; y may be x.
void softmax_rows(const double* x, double* y, int64_t rows, int64_t n, bool logarithm);

/// The same down `width` columns, kSoftmaxDoubles at most, of n doubles `step` apart.
inline constexpr int64_t kSoftmaxDoubles = 32;
void softmax_columns(const double* x, double* y, int64_t n, int64_t step, int64_t width,
                     bool logarithm);

}  // namespace tombolo
