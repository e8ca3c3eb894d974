// x to the power of y: e^(y log |x|) in double, which is exact enough for floats, with the sign of
// a negative base put right; vectors with a zero, an infinity or NaN go through the C library.
// Small multiples of a half that are the same for all are products.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/elementwise/binary_pow.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/elementwise/binary.h"
#include "runtime/kernels/elementwise/unary.h"
#include "runtime/kernels/math-inl.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void pow_row(const void* a, bool a_repeats, const void* b, bool b_repeats, void* y, int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, hn::ScalableTag<double>> h;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* p = static_cast<const float*>(a);
  const float* q = static_cast<const float*>(b);
  float* out = static_cast<float*>(y);
  const auto least = hn::Set(h, 1.17549435e-38f), most = hn::Set(h, 3.4028235e38f);
  const auto half = hn::Set(h, 0.5f), nan = hn::Set(h, std::numeric_limits<float>::quiet_NaN());
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t left = n - i;
    auto xv = a_repeats ? hn::Set(h, *p) : load_n(h, p + i, left);
    const auto ev = b_repeats ? hn::Set(h, *q) : load_n(h, q + i, left);
    if (left < lanes) xv = hn::IfThenElse(hn::FirstN(h, static_cast<size_t>(left)), xv, most);
    const auto size = hn::Abs(xv);
    const auto good =
        hn::And(hn::And(hn::Ge(size, least), hn::Le(size, most)), hn::Le(hn::Abs(ev), most));
    if (HWY_LIKELY(hn::AllTrue(h, good))) {
      const auto power = hn::Mul(hn::PromoteTo(d, ev), hn::Log(d, hn::PromoteTo(d, size)));
      const auto limit = hn::Set(d, 200.0);
      auto result = hn::DemoteTo(h, hn::Exp(d, max_of(hn::Neg(limit), min_of(limit, power))));
      // A negative base: whole powers alone have a result, odd ones a negative one.
      const auto negative = hn::Lt(xv, hn::Zero(h));
      if (!hn::AllFalse(h, negative)) {
        const auto whole = hn::Eq(hn::Round(ev), ev);
        const auto halved = hn::Mul(ev, half);
        const auto even = hn::Eq(hn::Round(halved), halved);
        result = hn::IfThenElse(hn::And(negative, hn::Not(even)), hn::Neg(result), result);
        result = hn::IfThenElse(hn::And(negative, hn::Not(whole)), nan, result);
      }
      store_n(result, h, out + i, left);
    } else {
      for (int64_t j = 0; j < std::min(lanes, left); ++j)
        out[i + j] = std::pow(p[a_repeats ? 0 : i + j], q[b_repeats ? 0 : i + j]);
    }
  }
}

/// x to the power of twice / 2: products in double, a square root where twice is odd.
void half_power_row(const float* p, float* out, int64_t n, int twice) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, hn::ScalableTag<double>> h;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto least = hn::Set(h, -std::numeric_limits<float>::infinity());
  const auto one = hn::Set(d, 1.0);
  const int whole = (twice < 0 ? -twice : twice) / 2;
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t left = n - i;
    const auto x = load_n(h, p + i, left);
    if (twice % 2 != 0 && HWY_UNLIKELY(!hn::AllFalse(h, hn::Eq(x, least)))) {
      for (int64_t j = 0; j < std::min(lanes, left); ++j)
        out[i + j] = std::pow(p[i + j], static_cast<float>(twice) * 0.5f);
      continue;
    }
    // Of a negative zero nothing but the zero counts there.
    const auto size = twice % 2 != 0 ? hn::Add(x, hn::Zero(h)) : x;
    auto base = hn::PromoteTo(d, size), result = one;
    if (twice % 2 != 0) result = hn::PromoteTo(d, hn::Sqrt(size));
    for (int bits = whole; bits != 0; bits >>= 1) {
      if ((bits & 1) != 0) result = hn::Mul(result, base);
      base = hn::Mul(base, base);
    }
    if (twice < 0) result = hn::Div(one, result);
    store_n(hn::DemoteTo(h, result), h, out + i, left);
  }
}

void power_row(const void* a, bool a_repeats, const void* b, bool b_repeats, void* y, int64_t n) {
  // Squares are exact by one multiplication.
  if (b_repeats && !a_repeats && *static_cast<const float*>(b) == 2) {
    const hn::ScalableTag<float> f;
    const auto lanes = static_cast<int64_t>(hn::Lanes(f));
    const float* p = static_cast<const float*>(a);
    float* out = static_cast<float*>(y);
    for (int64_t i = 0; i < n; i += lanes) {
      const auto x = load_n(f, p + i, n - i);
      store_n(hn::Mul(x, x), f, out + i, n - i);
    }
    return;
  }
  if (b_repeats && !a_repeats) {
    const float twice = 2 * *static_cast<const float*>(b);
    if (std::fabs(twice) <= 15 && twice == std::round(twice))
      return half_power_row(static_cast<const float*>(a), static_cast<float*>(y), n,
                            static_cast<int>(twice));
  }
  pow_row(a, a_repeats, b, b_repeats, y, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

namespace {

/// Squares and cubes by products, all else by the library, as the reference.
void pow_doubles(const void* a, bool a_repeats, const void* b, bool b_repeats, void* y, int64_t n) {
  const auto *p = static_cast<const double*>(a), *q = static_cast<const double*>(b);
  auto* out = static_cast<double*>(y);
  if (b_repeats && !a_repeats && *q == 2) {
    for (int64_t i = 0; i < n; ++i) out[i] = p[i] * p[i];
  } else if (b_repeats && !a_repeats && *q == 3) {
    for (int64_t i = 0; i < n; ++i) out[i] = p[i] * p[i] * p[i];
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = std::pow(p[a_repeats ? 0 : i], q[b_repeats ? 0 : i]);
  }
}

}  // namespace

BinaryFn* pow_fn(DType dtype) {
  if (dtype == DType::kFloat64) return pow_doubles;
  return dtype == DType::kFloat32 ? TOMBOLO_TARGET(BinaryFn, power_row).get() : nullptr;
}

}  // namespace tombolo
#endif
