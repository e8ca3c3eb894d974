#pragma once

// Rows of float features in double: linear scores, support vectors, scaling.

#include <cstdint>

namespace tombolo {

/// scores[r * targets + t] = bias[t] + sum of x[r * features + i] * w[i * targets + t] for
/// kLinearRows rows of which `rows` count; `room` holds kLinearRows * features floats.
inline constexpr int64_t kLinearRows = 32;
void linear_scores(const float* x, int64_t rows, int64_t features, const double* w,
                   const double* bias, int64_t targets, float* room, double* scores);

enum class SvmKind : uint8_t { kLinear, kPoly, kRbf, kSigmoid };
struct SvmParameters {
  SvmKind kind = SvmKind::kLinear;
  double gamma = 0, coef0 = 0, degree = 0;
};
/// Supports are padded to whole steps of this many.
inline constexpr int64_t kSvmStep = 32;
/// out[s] = kernel(x, vector s) for s < padded, with vectors as [feature][padded] in double.
void svm_values(const SvmParameters& parameters, const float* x, const double* vectors,
                int64_t features, int64_t padded, double* out);
/// Sum of a[i] * b[i] over n numbers.
double dot_f64(const double* a, const double* b, int64_t n);

/// y = (x - offset) * scale, rounded once.
void scale_features(const float* x, const double* offset, const double* scale, int64_t n, float* y);

enum class RowNorm : uint8_t { kMax, kL1, kL2 };
/// y = x / norm of x, x as it is where that is zero.
void divide_by_norm(RowNorm norm, const float* x, int64_t n, float* y);

}  // namespace tombolo
