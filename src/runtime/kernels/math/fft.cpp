#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/math/fft.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>
#include <utility>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/math/fft.h"
#include "runtime/kernels/math/square-inl.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class V>
struct Number {
  V re, im;
  // Written out: what a compiler writes itself is not compiled for the target.
  HWY_INLINE Number() {}
  HWY_INLINE Number(V real, V imaginary) : re(real), im(imaginary) {}
};
template <class V>
HWY_INLINE Number<V> plus(Number<V> a, Number<V> b) {
  return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
}
template <class V>
HWY_INLINE Number<V> minus(Number<V> a, Number<V> b) {
  return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)};
}
template <class V>
HWY_INLINE Number<V> times(Number<V> a, Number<V> b) {
  return {hn::NegMulAdd(a.im, b.im, hn::Mul(a.re, b.re)),
          hn::MulAdd(a.re, b.im, hn::Mul(a.im, b.re))};
}
/// a - i b and a + i b.
template <class V>
HWY_INLINE Number<V> minus_i(Number<V> a, Number<V> b) {
  return {hn::Add(a.re, b.im), hn::Sub(a.im, b.re)};
}
template <class V>
HWY_INLINE Number<V> plus_i(Number<V> a, Number<V> b) {
  return {hn::Sub(a.re, b.im), hn::Add(a.im, b.re)};
}

/// The transform of R numbers, in place.
template <int R, class D, class V>
HWY_INLINE void butterfly(D d, Number<V>* a) {
  if constexpr (R == 2) {
    const Number<V> x = a[0];
    a[0] = plus(x, a[1]);
    a[1] = minus(x, a[1]);
  } else if constexpr (R == 3) {
    const V half = hn::Set(d, -0.5), sine = hn::Set(d, 0.86602540378443864676);
    const Number<V> sum = plus(a[1], a[2]), difference = minus(a[1], a[2]);
    const Number<V> middle = {hn::MulAdd(half, sum.re, a[0].re), hn::MulAdd(half, sum.im, a[0].im)};
    const Number<V> side = {hn::Mul(sine, difference.re), hn::Mul(sine, difference.im)};
    a[0] = plus(a[0], sum);
    a[1] = minus_i(middle, side);
    a[2] = plus_i(middle, side);
  } else if constexpr (R == 4) {
    const Number<V> s0 = plus(a[0], a[2]), d0 = minus(a[0], a[2]);
    const Number<V> s1 = plus(a[1], a[3]), d1 = minus(a[1], a[3]);
    a[0] = plus(s0, s1);
    a[1] = minus_i(d0, d1);
    a[2] = minus(s0, s1);
    a[3] = plus_i(d0, d1);
  } else if constexpr (R == 8) {
    Number<V> even[4] = {a[0], a[2], a[4], a[6]}, odd[4] = {a[1], a[3], a[5], a[7]};
    butterfly<4>(d, even);
    butterfly<4>(d, odd);
    const V sine = hn::Set(d, 0.70710678118654752440);
    const Number<V> turned1 = {hn::Mul(sine, hn::Add(odd[1].re, odd[1].im)),
                               hn::Mul(sine, hn::Sub(odd[1].im, odd[1].re))};
    const Number<V> turned3 = {hn::Mul(sine, hn::Sub(odd[3].im, odd[3].re)),
                               hn::Mul(sine, hn::Add(odd[3].im, odd[3].re))};
    a[0] = plus(even[0], odd[0]);
    a[4] = minus(even[0], odd[0]);
    a[1] = plus(even[1], turned1);
    a[5] = minus(even[1], turned1);
    a[2] = minus_i(even[2], odd[2]);
    a[6] = plus_i(even[2], odd[2]);
    a[3] = {hn::Add(even[3].re, turned3.re), hn::Sub(even[3].im, turned3.im)};
    a[7] = {hn::Sub(even[3].re, turned3.re), hn::Add(even[3].im, turned3.im)};
  } else {
    static_assert(R == 5);
    const V c1 = hn::Set(d, 0.30901699437494742410), c2 = hn::Set(d, -0.80901699437494742410);
    const V s1 = hn::Set(d, 0.95105651629515357212), s2 = hn::Set(d, 0.58778525229247312917);
    const Number<V> p1 = plus(a[1], a[4]), m1 = minus(a[1], a[4]);
    const Number<V> p2 = plus(a[2], a[3]), m2 = minus(a[2], a[3]);
    const Number<V> x1 = {hn::MulAdd(c2, p2.re, hn::MulAdd(c1, p1.re, a[0].re)),
                          hn::MulAdd(c2, p2.im, hn::MulAdd(c1, p1.im, a[0].im))};
    const Number<V> x2 = {hn::MulAdd(c1, p2.re, hn::MulAdd(c2, p1.re, a[0].re)),
                          hn::MulAdd(c1, p2.im, hn::MulAdd(c2, p1.im, a[0].im))};
    const Number<V> y1 = {hn::MulAdd(s2, m2.re, hn::Mul(s1, m1.re)),
                          hn::MulAdd(s2, m2.im, hn::Mul(s1, m1.im))};
    const Number<V> y2 = {hn::NegMulAdd(s1, m2.re, hn::Mul(s2, m1.re)),
                          hn::NegMulAdd(s1, m2.im, hn::Mul(s2, m1.im))};
    a[0] = plus(a[0], plus(p1, p2));
    a[1] = minus_i(x1, y1);
    a[2] = minus_i(x2, y2);
    a[3] = plus_i(x2, y2);
    a[4] = plus_i(x1, y1);
  }
}

/// One step over `run` neighbours (elements that go together times signals), from part `first` on.
template <int R, class D>
void step(D d, const FftStage& stage, int64_t first, int64_t run, const double* HWY_RESTRICT xr,
          const double* HWY_RESTRICT xi, double* HWY_RESTRICT yr, double* HWY_RESTRICT yi) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t far = stage.parts * run;
  for (int64_t p = first; p < stage.parts; ++p) {
    Number<V> w[R];
    for (int k = 1; k < R; ++k)
      w[k] = {hn::Set(d, stage.roots_re[static_cast<size_t>(p * (R - 1) + k - 1)]),
              hn::Set(d, stage.roots_im[static_cast<size_t>(p * (R - 1) + k - 1)])};
    const int64_t from = p * run, to = p * R * run;
    const auto some = [&](int64_t q, int64_t left, bool turn) HWY_ATTR {
      Number<V> a[R];
#pragma GCC unroll 8
      for (int k = 0; k < R; ++k)
        a[k] = {load_n(d, xr + from + k * far + q, left), load_n(d, xi + from + k * far + q, left)};
      butterfly<R>(d, a);
      if (turn)
#pragma GCC unroll 8
        for (int k = 1; k < R; ++k) a[k] = times(a[k], w[k]);
#pragma GCC unroll 8
      for (int k = 0; k < R; ++k) {
        store_n(a[k].re, d, yr + to + k * run + q, left);
        store_n(a[k].im, d, yi + to + k * run + q, left);
      }
    };
    int64_t q = 0;
    if (p == 0)  // whose roots are 1
      for (; q + lanes <= run; q += lanes) some(q, lanes, false);
    else
      for (; q + lanes <= run; q += lanes) some(q, lanes, true);
    if (q < run) some(q, run - q, true);
  }
}

/// The first step of a signal alone: vectors run across parts.
template <int R>
void first_step(const FftStage& stage, const double* HWY_RESTRICT xr, const double* HWY_RESTRICT xi,
                double* HWY_RESTRICT yr, double* HWY_RESTRICT yi) {
  const SquareTag d;
  const int64_t parts = stage.parts;
  const auto put = [&](const SquareRow* v, double* to) HWY_ATTR {
    if constexpr (R == 2) {
      hn::StoreInterleaved2(v[0], v[1], d, to);
    } else if constexpr (R == 3) {
      hn::StoreInterleaved3(v[0], v[1], v[2], d, to);
    } else if constexpr (R == 4) {
      hn::StoreInterleaved4(v[0], v[1], v[2], v[3], d, to);
    } else {
      static_assert(R % kSquare == 0);
#pragma GCC unroll 4
      for (int k = 0; k < R; k += kSquare) {
        SquareRow square[kSquare];
#pragma GCC unroll 8
        for (int j = 0; j < kSquare; ++j) square[j] = v[k + j];
        transpose_square(square);
#pragma GCC unroll 8
        for (int j = 0; j < kSquare; ++j) hn::StoreU(square[j], d, to + j * R + k);
      }
    }
  };
  int64_t p = 0;
  for (; p + kSquare <= parts; p += kSquare) {
    Number<SquareRow> a[R];
#pragma GCC unroll 8
    for (int k = 0; k < R; ++k)
      a[k] = {hn::LoadU(d, xr + k * parts + p), hn::LoadU(d, xi + k * parts + p)};
    butterfly<R>(d, a);
    SquareRow re[R], im[R];
    re[0] = a[0].re;
    im[0] = a[0].im;
#pragma GCC unroll 8
    for (int k = 1; k < R; ++k) {
      const int64_t root = (k - 1) * parts + p;
      a[k] = times(a[k], Number<SquareRow>{hn::LoadU(d, stage.along_re.data() + root),
                                           hn::LoadU(d, stage.along_im.data() + root)});
      re[k] = a[k].re;
      im[k] = a[k].im;
    }
    put(re, yr + p * R);
    put(im, yi + p * R);
  }
  step<R>(hn::CappedTag<double, 1>(), stage, p, 1, xr, xi, yr, yi);
}

/// A step of any radix, term by term.
template <class D>
void any_step(D d, const FftStage& stage, int64_t run, const double* HWY_RESTRICT xr,
              const double* HWY_RESTRICT xi, double* HWY_RESTRICT yr, double* HWY_RESTRICT yi) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t far = stage.parts * run, r = stage.radix;
  for (int64_t p = 0; p < stage.parts; ++p)
    for (int64_t q = 0; q < run; q += lanes) {
      const int64_t left = run - q, from = p * run + q, to = p * r * run + q;
      for (int64_t k = 0; k < r; ++k) {
        Number<V> sum = {load_n(d, xr + from, left), load_n(d, xi + from, left)};
        for (int64_t j = 1; j < r; ++j) {
          const auto turn = static_cast<size_t>(j * k % r);
          sum = plus(sum, times(Number<V>{load_n(d, xr + from + j * far, left),
                                          load_n(d, xi + from + j * far, left)},
                                Number<V>{hn::Set(d, stage.turn_re[turn]),
                                          hn::Set(d, stage.turn_im[turn])}));
        }
        if (k != 0) {
          const auto root = static_cast<size_t>(p * (r - 1) + k - 1);
          sum = times(
              sum, Number<V>{hn::Set(d, stage.roots_re[root]), hn::Set(d, stage.roots_im[root])});
        }
        store_n(sum.re, d, yr + to + k * run, left);
        store_n(sum.im, d, yi + to + k * run, left);
      }
    }
}

template <int R>
void step_of(const FftStage& stage, int64_t run, const double* xr, const double* xi, double* yr,
             double* yi) {
  if (run > 1) return step<R>(hn::ScalableTag<double>(), stage, 0, run, xr, xi, yr, yi);
  if constexpr (R == 5)
    step<R>(hn::CappedTag<double, 1>(), stage, 0, run, xr, xi, yr, yi);
  else
    first_step<R>(stage, xr, xi, yr, yi);
}

void fft_step(const FftStage& stage, int64_t run, const double* xr, const double* xi, double* yr,
              double* yi) {
  switch (stage.radix) {
    case 2:
      return step_of<2>(stage, run, xr, xi, yr, yi);
    case 3:
      return step_of<3>(stage, run, xr, xi, yr, yi);
    case 4:
      return step_of<4>(stage, run, xr, xi, yr, yi);
    case 5:
      return step_of<5>(stage, run, xr, xi, yr, yi);
    case 8:
      return step_of<8>(stage, run, xr, xi, yr, yi);
    default:
      if (run == 1) return any_step(hn::CappedTag<double, 1>(), stage, run, xr, xi, yr, yi);
      return any_step(hn::ScalableTag<double>(), stage, run, xr, xi, yr, yi);
  }
}

/// y[i][j] = x[i][j] * (cr[i] + i ci[i]) * scale, complex.
void fft_scale(int64_t n, int64_t signals, const double* xr, const double* xi, const double* cr,
               const double* ci, double scale, double* yr, double* yi) {
  const hn::ScalableTag<double> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (signals == 1) {
    const V by = hn::Set(d, scale);
    for (int64_t i = 0; i < n; i += lanes) {
      const int64_t left = n - i;
      const Number<V> c = {hn::Mul(load_n(d, cr + i, left), by),
                           hn::Mul(load_n(d, ci + i, left), by)};
      const Number<V> y = times(Number<V>{load_n(d, xr + i, left), load_n(d, xi + i, left)}, c);
      store_n(y.re, d, yr + i, left);
      store_n(y.im, d, yi + i, left);
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const Number<V> c = {hn::Set(d, cr[i] * scale), hn::Set(d, ci[i] * scale)};
    for (int64_t j = 0; j < signals; j += lanes) {
      const int64_t at = i * signals + j, left = signals - j;
      const Number<V> y = times(Number<V>{load_n(d, xr + at, left), load_n(d, xi + at, left)}, c);
      store_n(y.re, d, yr + at, left);
      store_n(y.im, d, yi + at, left);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

namespace {

constexpr double kTau = 6.28318530717958647692528676655900577;

/// exp(-2 pi i k / n), with the angle brought into the first eighth, where it keeps its digits.
std::pair<double, double> root(int64_t k, int64_t n) {
  k %= n;
  int64_t turn = k * 8 / n;  // which eighth
  double re = 0, im = 0;
  const auto of = [&](int64_t up) {
    const double angle = kTau * static_cast<double>(up) / static_cast<double>(8 * n);
    re = std::cos(angle);
    im = std::sin(angle);
  };
  const int64_t eighths = 8 * k - turn * n;  // in units of tau / 8 n
  if (turn % 2 == 0) {
    of(eighths);
  } else {
    of(n - eighths);
    std::swap(re, im);
  }
  switch (turn / 2) {
    case 1:
      std::swap(re, im);
      re = -re;
      break;
    case 2:
      re = -re;
      im = -im;
      break;
    case 3:
      std::swap(re, im);
      im = -im;
      break;
    default:
      break;
  }
  return {re, -im};
}

using StepFn = void(const FftStage&, int64_t, const double*, const double*, double*, double*);
using ScaleFn = void(int64_t, int64_t, const double*, const double*, const double*, const double*,
                     double, double*, double*);

void scale(int64_t n, int64_t signals, const double* xr, const double* xi, const double* cr,
           const double* ci, double factor, double* yr, double* yi) {
  TOMBOLO_TARGET(ScaleFn, fft_scale)(n, signals, xr, xi, cr, ci, factor, yr, yi);
}

}  // namespace

FftPlan::FftPlan(int64_t length) : length_(length), padded_(length) {
  int64_t rest = length;
  for (const int64_t prime : {2, 3, 5, 7, 11, 13})
    while (rest % prime == 0) rest /= prime;
  if (rest == 1) {
    stages_of(length);
    return;
  }
  padded_ = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * length - 1)));
  stages_of(padded_);
  const auto n = static_cast<size_t>(length), padded = static_cast<size_t>(padded_);
  chirp_re_.resize(n);
  chirp_im_.resize(n);
  filter_re_.assign(padded, 0);
  filter_im_.assign(padded, 0);
  int64_t square = 0;  // k^2 modulo 2 n
  for (size_t k = 0; k < n; ++k) {
    std::tie(chirp_re_[k], chirp_im_[k]) = root(square, 2 * length);
    filter_re_[k] = chirp_re_[k];
    filter_im_[k] = -chirp_im_[k];
    if (k != 0) {
      filter_re_[padded - k] = filter_re_[k];
      filter_im_[padded - k] = filter_im_[k];
    }
    square = (square + 2 * static_cast<int64_t>(k) + 1) % (2 * length);
  }
  std::vector<double> work(2 * padded);
  double *re = filter_re_.data(), *im = filter_im_.data();
  walk(re, im, work.data(), 1);
  if (re == filter_re_.data()) return;
  filter_re_.assign(re, re + padded);
  filter_im_.assign(im, im + padded);
}

void FftPlan::stages_of(int64_t length) {
  int64_t rest = length, stride = 1;
  const auto add = [&](int radix) {
    FftStage stage;
    stage.radix = radix;
    stage.parts = rest / radix;
    stage.stride = stride;
    for (int64_t p = 0; p < stage.parts; ++p)
      for (int k = 1; k < radix; ++k) {
        const auto [re, im] = root(p * k, rest);
        stage.roots_re.push_back(re);
        stage.roots_im.push_back(im);
      }
    for (int k = 1; stride == 1 && k < radix; ++k)
      for (int64_t p = 0; p < stage.parts; ++p) {
        const auto at = static_cast<size_t>(p * (radix - 1) + k - 1);
        stage.along_re.push_back(stage.roots_re[at]);
        stage.along_im.push_back(stage.roots_im[at]);
      }
    if (radix > 5)
      for (int k = 0; k < radix; ++k) {
        const auto [re, im] = root(k, radix);
        stage.turn_re.push_back(re);
        stage.turn_im.push_back(im);
      }
    stages_.push_back(std::move(stage));
    rest /= radix;
    stride *= radix;
  };
  // As few steps as there may be: by 8, unless that left one by 2.
  while (rest % 8 == 0 && rest % 32 != 16) add(8);
  for (const int radix : {4, 2, 3, 5, 7, 11, 13})
    while (rest % radix == 0) add(radix);
}

size_t FftPlan::work_doubles(int64_t signals) const {
  return static_cast<size_t>((padded_ == length_ ? 2 : 4) * padded_ * signals);
}

void FftPlan::walk(double*& re, double*& im, double* work, int64_t signals) const {
  double *to_re = work, *to_im = work + padded_ * signals;
  for (const FftStage& stage : stages_) {
    TOMBOLO_TARGET(StepFn, fft_step)(stage, stage.stride * signals, re, im, to_re, to_im);
    std::swap(re, to_re);
    std::swap(im, to_im);
  }
}

void FftPlan::run(double*& re, double*& im, double* work, int64_t signals) const {
  if (padded_ == length_) return walk(re, im, work, signals);
  // k n = (k^2 + n^2 - (k - n)^2) / 2 turns the transform into a convolution with a chirp.
  const int64_t size = padded_ * signals, given = length_ * signals;
  double *ar = work + 2 * size, *ai = work + 3 * size;
  scale(length_, signals, re, im, chirp_re_.data(), chirp_im_.data(), 1, ar, ai);
  std::fill_n(ar + given, size - given, 0.0);
  std::fill_n(ai + given, size - given, 0.0);
  double* const room = work + 2 * size;
  walk(ar, ai, work, signals);
  scale(padded_, signals, ar, ai, filter_re_.data(), filter_im_.data(), 1, ar, ai);
  walk(ai, ar, ar == room ? work : room, signals);
  scale(length_, signals, ar, ai, chirp_re_.data(), chirp_im_.data(),
        1 / static_cast<double>(padded_), re, im);
}

}  // namespace tombolo
#endif
