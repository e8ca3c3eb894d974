#pragma once

// The discrete Fourier transform of any length, in double.

#include <complex>
#include <cstdint>
#include <vector>

#include "base/result.h"

namespace tombolo::ops {

/// A transform of one length, prepared once: radix 2 where the length is a power of two, else
/// Bluestein's algorithm on top of it. No normalisation. Not for several threads at a time.
class Fourier {
 public:
  /// The working memory that a transform of this length needs, in bytes.
  static uint64_t memory(int64_t length);
  /// 1 <= length <= 2^40; the caller has counted memory(length).
  Fourier(int64_t length, bool inverse);
  /// In place, `length` numbers.
  void run(std::complex<double>* x);

 private:
  int64_t length_, padded_;
  bool inverse_;
  std::vector<std::complex<double>> roots_;   ///< exp(-2 pi i k / padded), k < padded / 2
  std::vector<std::complex<double>> chirp_;   ///< exp(-+ pi i k^2 / length); empty for powers of 2
  std::vector<std::complex<double>> filter_;  ///< transform of the conjugate chirp
  std::vector<std::complex<double>> work_;

  void radix2(std::complex<double>* x, bool inverse) const;
};

}  // namespace tombolo::ops
