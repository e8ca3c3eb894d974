#pragma once

// Rows of float features in double: support vectors, scaling.

#include <cstdint>

namespace tombolo {

/// Sum of a[i] * b[i] over n numbers.
double dot_f64(const double* a, const double* b, int64_t n);
/// `to` gets the numbers as doubles.
void widen_floats(const float* x, int64_t n, double* to);
void widen_longs(const int64_t* x, int64_t n, double* to);

enum class SvmKind : uint8_t { kLinear, kPoly, kRbf, kSigmoid };
struct SvmParameters {
  SvmKind kind = SvmKind::kLinear;
  double gamma = 0, coef0 = 0, degree = 0;

  /// Whether svm_values has it in float: the sigmoid, and powers that are products.
  bool narrow() const {
    return kind == SvmKind::kSigmoid ||
           (kind == SvmKind::kPoly && (degree == 1 || degree == 2 || degree == 3 || degree == 4));
  }
};
/// Supports are padded to whole steps of this many; few of them, to no more than they need.
inline constexpr int64_t kSvmStep = 64, kSvmFewStep = 16;
/// out[r * padded + s] = kernel(row r, vector s) for s < padded, with vectors as
/// [feature][padded]. There is room for whole steps of kSvmStep in `out`.
void svm_values(const SvmParameters& parameters, const double* x, int64_t rows,
                const double* vectors, int64_t features, int64_t padded, double* out);
void svm_values(const SvmParameters& parameters, const float* x, int64_t rows, const float* vectors,
                int64_t features, int64_t padded, float* out);

/// y = (x - offset) * scale, rounded once.
void scale_features(const float* x, const double* offset, const double* scale, int64_t n, float* y);

/// y = by where x is the marker (any NaN, where that is one), else x. T: float, double, int64_t.
template <typename T>
void impute(const T* x, T marker, const T* by, int64_t n, T* y);

enum class RowNorm : uint8_t { kMax, kL1, kL2 };
/// Each of `rows` rows of n numbers divided by its norm, as it is where that is zero.
void divide_by_norm(RowNorm norm, const float* x, int64_t rows, int64_t n, float* y);
void divide_by_norm(RowNorm norm, const double* x, int64_t rows, int64_t n, float* y);

}  // namespace tombolo
