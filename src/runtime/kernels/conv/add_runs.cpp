#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/conv/add_runs.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/kernels/conv/add_runs.h"
#include "runtime/kernels/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Adds whole vectors of elements to those of a row or to every other one; gives how many it left.
/// Of every other one the last stays: what lies behind it may be someone else's.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE int64_t add_vectors(D d, const T*& from, int64_t n, int64_t stride, T*& to) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (stride == 1) {
    for (; n >= lanes; n -= lanes, from += lanes, to += lanes)
      hn::StoreU(hn::Add(hn::LoadU(d, to), hn::LoadU(d, from)), d, to);
  } else {
    for (; n > lanes; n -= lanes, from += lanes, to += 2 * lanes) {
      hn::Vec<D> even, odd;
      hn::LoadInterleaved2(d, to, even, odd);
      hn::StoreInterleaved2(hn::Add(even, hn::LoadU(d, from)), odd, d, to);
    }
  }
  return n;
}

/// to[i * stride] += from[i]. Without masks: the row that follows is often read next, and would
/// wait for a masked store.
template <typename T>
HWY_INLINE void add_to_row(const T* from, int64_t n, int64_t stride, T* to) {
  if (stride <= 2) {
    n = add_vectors(hn::ScalableTag<T>(), from, n, stride, to);
    n = add_vectors(hn::CappedTag<T, 16 / sizeof(T)>(), from, n, stride, to);
  }
  for (int64_t i = 0; i < n; ++i) to[i * stride] += from[i];
}

/// to[2 i] += even[i], to[2 i + 1] += odd[i]
template <typename T>
HWY_INLINE void add_pairs_to_row(const T* even, const T* odd, int64_t n, T* to) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; n >= lanes; n -= lanes, even += lanes, odd += lanes, to += 2 * lanes) {
    hn::Vec<decltype(d)> first, second;
    hn::LoadInterleaved2(d, to, first, second);
    first = hn::Add(first, hn::LoadU(d, even));
    second = hn::Add(second, hn::LoadU(d, odd));
    hn::StoreInterleaved2(first, second, d, to);
  }
  for (int64_t i = 0; i < n; ++i) {
    to[2 * i] += even[i];
    to[2 * i + 1] += odd[i];
  }
}

template <typename T>
void add_runs_any(const AddRun* runs, size_t count, int64_t stride, const T* columns, T* image) {
  for (size_t r = 0; r < count; ++r) {
    const AddRun& run = runs[r];
    if (stride == 2 && run.between >= 0)
      add_pairs_to_row(columns + run.from, columns + run.between, run.count, image + run.to);
    else
      add_to_row(columns + run.from, run.count, stride, image + run.to);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

template <typename T>
void add_runs(std::span<const AddRun> runs, int64_t stride, const T* columns, T* image) {
  using Fn = void(const AddRun*, size_t, int64_t, const T*, T*);
  TOMBOLO_TARGET(Fn, add_runs_any<T>)(runs.data(), runs.size(), stride, columns, image);
}
template void add_runs(std::span<const AddRun>, int64_t, const float*, float*);
template void add_runs(std::span<const AddRun>, int64_t, const double*, double*);
template void add_runs(std::span<const AddRun>, int64_t, const uint32_t*, uint32_t*);
template void add_runs(std::span<const AddRun>, int64_t, const uint64_t*, uint64_t*);

}  // namespace tombolo
#endif
