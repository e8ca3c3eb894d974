#pragma once

// Smooth functions of one variable as polynomials of many short pieces, where a processor looks
// coefficients up in registers: shorter than an exponential and a fraction.

#include <array>
#include <cmath>
#include <numbers>

namespace tombolo {

/// f(t) for 0 <= t <= most: piece i has its middle at i * width and is the sum of
/// coefficients[k][i] (t - i * width)^k.
struct Pieces {
  static constexpr int kCount = 32, kDegree = 6;
  alignas(64) float coefficients[kDegree + 1][kCount];
  float width, most;
};

/// Each piece goes through f at the zeros of a Chebyshev polynomial, which is nearly the best one;
/// f is asked for beside 0 and `most`, too, by half a piece.
template <typename Function>
Pieces pieces_of(Function&& f, float most) {
  constexpr int kNodes = Pieces::kDegree + 1;
  Pieces p;
  p.most = most;
  p.width = most / (static_cast<float>(Pieces::kCount) - 0.6f);  // the last middle is below `most`
  for (int i = 0; i < Pieces::kCount; ++i) {
    std::array<double, kNodes> at, value, sum{};
    for (int j = 0; j < kNodes; ++j) {
      at[j] = std::cos(std::numbers::pi * (2 * j + 1) / (2 * kNodes));
      value[j] = f(static_cast<double>(p.width) * (i + at[j] / 2));
    }
    // Newton's divided differences, and from them the powers.
    for (int level = 1; level < kNodes; ++level)
      for (int j = kNodes - 1; j >= level; --j)
        value[j] = (value[j] - value[j - 1]) / (at[j] - at[j - level]);
    for (int j = kNodes - 1; j >= 0; --j) {
      for (int k = kNodes - 1; k > 0; --k) sum[k] = sum[k - 1] - at[j] * sum[k];
      sum[0] = value[j] - at[j] * sum[0];
    }
    sum[0] = f(static_cast<double>(p.width) * i);  // one of the zeros, and 0 where f is
    for (int k = 0; k < kNodes; ++k)
      p.coefficients[k][i] =
          static_cast<float>(sum[k] * std::pow(2 / static_cast<double>(p.width), k));
  }
  return p;
}

/// (1 - erf(t / sqrt 2)) / 2
inline const Pieces& normal_tail_pieces() {
  static const Pieces pieces =
      pieces_of([](double t) { return std::erfc(t * std::sqrt(0.5)) / 2; }, 6.0f);
  return pieces;
}

inline const Pieces& erf_pieces() {
  static const Pieces pieces = pieces_of([](double t) { return std::erf(t); }, 4.0f);
  return pieces;
}

}  // namespace tombolo
