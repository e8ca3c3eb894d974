#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/attention/rotate.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstring>

#include "runtime/kernels/attention/rotate.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE void rotate(const float* from, float* to, int64_t size, int64_t half,
                       const float* cosine, const float* sine, bool interleaved) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  if (interleaved) {
    for (; i + lanes <= half; i += lanes) {
      hn::Vec<decltype(d)> a, b;
      hn::LoadInterleaved2(d, from + 2 * i, a, b);
      const auto c = hn::LoadU(d, cosine + i), s = hn::LoadU(d, sine + i);
      hn::StoreInterleaved2(hn::NegMulAdd(b, s, hn::Mul(a, c)), hn::MulAdd(a, s, hn::Mul(b, c)), d,
                            to + 2 * i);
    }
    for (; i < half; ++i) {
      const float a = from[2 * i], b = from[2 * i + 1];
      to[2 * i] = a * cosine[i] - b * sine[i];
      to[2 * i + 1] = a * sine[i] + b * cosine[i];
    }
  } else {
    for (; i < half; i += lanes) {
      const int64_t left = half - i;
      const auto a = load_n(d, from + i, left), b = load_n(d, from + half + i, left);
      const auto c = load_n(d, cosine + i, left), s = load_n(d, sine + i, left);
      store_n(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, to + i, left);
      store_n(hn::MulAdd(a, s, hn::Mul(b, c)), d, to + half + i, left);
    }
  }
  if (to != from && size > 2 * half)
    std::memcpy(to + 2 * half, from + 2 * half,
                static_cast<size_t>(size - 2 * half) * sizeof(float));
}

void rotate_some(const float* from, float* to, int64_t count, int64_t size, int64_t half,
                 const float* cosine, const float* sine, const int64_t* rows, bool interleaved) {
  for (int64_t i = 0; i < count; ++i, from += size, to += size)
    rotate(from, to, size, half, cosine + rows[i] * half, sine + rows[i] * half, interleaved);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void rotate_rows(const float* from, float* to, int64_t count, int64_t size, int64_t half,
                 const float* cosine, const float* sine, const int64_t* rows, bool interleaved) {
  TOMBOLO_TARGET(void(const float*, float*, int64_t, int64_t, int64_t, const float*, const float*,
                      const int64_t*, bool),
                 rotate_some)
  (from, to, count, size, half, cosine, sine, rows, interleaved);
}

}  // namespace tombolo
#endif
