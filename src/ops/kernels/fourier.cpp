#include "ops/kernels/fourier.h"

#include <bit>
#include <cmath>
#include <utility>

namespace tombolo::ops {

namespace {

constexpr double kPi = 3.14159265358979323846264338327950288;

int64_t padded_length(int64_t length) {
  const auto n = static_cast<uint64_t>(length);
  return static_cast<int64_t>(std::has_single_bit(n) ? n : std::bit_ceil(2 * n - 1));
}

/// a * b without the checks for infinities that std::complex makes.
std::complex<double> times(std::complex<double> a, std::complex<double> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace

uint64_t Fourier::memory(int64_t length) {
  return static_cast<uint64_t>(padded_length(length)) * 4 * sizeof(std::complex<double>);
}

Fourier::Fourier(int64_t length, bool inverse)
    : length_(length), padded_(padded_length(length)), inverse_(inverse) {
  roots_.resize(static_cast<size_t>(padded_ / 2));
  for (size_t k = 0; k < roots_.size(); ++k)
    roots_[k] = std::polar(1.0, -2 * kPi * static_cast<double>(k) / static_cast<double>(padded_));
  if (padded_ == length_) return;
  const auto n = static_cast<size_t>(length_);
  chirp_.resize(n);
  filter_.assign(static_cast<size_t>(padded_), 0);
  work_.resize(static_cast<size_t>(padded_));
  uint64_t square = 0;  // k^2 modulo 2 n: the angle keeps its digits
  for (size_t k = 0; k < n; ++k) {
    const double angle = kPi * static_cast<double>(square) / static_cast<double>(n);
    chirp_[k] = std::polar(1.0, inverse ? angle : -angle);
    filter_[k] = std::conj(chirp_[k]);
    if (k != 0) filter_[static_cast<size_t>(padded_) - k] = filter_[k];
    square = (square + 2 * k + 1) % (2 * n);
  }
  radix2(filter_.data(), false);
}

void Fourier::radix2(std::complex<double>* x, bool inverse) const {
  const int64_t n = padded_;
  for (int64_t i = 1, j = 0; i < n; ++i) {
    int64_t bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (int64_t half = 1; half < n; half *= 2) {
    const int64_t stride = n / (2 * half);
    for (int64_t start = 0; start < n; start += 2 * half)
      for (int64_t k = 0; k < half; ++k) {
        const std::complex<double> root = roots_[static_cast<size_t>(k * stride)];
        const std::complex<double> odd =
            times(x[start + k + half], inverse ? std::conj(root) : root);
        x[start + k + half] = x[start + k] - odd;
        x[start + k] += odd;
      }
  }
}

void Fourier::run(std::complex<double>* x) {
  if (chirp_.empty()) return radix2(x, inverse_);
  // k n = (k^2 + n^2 - (k - n)^2) / 2 turns the transform into a convolution with a chirp.
  const auto n = static_cast<size_t>(length_);
  for (size_t k = 0; k < n; ++k) work_[k] = times(x[k], chirp_[k]);
  for (size_t k = n; k < work_.size(); ++k) work_[k] = 0;
  radix2(work_.data(), false);
  for (size_t k = 0; k < work_.size(); ++k) work_[k] = times(work_[k], filter_[k]);
  radix2(work_.data(), true);
  const double scale = 1 / static_cast<double>(padded_);
  for (size_t k = 0; k < n; ++k) x[k] = times(work_[k], chirp_[k]) * scale;
}

}  // namespace tombolo::ops
