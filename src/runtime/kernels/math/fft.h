#pragma once

// Discrete Fourier transforms in double, of several signals at a time: [element][signal], real and
// imaginary parts apart, so that vectors run across signals first and across elements then.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tombolo {

/// One step of Stockham's algorithm: `radix` interleaved transforms become one.
struct FftStage {
  int radix = 0;
  int64_t parts = 0;                       ///< what is left of the length after this step
  int64_t stride = 0;                      ///< elements that go together, of one signal
  std::vector<double> roots_re, roots_im;  ///< [parts][radix - 1]
  std::vector<double> along_re, along_im;  ///< the same as [radix - 1][parts], if the stride is 1
  std::vector<double> turn_re, turn_im;    ///< exp(-2 pi i k / radix): for radices without a case
};

/// A transform of one length; read-only once made, for any number of threads. Lengths with prime
/// factors up to 13 go by steps of 8, 4, 2, 3, 5 and those primes, others by Bluestein's algorithm.
class FftPlan {
 public:
  explicit FftPlan(int64_t length);
  int64_t length() const { return length_; }
  /// The length that the steps transform.
  int64_t stepped() const { return padded_; }
  /// Doubles that `run` needs as `work`.
  size_t work_doubles(int64_t signals) const;
  /// Forward, without a factor, to where re and im point then: to the same memory or to that of
  /// `work`. With re and im exchanged: the inverse.
  void run(double*& re, double*& im, double* work, int64_t signals) const;

 private:
  void stages_of(int64_t length);
  void walk(double*& re, double*& im, double* work, int64_t signals) const;

  int64_t length_, padded_;  ///< padded: the power of two that Bluestein's convolution takes
  std::vector<FftStage> stages_;
  std::vector<double> chirp_re_, chirp_im_, filter_re_, filter_im_;
};

}  // namespace tombolo
