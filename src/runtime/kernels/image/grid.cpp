#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/image/grid.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/image/grid.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;
using I = hn::Rebind<int32_t, D>;
using ops::GridMode;
using ops::GridPadding;

constexpr int64_t kBlock = 64;

/// Offsets along the axis and weights of tap t of point i at [t * kBlock + i]; whole vectors
/// are read and written.
void some_taps(const GridAxis& a, const float* at, int64_t n, int32_t* places, double* weights) {
  const D d;
  const I di;
  const hn::Rebind<float, D> f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto last = static_cast<double>(a.length - 1);
  const V zero = hn::Zero(d), one = hn::Set(d, 1), two = hn::Set(d, 2), end = hn::Set(d, last);
  const V low = hn::Set(d, a.aligned ? 0 : -0.5), high = hn::Set(d, a.aligned ? last : last + 0.5);
  const V length = hn::Set(d, static_cast<double>(a.length)), outside = hn::Set(d, -8),
          beyond = hn::Set(d, last + 8);
  // ops::reflect_into.
  const V range = hn::Sub(high, low), half = hn::Set(d, 0.5);
  const auto reflected = [&](V v) HWY_ATTR {
    const V far = hn::Abs(hn::Sub(v, low)), turns = hn::Floor(hn::Div(far, range));
    const V away = hn::Sub(far, hn::Mul(turns, range));
    const auto even = hn::Eq(turns, hn::Mul(two, hn::Floor(hn::Mul(turns, half))));
    return hn::IfThenElse(hn::Gt(range, zero),
                          hn::IfThenElse(even, hn::Add(low, away), hn::Sub(high, away)), low);
  };
  const bool reflects = a.padding == GridPadding::kReflection;
  for (int64_t i = 0; i < n; i += lanes) {
    V x = hn::Add(hn::PromoteTo(d, hn::LoadU(f, at + i)), one);
    x = a.aligned ? hn::Mul(hn::Div(x, two), end) : hn::Div(hn::Sub(hn::Mul(x, length), one), two);
    if (a.mode == GridMode::kNearest) x = hn::Round(x);
    if (a.padding == GridPadding::kBorder) {
      const auto inside = hn::And(hn::Ge(x, low), hn::Le(x, high));
      const V number = hn::IfThenElseZero(hn::Eq(x, x), x);
      x = hn::IfThenElse(inside, x, min_of(max_of(number, zero), end));
    }
    if (reflects) x = hn::IfThenElse(hn::And(hn::Ge(x, low), hn::Le(x, high)), x, reflected(x));
    x = hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 1e15)), x, outside);
    const V floor = hn::Floor(x), t = hn::Sub(x, floor);
    // What lies outside stays outside.
    const V base = min_of(max_of(floor, outside), beyond);
    const auto add = [&](int64_t tap, double shift, V weight) HWY_ATTR {
      const V index = hn::Add(base, hn::Set(d, shift));
      V held = min_of(max_of(index, zero), end);
      if (reflects)
        held = hn::IfThenElse(hn::Eq(index, held), index,
                              min_of(max_of(hn::Trunc(reflected(index)), zero), end));
      if (a.padding == GridPadding::kZeros)
        weight = hn::IfThenElseZero(hn::Eq(index, held), weight);
      const auto place =
          hn::Mul(hn::DemoteTo(di, held), hn::Set(di, static_cast<int32_t>(a.stride)));
      hn::StoreU(place, di, places + tap * kBlock + i);
      hn::StoreU(weight, d, weights + tap * kBlock + i);
    };
    if (a.mode == GridMode::kNearest) {
      add(0, 0, one);
    } else if (a.mode == GridMode::kLinear) {
      add(0, 0, hn::Sub(one, t));
      add(1, 1, t);
    } else {
      constexpr double kA = -0.75;
      const auto set = [&](double v) HWY_ATTR { return hn::Set(d, v); };
      const auto near = [&](V v) HWY_ATTR {
        const V part = hn::Sub(hn::Mul(set(kA + 2), v), set(kA + 3));
        return hn::Add(hn::Mul(hn::Mul(part, v), v), one);
      };
      const auto far = [&](V v) HWY_ATTR {
        const V part = hn::Add(hn::Mul(hn::Sub(hn::Mul(set(kA), v), set(5 * kA)), v), set(8 * kA));
        return hn::Sub(hn::Mul(part, v), set(4 * kA));
      };
      add(0, -1, far(hn::Add(t, one)));
      add(1, 0, near(t));
      add(2, 1, near(hn::Sub(one, t)));
      add(3, 2, far(hn::Sub(two, t)));
    }
  }
}

void add_axis(const GridAxis& a, const float* at, int64_t step, int64_t n, int64_t filled,
              int32_t* places, double* factors) {
  float positions[kBlock] = {};
  int32_t own[4 * kBlock];
  double weights[4 * kBlock];
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = std::min(kBlock, n - begin);
    for (int64_t i = 0; i < count; ++i) positions[i] = at[(begin + i) * step];
    some_taps(a, positions, count, own, weights);
    // The first tap lies where what it is made of lay: it comes last.
    for (int64_t t = a.taps(); t-- > 0;)
      for (int64_t k = 0; k < filled; ++k) {
        const int64_t from = k * n + begin, to = (t * filled + k) * n + begin;
        for (int64_t i = 0; i < count; ++i) {
          places[to + i] = places[from + i] + own[t * kBlock + i];
          factors[to + i] = factors[from + i] * weights[t * kBlock + i];
        }
      }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void add_grid_axis(const GridAxis& axis, const float* at, int64_t step, int64_t n, int64_t filled,
                   int32_t* places, double* factors) {
  using Fn = void(const GridAxis&, const float*, int64_t, int64_t, int64_t, int32_t*, double*);
  TOMBOLO_TARGET(Fn, add_axis).get()(axis, at, step, n, filled, places, factors);
}

}  // namespace tombolo
#endif
