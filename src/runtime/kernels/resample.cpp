#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/resample.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/resample.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

void row(const float* x, const int32_t* first, const float* weights, int64_t taps, int64_t n,
         float* y) {
  const F d;
  const hn::RebindToSigned<F> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto places = hn::LoadU(di, first + i);
    V sum = hn::Mul(hn::LoadU(d, weights + i), hn::GatherIndex(d, x, places));
    for (int64_t t = 1; t < taps; ++t)
      sum = hn::MulAdd(hn::LoadU(d, weights + t * n + i), hn::GatherIndex(d, x + t, places), sum);
    hn::StoreU(sum, d, y + i);
  }
  for (; i < n; ++i) {
    float sum = 0;
    for (int64_t t = 0; t < taps; ++t) sum += weights[t * n + i] * x[first[i] + t];
    y[i] = sum;
  }
}

void blend(const float* x, int64_t step, const float* weights, int64_t taps, int64_t n, float* y) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t left = n - i;
    V sum = hn::Mul(hn::Set(d, weights[0]), load_n(d, x + i, left));
    for (int64_t t = 1; t < taps; ++t)
      sum = hn::MulAdd(hn::Set(d, weights[t]), load_n(d, x + t * step + i, left), sum);
    store_n(sum, d, y + i, left);
  }
}

void twice(const uint32_t* x, int64_t n, uint32_t* y, uint32_t* again) {
  const hn::ScalableTag<uint32_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    // Of each block of 128 bits the lower and the upper half doubled, then blocks in their order.
    const auto low = hn::InterleaveLower(d, v, v), high = hn::InterleaveUpper(d, v, v);
#if HWY_TARGET == HWY_AVX3
    const hn::Vec<decltype(d)> first{
        _mm512_permutex2var_epi64(low.raw, _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0), high.raw)},
        second{_mm512_permutex2var_epi64(low.raw, _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4),
                                         high.raw)};
    hn::StoreU(first, d, y + 2 * i);
    hn::StoreU(second, d, y + 2 * i + lanes);
    if (again != nullptr) {
      hn::StoreU(first, d, again + 2 * i);
      hn::StoreU(second, d, again + 2 * i + lanes);
    }
#else
    (void)low, (void)high;
    hn::StoreInterleaved2(v, v, d, y + 2 * i);
    if (again != nullptr) hn::StoreInterleaved2(v, v, d, again + 2 * i);
#endif
  }
  for (; i < n; ++i) {
    y[2 * i] = y[2 * i + 1] = x[i];
    if (again != nullptr) again[2 * i] = again[2 * i + 1] = x[i];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void resample_row(const float* x, const int32_t* first, const float* weights, int64_t taps,
                  int64_t n, float* y) {
  TOMBOLO_TARGET(void(const float*, const int32_t*, const float*, int64_t, int64_t, float*), row)
  (x, first, weights, taps, n, y);
}
void blend_rows(const float* x, int64_t step, const float* weights, int64_t taps, int64_t n,
                float* y) {
  TOMBOLO_TARGET(void(const float*, int64_t, const float*, int64_t, int64_t, float*), blend)
  (x, step, weights, taps, n, y);
}

void double_row(const uint32_t* x, int64_t n, uint32_t* y, uint32_t* again) {
  TOMBOLO_TARGET(void(const uint32_t*, int64_t, uint32_t*, uint32_t*), twice)(x, n, y, again);
}

}  // namespace tombolo
#endif
