#pragma once

// Lines of a tensor on their way to the rows of a Fourier transform and back.

#include <cstdint>

namespace tombolo {

inline constexpr int64_t kFftSignals = 8;  ///< lines that are transformed together

/// [element][kFftSignals] of double, real and imaginary parts apart.
struct FftRows {
  double* re;
  double* im;
};

/// What an even number of real numbers needs beside the transform of half as many complex ones:
/// cos and sin of 2 pi k / length, for k up to the half.
struct FftPairs {
  int64_t length;
  const double *cosine, *sine;
};

// T: float or double. `lines` are kFftSignals pointers; those beyond `count` may be any of the
// lines, and only `count` are written.

/// Rows of lines whose numbers lie side by side. `apart`: odd numbers are imaginary parts of those
/// before. `window`, if any, has a weight for each number.
template <typename T>
void read_fft_lines(const T* const* lines, int64_t numbers, bool apart, const T* window,
                    FftRows rows);
/// Rows of neighbours: element i of line j at x[i * step + j], or x[i * step + 2 j] if `complex`.
/// Unless `complex`, `apart` as above.
template <typename T>
void read_fft_neighbours(const T* x, int64_t step, int64_t elements, bool complex, bool apart,
                         int64_t count, FftRows rows);
/// Lines of `elements` numbers, or of twice as many if `complex`.
template <typename T>
void write_fft_lines(FftRows rows, const FftPairs* pairs, int64_t elements, bool complex,
                     double scale, int64_t count, T* const* lines);
template <typename T>
void write_fft_neighbours(FftRows rows, const FftPairs* pairs, int64_t elements, bool complex,
                          double scale, int64_t count, T* y, int64_t step);

/// A line alone, in rows of one number each.
template <typename T>
void read_fft_line(const T* x, int64_t numbers, bool apart, const T* window, FftRows rows);
template <typename T>
void write_fft_line(FftRows rows, const FftPairs* pairs, int64_t elements, bool complex,
                    double scale, T* y);

}  // namespace tombolo
