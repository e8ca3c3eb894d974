#pragma once

// Linear functions of rows of features, as ai.onnx.ml has them: few results a row, which are kept
// as columns of kLinearRows rows until they are given out.

#include <cstdint>

namespace tombolo {

/// So many rows are worked on together.
inline constexpr int64_t kLinearRows = 32;
/// Weights of a target are padded with zeros to whole steps of this many.
inline constexpr int64_t kLinearStep = 16;

/// scores[t * kLinearRows + r] = bias[t] + sum of x[r * features + i] * w[t * padded + i] for rows
/// r < rows. Vectors run along the features: for many of them. T is float or double.
template <typename T>
void linear_dots(const T* x, int64_t rows, int64_t features, const T* w, int64_t padded,
                 const T* bias, int64_t targets, T* scores);
/// The same of columns, x[i * kLinearRows + r], with w[i * targets + t]; what is beyond the rows is
/// whatever stands there. Vectors run across rows: for few features.
template <typename T>
void linear_columns(const T* x, int64_t rows, int64_t features, const T* w, const T* bias,
                    int64_t targets, T* scores);
/// `n` doubles, a multiple of kLinearRows, as floats.
void narrow_scores(const double* scores, int64_t n, float* to);

/// Columns of scores in place: softmax over targets, or the logistic function of each.
void softmax_scores(float* scores, int64_t targets);
void logistic_scores(float* scores, int64_t targets);
/// best[r]: the target with the greatest score, the first of equals.
void greatest_scores(const float* scores, int64_t targets, int64_t* best);

}  // namespace tombolo
