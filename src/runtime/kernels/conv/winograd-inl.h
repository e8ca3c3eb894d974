// Winograd's transforms along one axis: six inputs make four outputs by three taps or two by five,
// at the points 0, +-5/8, +-3/2 and infinity; eight make two by seven, at 0, +-1/2, +-1, +-2 and
// infinity. These points lose less precision than the integers. Included once for each target
// (Highway's include guards toggle).

#ifndef TOMBOLO_WINOGRAD_POINTS
#define TOMBOLO_WINOGRAD_POINTS
#include "runtime/kernels/conv/conv.h"

namespace tombolo {

inline constexpr int64_t kMatrices = 36;  ///< of a kernel of 3 x 3 or 5 x 5
inline constexpr double kA = 0.625, kB = 1.5;
inline constexpr double kA2 = kA * kA, kB2 = kB * kB;
inline constexpr double kOf8[3] = {0.5, 1, 2};

/// G, of which G k are the weights of the points: row p is [1, p, p^2, ...] / m'(p), m(x) = x (x^2
/// - a^2) (x^2 - b^2) ...; that of infinity [0, ..., 0, 1]. One tap is one weight.
struct WinogradWeights {
  static constexpr int kMostPoints = 8, kMostTaps = 7;
  int taps, points;
  double g[kMostPoints][kMostTaps] = {};

  explicit WinogradWeights(int64_t kernel)
      : taps(static_cast<int>(kernel)), points(static_cast<int>(winograd_points(kernel))) {
    const double six[] = {0, kA, -kA, kB, -kB};
    const double eight[] = {0, kOf8[0], -kOf8[0], kOf8[1], -kOf8[1], kOf8[2], -kOf8[2]};
    const double* const all = points == 8 ? eight : six;
    for (int i = 0; i + 1 < points; ++i) {
      double power = 1;
      for (int j = 0; j + 1 < points; ++j)
        if (j != i) power /= all[i] - all[j];
      for (int j = 0; j < taps; ++j, power *= all[i]) g[i][j] = power;
    }
    g[points - 1][taps - 1] = 1;
  }
};

}  // namespace tombolo
#endif

#if defined(TOMBOLO_WINOGRAD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOMBOLO_WINOGRAD_INL_H
#undef TOMBOLO_WINOGRAD_INL_H
#else
#define TOMBOLO_WINOGRAD_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What is even and what is odd in x makes both points of a pair.

template <class D, class V>
HWY_INLINE void transform(D d, const V (&x)[6], V (&y)[6]) {
  const V a = hn::Set(d, static_cast<float>(kA)), b = hn::Set(d, static_cast<float>(kB));
  const V a2 = hn::Set(d, static_cast<float>(kA2)), b2 = hn::Set(d, static_cast<float>(kB2));
  const V sum = hn::Set(d, static_cast<float>(kA2 + kB2));
  const V product = hn::Set(d, static_cast<float>(kA2 * kB2));
  y[0] = hn::MulAdd(product, x[0], hn::NegMulAdd(sum, x[2], x[4]));
  y[5] = hn::MulAdd(product, x[1], hn::NegMulAdd(sum, x[3], x[5]));
  const V even_a = hn::NegMulAdd(b2, x[2], x[4]), odd_a = hn::NegMulAdd(b2, x[1], x[3]);
  y[1] = hn::MulAdd(a, odd_a, even_a);
  y[2] = hn::NegMulAdd(a, odd_a, even_a);
  const V even_b = hn::NegMulAdd(a2, x[2], x[4]), odd_b = hn::NegMulAdd(a2, x[1], x[3]);
  y[3] = hn::MulAdd(b, odd_b, even_b);
  y[4] = hn::NegMulAdd(b, odd_b, even_b);
}

template <class D, class V>
HWY_INLINE void transform(D d, const V (&x)[8], V (&y)[8]) {
  const auto number = [&](double value) HWY_ATTR { return hn::Set(d, static_cast<float>(value)); };
  constexpr double kSquares[] = {kOf8[0] * kOf8[0], kOf8[1] * kOf8[1], kOf8[2] * kOf8[2]};
  constexpr double kAll = kSquares[0] + kSquares[1] + kSquares[2];
  constexpr double kPairs =
      kSquares[0] * kSquares[1] + kSquares[0] * kSquares[2] + kSquares[1] * kSquares[2];
  constexpr double kProduct = kSquares[0] * kSquares[1] * kSquares[2];
  const V all = number(kAll), pairs = number(kPairs), product = number(kProduct);
  const auto outer = [&](int i) HWY_ATTR {
    return hn::NegMulAdd(product, x[i],
                         hn::MulAdd(pairs, x[i + 2], hn::NegMulAdd(all, x[i + 4], x[i + 6])));
  };
  y[0] = outer(0);
  y[7] = outer(1);
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) {
    const double p = kSquares[(i + 1) % 3], q = kSquares[(i + 2) % 3];
    const V sum = number(p + q), both = number(p * q), point = number(kOf8[i]);
    const V even = hn::MulAdd(both, x[2], hn::NegMulAdd(sum, x[4], x[6]));
    const V odd = hn::MulAdd(both, x[1], hn::NegMulAdd(sum, x[3], x[5]));
    y[1 + 2 * i] = hn::MulAdd(point, odd, even);
    y[2 + 2 * i] = hn::NegMulAdd(point, odd, even);
  }
}

template <class D, class V>
HWY_INLINE void inverse(D d, const V (&x)[6], V (&y)[4]) {
  const V sum_a = hn::Add(x[1], x[2]), sum_b = hn::Add(x[3], x[4]);
  const V dif_a = hn::Sub(x[1], x[2]), dif_b = hn::Sub(x[3], x[4]);
  y[0] = hn::Add(x[0], hn::Add(sum_a, sum_b));
  y[1] = hn::MulAdd(hn::Set(d, static_cast<float>(kA)), dif_a,
                    hn::Mul(hn::Set(d, static_cast<float>(kB)), dif_b));
  y[2] = hn::MulAdd(hn::Set(d, static_cast<float>(kA2)), sum_a,
                    hn::Mul(hn::Set(d, static_cast<float>(kB2)), sum_b));
  y[3] = hn::MulAdd(hn::Set(d, static_cast<float>(kA2 * kA)), dif_a,
                    hn::MulAdd(hn::Set(d, static_cast<float>(kB2 * kB)), dif_b, x[5]));
}

template <class D, class V>
HWY_INLINE void inverse(D d, const V (&x)[6], V (&y)[2]) {
  const V dif_a = hn::Sub(x[1], x[2]), dif_b = hn::Sub(x[3], x[4]);
  y[0] = hn::Add(x[0], hn::Add(hn::Add(x[1], x[2]), hn::Add(x[3], x[4])));
  y[1] = hn::MulAdd(hn::Set(d, static_cast<float>(kA)), dif_a,
                    hn::MulAdd(hn::Set(d, static_cast<float>(kB)), dif_b, x[5]));
}

template <class D, class V>
HWY_INLINE void inverse(D d, const V (&x)[8], V (&y)[2]) {
  y[0] = x[0];
  y[1] = x[7];
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) {
    y[0] = hn::Add(y[0], hn::Add(x[1 + 2 * i], x[2 + 2 * i]));
    y[1] = hn::MulAdd(hn::Set(d, static_cast<float>(kOf8[i])), hn::Sub(x[1 + 2 * i], x[2 + 2 * i]),
                      y[1]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#endif
