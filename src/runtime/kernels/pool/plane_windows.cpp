#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/pool/plane_windows.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/pool/plane_windows.h"
#include "runtime/kernels/vec-inl.h"

#ifndef TOMBOLO_PLANE_LINES
#define TOMBOLO_PLANE_LINES
namespace tombolo {

/// Where the columns of a combined row are: the even and the odd ones apart where each second
/// window is taken, so that those of a window that all windows begin with are neighbours.
struct PlaneLines {
  static constexpr int64_t kLine = 16;  ///< floats
  int64_t rows = 0, step = 0;           ///< lines, and floats from one to the next
  int64_t column[2] = {0, 0};           ///< of the first and the second column
  int64_t tap[5] = {0, 0, 0, 0, 0};     ///< of the first window

  explicit PlaneLines(const ConvGeometry& s) {
    constexpr int64_t kNear = 5120;
    const int64_t stride = s.stride[2], pad = s.pad[2];
    const int64_t phase =
        (std::max(s.out[2] + s.kernel[2], (s.in[2] + pad) / stride + 1) + 4 * kLine) / kLine *
        kLine;
    // A vector or two after the first cache line, before which the padding is.
    int64_t origin[2] = {0, 0};
    for (int64_t c = 0; c < stride; ++c) {
      column[c] = c * phase + kLine;
      origin[(c + pad) % stride] = column[c] - (c + pad) / stride;
    }
    for (int64_t t = 0; t < s.kernel[2]; ++t) tap[t] = origin[t % stride] + t / stride;
    step = phase * stride;
    rows = std::clamp<int64_t>(kNear / (step + s.stride[1] * s.in[2]), 1, s.out[1]);
  }
};

}  // namespace tombolo
#endif

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using PF = hn::ScalableTag<float>;
using PV = hn::Vec<PF>;

template <PoolFold kFold>
HWY_INLINE PV fold_two(PV a, PV b) {
  if constexpr (kFold == PoolFold::kMax) return max_of(a, b);
  return hn::Add(a, b);
}

/// Some rows of windows: each takes `rows` of each of `depths` slices.
struct RowsOfWindows {
  int64_t count, rows, depths;
  int64_t width, slice, stride;  ///< floats of a row and a slice, rows from window to window
};

/// A line for each row of windows, the first of which begins at x: the fold down its columns, of
/// kRows numbers of a slice if that is not 0, of one slice unless kDeep.
template <PoolFold kFold, int64_t kStride, int64_t kRows, bool kDeep>
HWY_NOINLINE void combine_rows(const float* x, const RowsOfWindows& windows,
                               const PlaneLines& lines, float* line) {
  const PF f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const int64_t width = windows.width, rows = kRows != 0 ? kRows : windows.rows;
  const int64_t depths = kDeep ? windows.depths : 1, slice = windows.slice;
  const int64_t count = windows.count, down_step = windows.stride * width, step = lines.step;
  const auto inside = hn::FirstN(f, static_cast<size_t>(width % lanes));
  const auto down = [&](const float* from, auto&& load) HWY_ATTR {
    const auto of_slice = [&](const float* p) HWY_ATTR {
      PV all = load(p);
      if constexpr (kRows != 0) {
#pragma GCC unroll 8
        for (int64_t k = 1; k < kRows; ++k) all = fold_two<kFold>(all, load(p + k * width));
      } else {
        for (int64_t k = 1; k < rows; ++k) all = fold_two<kFold>(all, load(p + k * width));
      }
      return all;
    };
    PV all = of_slice(from);
    if constexpr (kDeep)
      for (int64_t q = 1; q < depths; ++q) all = fold_two<kFold>(all, of_slice(from + q * slice));
    return all;
  };
  const auto whole = [&](const float* from) HWY_ATTR {
    return down(from, [&](const float* p) HWY_ATTR { return hn::LoadU(f, p); });
  };
  // Behind the last column nothing is added.
  const auto behind_none = [&](PV some) HWY_ATTR {
    if (kFold == PoolFold::kSum) return some;
    return hn::IfThenElse(inside, some, hn::Set(f, -std::numeric_limits<float>::infinity()));
  };
  const auto part = [&](const float* from) HWY_ATTR {
    return behind_none(
        down(from, [&](const float* p) HWY_ATTR { return load_n(f, p, width % lanes); }));
  };
  float* first = line + lines.column[0];
  float* second = line + lines.column[1];
  int64_t r = 0;
  // Two windows that have all rows but one in common.
  if constexpr (kStride == 1 && kRows > 1 && !kDeep)
    for (; windows.stride == 1 && r + 2 <= count; r += 2) {
      const auto both = [&](int64_t j, auto&& load, auto&& store) HWY_ATTR {
        const float* from = x + j;
        PV all = load(from + width);
#pragma GCC unroll 8
        for (int64_t k = 2; k < kRows; ++k) all = fold_two<kFold>(all, load(from + k * width));
        store(fold_two<kFold>(load(from), all), first + j);
        store(fold_two<kFold>(all, load(from + kRows * width)), first + step + j);
      };
      int64_t j = 0;
      for (; j + lanes <= width; j += lanes)
        both(
            j, [&](const float* p) HWY_ATTR { return hn::LoadU(f, p); },
            [&](PV v, float* to) HWY_ATTR { hn::StoreU(v, f, to); });
      if (j < width)
        both(
            j, [&](const float* p) HWY_ATTR { return load_n(f, p, width % lanes); },
            [&](PV v, float* to) HWY_ATTR { hn::StoreU(behind_none(v), f, to); });
      x += 2 * width;
      first += 2 * step;
    }
  for (; r < count; ++r) {
    int64_t j = 0;
    if constexpr (kStride == 1) {
      for (; j + lanes <= width; j += lanes) hn::StoreU(whole(x + j), f, first + j);
      if (j < width) hn::StoreU(part(x + j), f, first + j);
    } else {
      const auto apart = [&](PV a, PV b) HWY_ATTR {
        hn::StoreU(hn::ConcatEven(f, b, a), f, first + j / 2);
        hn::StoreU(hn::ConcatOdd(f, b, a), f, second + j / 2);
      };
      for (; j + 2 * lanes <= width; j += 2 * lanes) apart(whole(x + j), whole(x + j + lanes));
      const PV nothing =
          hn::Set(f, kFold == PoolFold::kMax ? -std::numeric_limits<float>::infinity() : 0.0f);
      if (j + lanes < width)
        apart(whole(x + j), part(x + j + lanes));
      else if (j + lanes == width)
        apart(whole(x + j), nothing);
      else if (j < width)
        apart(part(x + j), nothing);
    }
    x += down_step;
    first += step;
    second += step;
  }
}

template <PoolFold kFold, int64_t kStride, bool kDeep>
auto rows_by_count(int64_t rows) {
  return rows == 2   ? combine_rows<kFold, kStride, 2, kDeep>
         : rows == 3 ? combine_rows<kFold, kStride, 3, kDeep>
         : rows == 5 ? combine_rows<kFold, kStride, 5, kDeep>
                     : combine_rows<kFold, kStride, 0, kDeep>;
}

/// kTaps neighbours of some lines, one line of results behind the other; sums times their factors.
template <PoolFold kFold, int64_t kTaps>
HWY_NOINLINE void combine_columns(const float* line, const PlaneLines& lines, int64_t rows,
                                  int64_t n, const float* factors, float* y) {
  const PF f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  int64_t tap[kTaps];
  for (int64_t t = 0; t < kTaps; ++t) tap[t] = lines.tap[t];
  const int64_t step = lines.step;
  const auto at = [&](int64_t j) HWY_ATTR {
    PV all = hn::LoadU(f, line + tap[0] + j);
#pragma GCC unroll 5
    for (int64_t t = 1; t < kTaps; ++t) all = fold_two<kFold>(all, hn::LoadU(f, line + tap[t] + j));
    return all;
  };
  for (int64_t r = 0; r < rows; ++r, line += step, y += n) {
    if (n < lanes) {
      PV all = at(0);
      if constexpr (kFold == PoolFold::kSum) all = hn::Mul(all, load_n(f, factors, n));
      store_n(all, f, y, n);
    } else {
      const auto whole = [&](int64_t j) HWY_ATTR {
        PV all = at(j);
        if constexpr (kFold == PoolFold::kSum) all = hn::Mul(all, hn::LoadU(f, factors + j));
        hn::StoreU(all, f, y + j);
      };
      int64_t j = 0;
      for (; j + lanes <= n; j += lanes) whole(j);
      if (j < n) whole(n - lanes);
    }
    if constexpr (kFold == PoolFold::kSum) factors += n;
  }
}

template <PoolFold kFold, int64_t kStride>
bool windows_of(const ConvGeometry& s, const PlaneLines& lines, const float* x,
                const float* factors, float* y, float* room) {
  constexpr float kNothing =
      kFold == PoolFold::kMax ? -std::numeric_limits<float>::infinity() : 0.0f;
  const auto columns_of = s.kernel[2] == 1   ? combine_columns<kFold, 1>
                          : s.kernel[2] == 2 ? combine_columns<kFold, 2>
                          : s.kernel[2] == 3 ? combine_columns<kFold, 3>
                          : s.kernel[2] == 4 ? combine_columns<kFold, 4>
                                             : combine_columns<kFold, 5>;
  const int64_t width = s.in[2], slice = s.in[1] * width;
  // Slices and rows of them in which a NaN was looked for.
  int64_t slices_seen = 0;
  for (int64_t depth = 0; depth < s.out[0]; ++depth) {
    const int64_t front = depth * s.stride[0] - s.pad[0];
    const int64_t near = std::max<int64_t>(0, front);
    const int64_t depths = std::min(s.in[0], front + s.kernel[0]) - near;
    int64_t rows_seen = 0;
    for (int64_t first = 0; first < s.out[1]; first += lines.rows) {
      const int64_t end = std::min(s.out[1], first + lines.rows);
      if constexpr (kFold == PoolFold::kMax) {
        const int64_t rows_end =
            std::min(s.in[1], (end - 1) * s.stride[1] - s.pad[1] + s.kernel[1]);
        for (int64_t d = std::max(near, slices_seen); d < near + depths && rows_seen < rows_end;
             ++d)
          if (any_nan(x + d * slice + rows_seen * width, (rows_end - rows_seen) * width))
            return false;
        rows_seen = std::max(rows_seen, rows_end);
      }
      for (int64_t r = first; r < end;) {
        const int64_t top = r * s.stride[1] - s.pad[1];
        const int64_t begin = std::max<int64_t>(0, top);
        const int64_t rows = std::min(s.in[1], top + s.kernel[1]) - begin;
        float* line = room + (r - first) * lines.step;
        if (rows <= 0 || depths <= 0) {
          for (int64_t c = 0; c < kStride; ++c)
            std::fill_n(line + lines.column[c], width / kStride + 1, kNothing);
          ++r;
          continue;
        }
        int64_t count = 1;  // those that have all their rows together
        if (rows == s.kernel[1])
          count = std::min(end - r, (s.in[1] - s.kernel[1] - top) / s.stride[1] + 1);
        const RowsOfWindows windows{count, rows, depths, width, slice, s.stride[1]};
        const auto rows_of = depths > 1 ? rows_by_count<kFold, kStride, true>(rows)
                                        : rows_by_count<kFold, kStride, false>(rows);
        rows_of(x + near * slice + begin * width, windows, lines, line);
        r += count;
      }
      const int64_t at = (depth * s.out[1] + first) * s.out[2];
      columns_of(room, lines, end - first, s.out[2],
                 kFold == PoolFold::kSum ? factors + at : nullptr, y + at);
    }
    slices_seen = near + depths;
  }
  return true;
}
template <PoolFold kFold>
int64_t plane_windows(const ConvGeometry& s, int64_t planes, const float* x, const float* factors,
                      float* y, float* room) {
  const PlaneLines lines(s);
  const int64_t in = s.in_plane(), out = s.out_plane();
  const auto plane = s.stride[2] == 1 ? windows_of<kFold, 1> : windows_of<kFold, 2>;
  for (int64_t p = 0; p < planes; ++p)
    if (!plane(s, lines, x + p * in, factors, y + p * out, room)) return p;
  return planes;
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

bool folds_planes(PoolFold fold, const ConvGeometry& s) {
  constexpr int64_t kTaps = 5;
  if ((fold != PoolFold::kMax && fold != PoolFold::kSum) || s.stride[2] > 2 || s.kernel[2] > kTaps)
    return false;
  for (int axis = 0; axis < 3; ++axis)
    if ((s.dilation[axis] != 1 && s.kernel[axis] != 1) || s.pad[axis] >= s.kernel[axis])
      return false;
  return true;
}
int64_t plane_room(const ConvGeometry& s) {
  const PlaneLines lines(s);
  return lines.rows * lines.step;
}
int64_t fold_planes(PoolFold fold, const ConvGeometry& s, int64_t planes, const float* x,
                    const float* factors, float* y, float* room) {
  using Fn = int64_t(const ConvGeometry&, int64_t, const float*, const float*, float*, float*);
  if (fold == PoolFold::kMax)
    return TOMBOLO_TARGET(Fn, plane_windows<PoolFold::kMax>)(s, planes, x, factors, y, room);
  return TOMBOLO_TARGET(Fn, plane_windows<PoolFold::kSum>)(s, planes, x, factors, y, room);
}

}  // namespace tombolo
#endif
