#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/tensor/order_keys.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/tensor/order_keys.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
void keys_in_order(const T* x, int64_t n, bool greatest, OrderKey<T>* keys) {
  using K = OrderKey<T>;
  constexpr K kTop = K{1} << (8 * sizeof(K) - 1);
  const hn::ScalableTag<K> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<T, decltype(d)> dt;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto flip = hn::Set(d, greatest ? K{0} : static_cast<K>(-1)), top = hn::Set(d, kTop);
  for (int64_t i = 0; i < n; i += lanes) {
    auto v = load_n(dt, x + i, n - i);
    auto key = hn::BitCast(d, v);
    if constexpr (hwy::IsFloat<T>()) {
      key = hn::BitCast(d, hn::IfThenZeroElse(hn::Eq(v, hn::Zero(dt)), v));
      // Those below zero all turned round, the others above them.
      const auto sign = hn::BitCast(d, hn::BroadcastSignBit(hn::BitCast(di, key)));
      key = hn::Xor(key, hn::Or(sign, top));
      key = hn::IfThenElse(hn::RebindMask(d, hn::IsNaN(v)), hn::Set(d, static_cast<K>(-1)), key);
    } else {
      key = hn::Xor(key, top);
    }
    store_n(hn::Xor(key, flip), d, keys + i, n - i);
  }
}

template <typename K>
void greatest_of_rows(const K* keys, int64_t n, int64_t rows, K* out) {
  const hn::ScalableTag<K> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    auto most = load_n(d, keys + i, n - i);
    for (int64_t row = 1; row < rows; ++row) {
      const auto key = load_n(d, keys + row * n + i, n - i);
      most = hn::IfThenElse(hn::Lt(most, key), key, most);
    }
    store_n(most, d, out + i, n - i);
  }
}

template <typename K>
int64_t places_at_least(const K* keys, int64_t n, K least, int32_t* places) {
  int64_t count = 0, i = 0;
  if constexpr (sizeof(K) == 4) {
    const hn::ScalableTag<uint32_t> d;
    const hn::RebindToSigned<decltype(d)> di;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto bound = hn::Set(d, least);
    auto place = hn::Iota(di, 0);
    const auto step = hn::Set(di, static_cast<int32_t>(lanes));
    for (; i + lanes <= n; i += lanes, place = hn::Add(place, step)) {
      const auto here = hn::RebindMask(di, hn::Not(hn::Lt(hn::LoadU(d, keys + i), bound)));
      if (hn::AllFalse(di, here)) continue;
      // Storing while compressing takes Zen 4 a hundred cycles.
      hn::StoreU(hn::Compress(place, here), di, places + count);
      count += static_cast<int64_t>(hn::CountTrue(di, here));
    }
  }
  const auto look = [&] {
    places[count] = static_cast<int32_t>(i);
    count += keys[i] >= least ? 1 : 0;
  };
  if constexpr (sizeof(K) == 8) {  // mostly there is none
    const hn::ScalableTag<K> d;
    constexpr int64_t kTwo = 2 * hn::MaxLanes(d);
    const auto bound = hn::Set(d, least);
    while (i + kTwo <= n) {
      const auto here = hn::And(hn::Lt(hn::LoadU(d, keys + i), bound),
                                hn::Lt(hn::LoadU(d, keys + i + kTwo / 2), bound));
      if (hn::AllTrue(d, here)) {
        i += kTwo;
        continue;
      }
      for (const int64_t end = i + kTwo; i < end; ++i) look();
    }
  }
  for (; i < n; ++i) look();
  return count;
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

template <typename T>
void order_keys(const T* x, int64_t n, bool greatest, OrderKey<T>* keys) {
  TOMBOLO_TARGET(void(const T*, int64_t, bool, OrderKey<T>*), keys_in_order<T>)
  (x, n, greatest, keys);
}
template void order_keys(const float*, int64_t, bool, uint32_t*);
template void order_keys(const double*, int64_t, bool, uint64_t*);
template void order_keys(const int32_t*, int64_t, bool, uint32_t*);
template void order_keys(const int64_t*, int64_t, bool, uint64_t*);

template <typename K>
void greatest_keys(const K* keys, int64_t n, int64_t rows, K* out) {
  TOMBOLO_TARGET(void(const K*, int64_t, int64_t, K*), greatest_of_rows<K>)(keys, n, rows, out);
}
template void greatest_keys(const uint32_t*, int64_t, int64_t, uint32_t*);
template void greatest_keys(const uint64_t*, int64_t, int64_t, uint64_t*);

template <typename K>
int64_t places_from(const K* keys, int64_t n, K least, int32_t* places) {
  return TOMBOLO_TARGET(int64_t(const K*, int64_t, K, int32_t*), places_at_least<K>)(keys, n, least,
                                                                                     places);
}
template int64_t places_from(const uint32_t*, int64_t, uint32_t, int32_t*);
template int64_t places_from(const uint64_t*, int64_t, uint64_t, int32_t*);

}  // namespace tombolo
#endif
