#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/conv/spread.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <vector>

#include "runtime/kernels/conv/spread.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;

HWY_INLINE void fill_row(float* to, int64_t n, float value) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) store_n(hn::Set(d, value), d, to + i, n - i);
}

HWY_INLINE void add_to_row(const float* from, int64_t n, float* to) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::Add(hn::LoadU(d, to + i), hn::LoadU(d, from + i)), d, to + i);
  if (i < n)
    store_n(hn::Add(load_n(d, to + i, n - i), load_n(d, from + i, n - i)), d, to + i, n - i);
}

/// to[i * count + p] = phases[p * length + i] + more.
HWY_INLINE void interleave(const float* phases, int64_t length, int64_t count, int64_t n,
                           float more, float* to) {
  int64_t i = 0;
  if (count >= 2 && count <= 4) {
    const F d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto extra = hn::Set(d, more);
    for (; count * (i + lanes) <= n; i += lanes) {
      const auto phase = [&](int64_t p) HWY_ATTR {
        return hn::Add(hn::LoadU(d, phases + p * length + i), extra);
      };
      float* out = to + count * i;
      if (count == 2)
        hn::StoreInterleaved2(phase(0), phase(1), d, out);
      else if (count == 3)
        hn::StoreInterleaved3(phase(0), phase(1), phase(2), d, out);
      else
        hn::StoreInterleaved4(phase(0), phase(1), phase(2), phase(3), d, out);
    }
  }
  for (int64_t p = 0; p < count; ++p)
    for (int64_t j = i; j * count + p < n; ++j) to[j * count + p] = phases[p * length + j] + more;
}

/// Outputs whose places are equal modulo the stride lie together while they are added to: what one
/// kernel position gives a row is a row again.
void spread_some(const ConvGeometry& s, const float* columns, float bias, int64_t begin,
                 int64_t end, float* y, float* room) {
  const int64_t step = s.stride[2], width = s.out[2];
  const int64_t length = step == 1 ? width : (width + step - 1) / step;
  // Windows side by side: each row of them is a row of the result, and is only interleaved.
  if (step != 1 && s.kernel[2] == step && s.in[2] * step == width && s.pad[2] == 0 &&
      s.dilation[2] == 1 && s.kernel[0] == 1 && s.in[0] == 1 && s.kernel[1] == s.stride[1] &&
      s.in[1] * s.stride[1] == s.out[1] && s.pad[1] == 0 && s.dilation[1] == 1) {
    for (int64_t row = begin; row < end; ++row)
      interleave(columns + row % s.stride[1] * step * s.in_plane() + row / s.stride[1] * s.in[2],
                 s.in_plane(), step, width, bias, y + row * width);
    return;
  }
  // What each position of the kernel's width adds, and where.
  struct Stretch {
    int64_t from, to, n;
  };
  std::vector<Stretch> stretches;
  for (int64_t kc = 0; kc < s.kernel[2]; ++kc) {
    const int64_t shift = kc * s.dilation[2] - s.pad[2];
    const int64_t phase = (shift % step + step) % step, first = (shift - phase) / step;
    const int64_t places = phase < width ? (width - phase + step - 1) / step : 0;
    const int64_t skipped = std::max<int64_t>(0, -first);
    stretches.push_back({kc * s.in_plane() + skipped, phase * length + first + skipped,
                         std::min(s.in[2], places - first) - skipped});
  }
  for (int64_t row = begin; row < end; ++row) {
    float* phases = step == 1 ? y + row * width : room;
    fill_row(phases, step == 1 ? width : step * length, bias);
    const int64_t at[2] = {row / s.out[1], row % s.out[1]};
    const float* tap = columns;
    for (int64_t kd = 0; kd < s.kernel[0]; ++kd)
      for (int64_t kr = 0; kr < s.kernel[1]; ++kr, tap += s.kernel[2] * s.in_plane()) {
        const int64_t down[2] = {at[0] + s.pad[0] - kd * s.dilation[0],
                                 at[1] + s.pad[1] - kr * s.dilation[1]};
        if (down[0] < 0 || down[1] < 0 || down[0] % s.stride[0] != 0 || down[1] % s.stride[1] != 0)
          continue;
        const int64_t d = down[0] / s.stride[0], r = down[1] / s.stride[1];
        if (d >= s.in[0] || r >= s.in[1]) continue;
        const float* from = tap + (d * s.in[1] + r) * s.in[2];
        for (const Stretch& stretch : stretches)
          add_to_row(from + stretch.from, stretch.n, phases + stretch.to);
      }
    if (step != 1) interleave(phases, length, step, width, -0.0f, y + row * width);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

int64_t spread_room(const ConvGeometry& shape) { return shape.out[2] + shape.stride[2] + 64; }

void spread_rows(const ConvGeometry& shape, const float* columns, float bias, int64_t begin,
                 int64_t end, float* y, float* room) {
  using Fn = void(const ConvGeometry&, const float*, float, int64_t, int64_t, float*, float*);
  TOMBOLO_TARGET(Fn, spread_some).get()(shape, columns, bias, begin, end, y, room);
}

}  // namespace tombolo
#endif
