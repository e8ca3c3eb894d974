#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/tensor/best_columns.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/tensor/best_columns.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using BestKey = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;

/// Numbers as integers of the same order: both zeros are one, NaN is the greatest. `flip` turns the
/// order around.
template <typename T, class D>
HWY_INLINE hn::Vec<D> keys_of(D d, const T* x, int64_t left, hn::Vec<D> flip) {
  if constexpr (std::is_floating_point_v<T>) {
    const hn::Rebind<T, D> df;
    auto v = load_n(df, x, left);
    const auto nan = hn::RebindMask(d, hn::IsNaN(v));
    v = hn::IfThenZeroElse(hn::Eq(v, hn::Zero(df)), v);
    const auto bits = hn::BitCast(d, v);
    constexpr auto kMost = std::numeric_limits<hn::TFromD<D>>::max();
    const auto most = hn::Set(d, kMost);
    const auto key = hn::Xor(bits, hn::And(hn::BroadcastSignBit(bits), most));
    return hn::Xor(hn::IfThenElse(nan, most, key), flip);
  } else {
    return hn::Xor(load_n(d, x, left), flip);
  }
}

template <int kCount, typename T>
HWY_INLINE void best_of(const T* x, int64_t n, int64_t step, int64_t width, int64_t k,
                        BestKey<T> turn, int32_t* places, int64_t place_step) {
  using C = BestKey<T>;
  const hn::ScalableTag<C> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V flip = hn::Set(d, turn), least = hn::Set(d, std::numeric_limits<C>::min());
  for (int64_t j = 0; j < width; j += lanes) {
    const int64_t left = width - j;
    V best[kCount], at[kCount];
#pragma GCC unroll 8
    for (int r = 0; r < kCount; ++r) {
      best[r] = least;
      at[r] = hn::Set(d, C{-1});
    }
    for (int64_t i = 0; i < n; ++i) {
      const V v = keys_of(d, x + i * step + j, left, flip);
      auto here = hn::Gt(v, best[kCount - 1]);
      if (kCount > 2 && hn::AllFalse(d, here)) continue;  // of two it is guessed wrong too often
      // All that it is better than move on by one place, the last first.
      const V place = hn::Set(d, static_cast<C>(i));
#pragma GCC unroll 8
      for (int r = kCount - 1; r > 0; --r) {
        const auto before = hn::Gt(v, best[r - 1]);
        best[r] = hn::IfThenElse(here, hn::IfThenElse(before, best[r - 1], v), best[r]);
        at[r] = hn::IfThenElse(here, hn::IfThenElse(before, at[r - 1], place), at[r]);
        here = before;
      }
      best[0] = hn::IfThenElse(here, v, best[0]);
      at[0] = hn::IfThenElse(here, place, at[0]);
    }
    HWY_ALIGN C found[HWY_LANES(C)];
    for (int64_t r = 0; r < k; ++r) {
      hn::Store(at[r], d, found);
      for (int64_t c = 0; c < std::min(lanes, left); ++c)
        places[r * place_step + j + c] = static_cast<int32_t>(found[c]);
    }
  }
}

template <typename T>
void best_columns(const T* x, int64_t n, int64_t step, int64_t width, int64_t k, bool greatest,
                  int32_t* places, int64_t place_step) {
  const BestKey<T> turn = greatest ? 0 : -1;
  const auto run = k <= 1   ? best_of<1, T>
                   : k <= 2 ? best_of<2, T>
                   : k <= 4 ? best_of<4, T>
                            : best_of<8, T>;
  run(x, n, step, width, k, turn, places, place_step);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

template <typename T>
void best_of_columns(const T* x, int64_t n, int64_t step, int64_t width, int64_t k, bool greatest,
                     int32_t* places, int64_t place_step) {
  using Fn = void(const T*, int64_t, int64_t, int64_t, int64_t, bool, int32_t*, int64_t);
  TOMBOLO_TARGET(Fn, best_columns<T>)(x, n, step, width, k, greatest, places, place_step);
  // The worst number of all never takes a place by being better: those are the first ones left.
  for (int64_t j = 0; j < width; ++j)
    for (int64_t r = 0; r < k; ++r) {
      if (places[r * place_step + j] >= 0) continue;
      int32_t next = 0;
      for (int64_t q = 0; q < r;)  // the least place that is not taken
        if (places[q++ * place_step + j] == next) {
          ++next;
          q = 0;
        }
      places[r * place_step + j] = next;
    }
}
#define TOMBOLO_BEST(T)                                                                       \
  template void best_of_columns(const T*, int64_t, int64_t, int64_t, int64_t, bool, int32_t*, \
                                int64_t);
TOMBOLO_BEST(float)
TOMBOLO_BEST(double)
TOMBOLO_BEST(int32_t)
TOMBOLO_BEST(int64_t)
#undef TOMBOLO_BEST

}  // namespace tombolo
#endif
