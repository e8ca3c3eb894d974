#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/pool/max_planes.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/pool/max_planes.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
// No more numbers than that in a vector: rows are short, and what the last vector of each lacks is
// lost.
using F = hn::CappedTag<float, 8>;
using V = hn::Vec<F>;

constexpr int64_t kRowsTogether = 16;

/// Of a line: what is read for the last outputs, and what is written behind the last number.
int64_t line_floats(const MaxPlane& s) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(F()));
  const int64_t outputs = (s.out_width + lanes - 1) / lanes * lanes;
  return std::max(outputs * s.stride_width + s.kernel_width + 2 * lanes,
                  s.pad_left + s.width + lanes);
}
int64_t room_floats(const MaxPlane& s) {
  return line_floats(s) * std::min(kRowsTogether, s.out_height);
}

/// The greatest numbers down each column of `rows` rows, of kRows if that is not 0; -infinity
/// behind the last column.
template <int64_t kRows>
HWY_INLINE void greatest_of(const float* x, int64_t rows, int64_t width, float* line) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const V least = hn::Set(f, -std::numeric_limits<float>::infinity());
  const auto down = [&](auto&& load) HWY_ATTR {
    V most = load(x);
    if constexpr (kRows != 0) {
#pragma GCC unroll 4
      for (int64_t k = 1; k < kRows; ++k) most = hn::Max(most, load(x + k * width));
    } else {
      for (int64_t k = 1; k < rows; ++k) most = hn::Max(most, load(x + k * width));
    }
    return most;
  };
  int64_t j = 0;
  for (; j + lanes <= width; j += lanes)
    hn::StoreU(down([&](const float* p) HWY_ATTR { return hn::LoadU(f, p + j); }), f, line + j);
  if (j == width) return;
  const V most = down([&](const float* p) HWY_ATTR { return load_n(f, p + j, width - j); });
  const auto inside = hn::FirstN(f, static_cast<size_t>(width - j));
  hn::StoreU(hn::IfThenElse(inside, most, least), f, line + j);
}
HWY_INLINE void greatest_of_rows(const float* x, int64_t rows, int64_t width, float* line) {
  if (rows == 3)
    greatest_of<3>(x, rows, width, line);
  else if (rows == 2)
    greatest_of<2>(x, rows, width, line);
  else
    greatest_of<0>(x, rows, width, line);
}

/// The greatest of kTaps numbers from each place, or from each second one.
template <int64_t kStride, int64_t kTaps>
HWY_INLINE V greatest_neighbours(const float* line) {
  const F f;
  if constexpr (kStride == 1) {
    V most = hn::LoadU(f, line);
#pragma GCC unroll 8
    for (int64_t t = 1; t < kTaps; ++t) most = hn::Max(most, hn::LoadU(f, line + t));
    return most;
  } else {
    const auto lanes = static_cast<int64_t>(hn::Lanes(f));
    const auto each_second = [&](const float* p, bool both) HWY_ATTR {
      const V a = hn::LoadU(f, p), b = hn::LoadU(f, p + lanes), even = hn::ConcatEven(f, b, a);
      return both ? hn::Max(even, hn::ConcatOdd(f, b, a)) : even;
    };
    V most = each_second(line, kTaps > 1);
#pragma GCC unroll 4
    for (int64_t t = 2; t < kTaps; t += 2)
      most = hn::Max(most, each_second(line + t, t + 1 < kTaps));
    return most;
  }
}

template <int64_t kStride, int64_t kTaps>
void pool_plane(const MaxPlane& plane, const float* x, float* y, int64_t writable, float* room) {
  const F f;
  const MaxPlane s = plane;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const int64_t step = line_floats(s);
  for (int64_t first = 0; first < s.out_height; first += kRowsTogether) {
    const int64_t some = std::min(kRowsTogether, s.out_height - first);
    for (int64_t r = 0; r < some; ++r) {
      const int64_t top = (first + r) * s.stride_height - s.pad_top;
      const int64_t begin = std::max<int64_t>(0, top);
      const int64_t rows = std::min(s.height, top + s.kernel_height) - begin;
      float* line = room + r * step + s.pad_left;
      if (rows > 0)
        greatest_of_rows(x + begin * s.width, rows, s.width, line);
      else
        std::fill_n(line, s.width, -std::numeric_limits<float>::infinity());
    }
    // What lies behind a row's end is written over by the next one.
    for (int64_t r = 0; r < some; ++r) {
      const int64_t to = (first + r) * s.out_width;
      const float* line = room + r * step;
      for (int64_t j = 0; j < s.out_width; j += lanes) {
        const V most = greatest_neighbours<kStride, kTaps>(line + j * kStride);
        if (HWY_LIKELY(to + j + lanes <= writable))
          hn::StoreU(most, f, y + to + j);
        else
          store_n(most, f, y + to + j, s.out_width - j);
      }
    }
  }
}
template <int64_t kStride>
void pool_taps(const MaxPlane& s, const float* x, float* y, int64_t writable, float* room) {
  const auto run = s.kernel_width == 1   ? pool_plane<kStride, 1>
                   : s.kernel_width == 2 ? pool_plane<kStride, 2>
                   : s.kernel_width == 3 ? pool_plane<kStride, 3>
                   : s.kernel_width == 4 ? pool_plane<kStride, 4>
                                         : pool_plane<kStride, 5>;
  run(s, x, y, writable, room);
}
void pool_any(const MaxPlane& s, const float* x, float* y, int64_t writable, float* room) {
  s.stride_width == 1 ? pool_taps<1>(s, x, y, writable, room)
                      : pool_taps<2>(s, x, y, writable, room);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

int64_t max_plane_room(const MaxPlane& s) {
  return TOMBOLO_TARGET(int64_t(const MaxPlane&), room_floats)(s);
}
void max_plane(const MaxPlane& s, const float* x, float* y, int64_t writable, float* room) {
  TOMBOLO_TARGET(void(const MaxPlane&, const float*, float*, int64_t, float*), pool_any)
  (s, x, y, writable, room);
}

}  // namespace tombolo
#endif
