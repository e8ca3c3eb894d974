// Convolution with one input channel a group. The padded image is one long row:
// an output's window lies at the same distances whatever its row, so that
// vectors run over row ends; what they compute between rows is not copied.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/conv/conv_depthwise.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "runtime/kernels/conv/conv.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;

/// out[i] = sum over taps of w[t] * x[taps[t] + i]. Reads and writes whole
/// vectors.
void correlate(const float* HWY_RESTRICT x, const int64_t* HWY_RESTRICT taps,
               const float* HWY_RESTRICT w, int64_t count, int64_t n, float* HWY_RESTRICT out) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  int64_t i = 0;
  for (; i + 8 * lanes <= n + lanes - 1; i += 8 * lanes) {
    hn::Vec<F> s[8];
#pragma GCC unroll 8
    for (int v = 0; v < 8; ++v) s[v] = hn::Zero(f);
    for (int64_t t = 0; t < count; ++t) {
      const auto weight = hn::Set(f, w[t]);
      const float* from = x + taps[t] + i;
#pragma GCC unroll 8
      for (int v = 0; v < 8; ++v) s[v] = hn::MulAdd(weight, hn::LoadU(f, from + v * lanes), s[v]);
    }
#pragma GCC unroll 8
    for (int v = 0; v < 8; ++v) hn::StoreU(s[v], f, out + i + v * lanes);
  }
  for (; i < n; i += lanes) {
    auto s = hn::Zero(f);
    for (int64_t t = 0; t < count; ++t)
      s = hn::MulAdd(hn::Set(f, w[t]), hn::LoadU(f, x + taps[t] + i), s);
    hn::StoreU(s, f, out + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void correlate_flat(const float* x, const int64_t* taps, const float* w, int64_t count, int64_t n,
                    float* out) {
  using Fn = void(const float*, const int64_t*, const float*, int64_t, int64_t, float*);
  TOMBOLO_TARGET(Fn, correlate)(x, taps, w, count, n, out);
}

void run_depthwise(const ConvPlan& plan, const float* x, const float* packed, float* y,
                   const ConvEpilogue& epilogue, float*) {
  const ConvGeometry& s = plan.shape;
  const auto& kernel = TOMBOLO_TARGET(
      void(const float*, const int64_t*, const float*, int64_t, int64_t, float*), correlate);
  const int64_t pixels = s.out_plane(), taps = s.taps();
  const int64_t flat = (s.out[1] - 1) * plan.image.columns + s.out[2];
  if (pixels == 0) return;
  constexpr int64_t kSlack = 256;  // whole vectors are read and written
  parallel(s.batch * s.groups, std::max<int64_t>(1, 16384 / (pixels * taps)),
           [&](int64_t begin, int64_t end) {
             const int64_t plane = std::max(plan.image.plane, s.in_plane());
             float* image = thread_floats(1, static_cast<size_t>(plane + kSlack));
             float* sums = thread_floats(2, static_cast<size_t>(flat + kSlack));
             std::fill_n(image + plane, kSlack, 0.0f);
             for (int64_t task = begin; task < end; ++task) {
               const float* from = x + task * s.in_plane();
               if (plan.image.copy)
                 split_image(s, plan.image, from, 0, image);
               else
                 std::copy_n(from, s.in_plane(), image);
               for (int64_t m = 0; m < s.out_channels; ++m) {
                 const int64_t channel = task % s.groups * s.out_channels + m;
                 for (int64_t d = 0; d < s.out[0]; ++d) {
                   kernel(image + d * s.stride[0] * plan.image.slice, plan.image.taps.data(),
                          packed + channel * taps, taps, flat, sums);
                   const int64_t at =
                       ((task * s.out_channels + m) * s.out[0] + d) * s.out[1] * s.out[2];
                   finish_rows(sums, plan.image.columns,
                               epilogue.bias != nullptr ? epilogue.bias[channel] : 0,
                               epilogue.residual != nullptr ? epilogue.residual + at : nullptr,
                               epilogue.activation, s.out[1], s.out[2], y + at);
                 }
               }
             }
           });
}

}  // namespace tombolo
#endif
