#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/extremum.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/extremum.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using I = hn::RebindToSigned<F>;
using V = hn::Vec<F>;
using VI = hn::Vec<I>;

/// Whether `v` takes the place of `best`. Least numbers come in with their signs changed.
template <bool kLast>
HWY_INLINE auto better(V v, V best) {
  const auto open = hn::Not(hn::IsNaN(best));
  if constexpr (kLast)
    return hn::Or(hn::IsNaN(v), hn::And(open, hn::Ge(v, best)));
  else
    return hn::And(open, hn::Or(hn::IsNaN(v), hn::Gt(v, best)));
}

bool better_one(float v, float best, bool last) {
  if (best != best) return last && v != v;
  return v != v || v > best || (last && v == best);
}

template <bool kLast>
int64_t row_place(const float* x, int64_t n, float sign) {
  const F d;
  const I di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V s = hn::Set(d, sign);
  int64_t place = 0, i = 0;
  float best = sign * x[0];
  if (n >= 2 * lanes) {
    V most = hn::Mul(s, hn::LoadU(d, x));
    VI at = hn::Iota(di, 0), now = at;
    const VI step = hn::Set(di, static_cast<int32_t>(lanes));
    for (i = lanes; i + lanes <= n; i += lanes) {
      now = hn::Add(now, step);
      const V v = hn::Mul(s, hn::LoadU(d, x + i));
      const auto mask = better<kLast>(v, most);
      most = hn::IfThenElse(mask, v, most);
      at = hn::IfThenElse(hn::RebindMask(di, mask), now, at);
    }
    HWY_ALIGN float values[HWY_LANES(float)];
    HWY_ALIGN int32_t places[HWY_LANES(float)];
    hn::Store(most, d, values);
    hn::Store(at, di, places);
    best = values[0];
    place = places[0];
    for (int64_t k = 1; k < lanes; ++k) {
      const float v = values[k];
      const bool equal = v == best || (v != v && best != best);
      if (equal ? (kLast ? places[k] > place : places[k] < place) : better_one(v, best, false)) {
        best = v;
        place = places[k];
      }
    }
  }
  for (; i < n; ++i)
    if (i != 0 && better_one(sign * x[i], best, kLast)) {
      best = sign * x[i];
      place = i;
    }
  return place;
}

int64_t one_place(const float* x, int64_t n, float sign, bool last) {
  return last ? row_place<true>(x, n, sign) : row_place<false>(x, n, sign);
}

template <bool kLast>
void column_places(const float* x, int64_t n, int64_t step, int64_t width, float sign,
                   int64_t* places) {
  const F d;
  const I di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V s = hn::Set(d, sign);
  for (int64_t j = 0; j < width; j += lanes) {
    const int64_t left = width - j;
    V most = hn::Mul(s, load_n(d, x + j, left));
    VI at = hn::Zero(di);
    for (int64_t i = 1; i < n; ++i) {
      const V v = hn::Mul(s, load_n(d, x + i * step + j, left));
      const auto mask = better<kLast>(v, most);
      most = hn::IfThenElse(mask, v, most);
      at = hn::IfThenElse(hn::RebindMask(di, mask), hn::Set(di, static_cast<int32_t>(i)), at);
    }
    HWY_ALIGN int32_t found[HWY_LANES(float)];
    hn::Store(at, di, found);
    std::copy_n(found, std::min(lanes, left), places + j);
  }
}

void all_places(const float* x, int64_t n, int64_t step, int64_t width, float sign, bool last,
                int64_t* places) {
  last ? column_places<true>(x, n, step, width, sign, places)
       : column_places<false>(x, n, step, width, sign, places);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

int64_t extremum_place(const float* x, int64_t n, bool greatest, bool last) {
  return TOMBOLO_TARGET(int64_t(const float*, int64_t, float, bool), one_place)(
      x, n, greatest ? 1.0f : -1.0f, last);
}
void extremum_places(const float* x, int64_t n, int64_t step, int64_t width, bool greatest,
                     bool last, int64_t* places) {
  TOMBOLO_TARGET(void(const float*, int64_t, int64_t, int64_t, float, bool, int64_t*), all_places)
  (x, n, step, width, greatest ? 1.0f : -1.0f, last, places);
}

}  // namespace tombolo
#endif
