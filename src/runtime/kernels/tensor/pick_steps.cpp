#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/tensor/pick_steps.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/tensor/pick_steps.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> reversed(D d, hn::Vec<D> v) {
  constexpr size_t kSize = sizeof(hn::TFromD<D>);
  if constexpr (kSize >= 4) {
    return hn::Reverse(d, v);
  } else {
    // Within each block of sixteen bytes, then the blocks.
    const hn::Repartition<uint8_t, D> bytes;
    HWY_ALIGN static constexpr uint8_t kOnes[16] = {15, 14, 13, 12, 11, 10, 9, 8,
                                                    7,  6,  5,  4,  3,  2,  1, 0};
    HWY_ALIGN static constexpr uint8_t kTwos[16] = {14, 15, 12, 13, 10, 11, 8, 9,
                                                    6,  7,  4,  5,  2,  3,  0, 1};
    const auto order = hn::LoadDup128(bytes, kSize == 1 ? kOnes : kTwos);
    return hn::ReverseBlocks(d, hn::BitCast(d, hn::TableLookupBytes(hn::BitCast(bytes, v), order)));
  }
}

/// Each kStep-th element from p on, and what lies between the last ones.
template <int kStep, class D, typename T>
HWY_INLINE hn::Vec<D> load_each(D d, const T* p) {
  hn::Vec<D> first, a, b, c;
  if constexpr (kStep == 1) {
    first = hn::LoadU(d, p);
  } else if constexpr (kStep == 2) {
    hn::LoadInterleaved2(d, p, first, a);
  } else if constexpr (kStep == 3) {
    hn::LoadInterleaved3(d, p, first, a, b);
  } else {
    hn::LoadInterleaved4(d, p, first, a, b, c);
  }
  return first;
}

template <int kStep, typename T>
void pick_up(const T* x, int64_t n, T* y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  // What is loaded ends before the next element, which is there.
  for (; i + lanes < n; i += lanes) hn::StoreU(load_each<kStep>(d, x + i * kStep), d, y + i);
  for (; i < n; ++i) y[i] = x[i * kStep];
}
/// Downwards: from the last one on, which lies first.
template <int kStep, typename T>
void pick_down(const T* x, int64_t n, T* y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* low = x - (n - 1) * kStep;
  int64_t i = 0;
  for (; i + lanes < n; i += lanes)
    hn::StoreU(reversed(d, load_each<kStep>(d, low + i * kStep)), d, y + n - i - lanes);
  for (; i < n; ++i) y[n - 1 - i] = low[i * kStep];
}

template <typename T>
void pick_steps(const void* from, int64_t step, int64_t n, void* to) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  switch (step) {
    case 2:
      return pick_up<2>(x, n, y);
    case 3:
      return pick_up<3>(x, n, y);
    case 4:
      return pick_up<4>(x, n, y);
    case -1:
      return pick_down<1>(x, n, y);
    case -2:
      return pick_down<2>(x, n, y);
    case -3:
      return pick_down<3>(x, n, y);
    case -4:
      return pick_down<4>(x, n, y);
    default:
      for (int64_t i = 0; i < n; ++i) y[i] = x[i * step];
  }
}

void range_f32(double start, double delta, int64_t n, float* y) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  const hn::Rebind<int32_t, decltype(d)> whole;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto from = hn::Set(d, start), by = hn::Set(d, delta);
  const auto iota = hn::PromoteTo(d, hn::Iota(whole, 0));
  for (int64_t i = 0; i < n; i += lanes) {
    const auto at = hn::Add(iota, hn::Set(d, static_cast<double>(i)));
    store_n(hn::DemoteTo(half, hn::Add(from, hn::Mul(at, by))), half, y + i, n - i);
  }
}
void range_f64(double start, double delta, int64_t n, double* y) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<int32_t, decltype(d)> whole;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto from = hn::Set(d, start), by = hn::Set(d, delta);
  const auto iota = hn::PromoteTo(d, hn::Iota(whole, 0));
  for (int64_t i = 0; i < n; i += lanes) {
    const auto at = hn::Add(iota, hn::Set(d, static_cast<double>(i)));
    store_n(hn::Add(from, hn::Mul(at, by)), d, y + i, n - i);
  }
}
template <typename T>
void range_whole(T start, T delta, int64_t n, T* y) {
  using U = std::make_unsigned_t<T>;
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN T first[HWY_LANES(T)];
  for (int64_t i = 0; i < lanes; ++i)
    first[i] = static_cast<T>(static_cast<U>(start) + static_cast<U>(i) * static_cast<U>(delta));
  auto at = hn::Load(d, first);
  const auto by =
      hn::Set(d, static_cast<T>(static_cast<U>(delta) * static_cast<U>(static_cast<T>(lanes))));
  for (int64_t i = 0; i < n; i += lanes, at = hn::Add(at, by)) store_n(at, d, y + i, n - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

PickStepsFn* pick_steps_fn(size_t bytes) {
  switch (bytes) {
    case 1:
      return TOMBOLO_TARGET(PickStepsFn, pick_steps<uint8_t>).get();
    case 2:
      return TOMBOLO_TARGET(PickStepsFn, pick_steps<uint16_t>).get();
    case 4:
      return TOMBOLO_TARGET(PickStepsFn, pick_steps<uint32_t>).get();
    case 8:
      return TOMBOLO_TARGET(PickStepsFn, pick_steps<uint64_t>).get();
    default:
      return nullptr;
  }
}

void fill_range(double start, double delta, int64_t n, float* y) {
  TOMBOLO_TARGET(void(double, double, int64_t, float*), range_f32)(start, delta, n, y);
}
void fill_range(double start, double delta, int64_t n, double* y) {
  TOMBOLO_TARGET(void(double, double, int64_t, double*), range_f64)(start, delta, n, y);
}
void fill_range(int64_t start, int64_t delta, int64_t n, int32_t* y) {
  TOMBOLO_TARGET(void(int32_t, int32_t, int64_t, int32_t*), range_whole<int32_t>)
  (static_cast<int32_t>(start), static_cast<int32_t>(delta), n, y);
}
void fill_range(int64_t start, int64_t delta, int64_t n, int64_t* y) {
  TOMBOLO_TARGET(void(int64_t, int64_t, int64_t, int64_t*), range_whole<int64_t>)
  (start, delta, n, y);
}

}  // namespace tombolo
#endif
