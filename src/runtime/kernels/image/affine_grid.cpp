#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/image/affine_grid.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/image/affine_grid.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<double>;

template <int kCount, typename T>
void line_of(const double* along, int64_t n, const double* start, const double* slope, T* out) {
  const D d;
  const hn::ScalableTag<T> t;
  const hn::Rebind<float, D> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(t)), wide = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> from[kCount], by[kCount];
  for (int j = 0; j < kCount; ++j) {
    from[j] = hn::Set(d, start[j]);
    by[j] = hn::Set(d, slope[j]);
  }
  const auto some = [&](int64_t i, int j) HWY_ATTR __attribute__((always_inline)) {
    const auto low = hn::MulAdd(hn::LoadU(d, along + i), by[j], from[j]);
    if constexpr (sizeof(T) == sizeof(double)) {
      return low;
    } else {
      const auto high = hn::MulAdd(hn::LoadU(d, along + i + wide), by[j], from[j]);
      return hn::Combine(t, hn::DemoteTo(half, high), hn::DemoteTo(half, low));
    }
  };
  const auto store = [&](int64_t i, T * to) HWY_ATTR __attribute__((always_inline)) {
    if constexpr (kCount == 2)
      hn::StoreInterleaved2(some(i, 0), some(i, 1), t, to);
    else
      hn::StoreInterleaved3(some(i, 0), some(i, 1), some(i, 2), t, to);
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store(i, out + i * kCount);
  if (i < n) {  // along has room for a vector more
    HWY_ALIGN T rest[kCount * HWY_LANES(T)];
    store(i, rest);
    std::copy_n(rest, (n - i) * kCount, out + i * kCount);
  }
}

template <typename T>
void any_line(const double* along, int64_t n, const double* start, const double* slope,
              int64_t count, T* out) {
  count == 2 ? line_of<2>(along, n, start, slope, out) : line_of<3>(along, n, start, slope, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

template <typename T>
void affine_line(const double* along, int64_t n, const double* start, const double* slope,
                 int64_t count, T* out) {
  using Fn = void(const double*, int64_t, const double*, const double*, int64_t, T*);
  TOMBOLO_TARGET(Fn, any_line<T>)(along, n, start, slope, count, out);
}
template void affine_line(const double*, int64_t, const double*, const double*, int64_t, float*);
template void affine_line(const double*, int64_t, const double*, const double*, int64_t, double*);

}  // namespace tombolo
#endif
