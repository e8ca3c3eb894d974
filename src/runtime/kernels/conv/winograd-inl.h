// Transforms of F(4x4, 3x3) and F(2x2, 5x5) by the points 0, +-5/8, +-3/2 and infinity, which lose
// less precision than the integers. Included once for each target (Highway's include guards
// toggle).

#ifndef TOMBOLO_WINOGRAD_POINTS
#define TOMBOLO_WINOGRAD_POINTS
namespace tombolo {

inline constexpr int64_t kMatrices = 36;
inline constexpr double kA = 0.625, kB = 1.5;
inline constexpr double kA2 = kA * kA, kB2 = kB * kB;

/// G of k G', for kernels of kTaps x kTaps.
template <int kTaps>
struct WinogradWeights {
  // Row p of G is [1, p, p^2, ...] / m'(p), m(x) = x (x^2 - a^2) (x^2 - b^2); that of infinity [0,
  // ..., 0, 1].
  double g[6][kTaps] = {{1 / (kA2 * kB2)}};

  WinogradWeights() {
    const double points[] = {kA, -kA, kB, -kB};
    for (int i = 0; i < 4; ++i) {
      double power = 1 / (i < 2 ? 2 * kA2 * (kA2 - kB2) : 2 * kB2 * (kB2 - kA2));
      for (int j = 0; j < kTaps; ++j, power *= points[i]) g[i + 1][j] = power;
    }
    g[5][kTaps - 1] = 1;
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

template <class D, class V>
HWY_INLINE void transform6(D d, const V& x0, const V& x1, const V& x2, const V& x3, const V& x4,
                           const V& x5, V& y0, V& y1, V& y2, V& y3, V& y4, V& y5) {
  const V a = hn::Set(d, static_cast<float>(kA)), b = hn::Set(d, static_cast<float>(kB));
  const V a2 = hn::Set(d, static_cast<float>(kA2)), b2 = hn::Set(d, static_cast<float>(kB2));
  const V sum = hn::Set(d, static_cast<float>(kA2 + kB2));
  const V product = hn::Set(d, static_cast<float>(kA2 * kB2));
  y0 = hn::MulAdd(product, x0, hn::NegMulAdd(sum, x2, x4));
  y5 = hn::MulAdd(product, x1, hn::NegMulAdd(sum, x3, x5));
  const V even_a = hn::NegMulAdd(b2, x2, x4), odd_a = hn::NegMulAdd(b2, x1, x3);
  y1 = hn::MulAdd(a, odd_a, even_a);
  y2 = hn::NegMulAdd(a, odd_a, even_a);
  const V even_b = hn::NegMulAdd(a2, x2, x4), odd_b = hn::NegMulAdd(a2, x1, x3);
  y3 = hn::MulAdd(b, odd_b, even_b);
  y4 = hn::NegMulAdd(b, odd_b, even_b);
}

/// Two outputs.
template <class D, class V>
HWY_INLINE void inverse6(D d, const V& x0, const V& x1, const V& x2, const V& x3, const V& x4,
                         const V& x5, V (&y)[2]) {
  const V dif_a = hn::Sub(x1, x2), dif_b = hn::Sub(x3, x4);
  y[0] = hn::Add(x0, hn::Add(hn::Add(x1, x2), hn::Add(x3, x4)));
  y[1] = hn::MulAdd(hn::Set(d, static_cast<float>(kA)), dif_a,
                    hn::MulAdd(hn::Set(d, static_cast<float>(kB)), dif_b, x5));
}

template <class D, class V>
HWY_INLINE void inverse6(D d, const V& x0, const V& x1, const V& x2, const V& x3, const V& x4,
                         const V& x5, V (&y)[4]) {
  const V sum_a = hn::Add(x1, x2), sum_b = hn::Add(x3, x4);
  const V dif_a = hn::Sub(x1, x2), dif_b = hn::Sub(x3, x4);
  y[0] = hn::Add(x0, hn::Add(sum_a, sum_b));
  y[1] = hn::MulAdd(hn::Set(d, static_cast<float>(kA)), dif_a,
                    hn::Mul(hn::Set(d, static_cast<float>(kB)), dif_b));
  y[2] = hn::MulAdd(hn::Set(d, static_cast<float>(kA2)), sum_a,
                    hn::Mul(hn::Set(d, static_cast<float>(kB2)), sum_b));
  y[3] = hn::MulAdd(hn::Set(d, static_cast<float>(kA2 * kA)), dif_a,
                    hn::MulAdd(hn::Set(d, static_cast<float>(kB2 * kB)), dif_b, x5));
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#endif
