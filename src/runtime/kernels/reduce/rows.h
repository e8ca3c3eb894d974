#pragma once

// Whole rows of floats: normalisation, softmax, reduction, windows. Vectors within one row where it
// lies in one piece, or across rows that lie side by side.

#include <cstdint>

namespace tombolo {

struct RowMoments {
  float mean, inverse_deviation;
};
/// Mean and 1 / sqrt(variance + epsilon) of n numbers: two passes, so that a large mean costs
/// nothing.
RowMoments row_moments(const float* x, int64_t n, float epsilon);
/// y = (x - mean) * inverse * scale[i] + bias[i]; a null scale or bias is one or zero.
void normalize_row(const float* x, float* y, int64_t n, RowMoments moments, const float* scale,
                   const float* bias);
/// The same with one scale and one bias for all.
void normalize_plane(const float* x, float* y, int64_t n, RowMoments moments, float scale,
                     float bias);
/// 1 / sqrt(mean of squares + epsilon)
float row_inverse_rms(const float* x, int64_t n, float epsilon);

/// y = softmax(x) (or its logarithm) of rows of n elements; y may be x.
void softmax_rows(const float* x, float* y, int64_t rows, int64_t n, bool logarithm);
/// The same down `width` columns, kSoftmaxColumns at most, whose elements are `step` apart.
inline constexpr int64_t kSoftmaxColumns = 1024;
void softmax_columns(const float* x, float* y, int64_t n, int64_t step, int64_t width,
                     bool logarithm);

enum class Fold : uint8_t { kSum, kSumSquare, kSumAbs, kMax, kMin, kProd };
/// Each of `count` rows of n numbers into one: of float, double, int32_t, int64_t, or of uint8_t or
/// int8_t for kMax and kMin. Integers wrap.
template <typename T>
void fold_rows(Fold fold, const T* x, int64_t n, int64_t count, T* y);
template <typename T>
T fold_row(Fold fold, const T* x, int64_t n) {
  T result;
  fold_rows(fold, x, n, 1, &result);
  return result;
}
/// y[j] = fold over i of x[i * step + j], i < n, for j in [0, width). Of several blocks: those of x
/// are n * step apart, of y `width`.
template <typename T>
void fold_columns(Fold fold, const T* x, int64_t n, int64_t step, int64_t width, T* y,
                  int64_t blocks = 1);

/// Sum of e^(x[i] - shift), for shift the greatest of x: of float or double.
template <typename T>
T exp_sum_row(const T* x, int64_t n, T shift);
/// sums[j] = sum over i of e^(x[i * step + j] - shifts[j]).
template <typename T>
void exp_sum_columns(const T* x, int64_t n, int64_t step, int64_t width, const T* shifts, T* sums);

}  // namespace tombolo
