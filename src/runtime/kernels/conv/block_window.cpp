// Convolution of groups that a block has several of (depthwise: of one channel each) and pools over
// blocked channels: one window slides over the pixels of a block, vectors are its channels. Rows
// and columns of a window that lie in the padding are left out.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/conv/block_window.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/kernels/conv/block.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/tensor/transpose_tile.h"
#include "runtime/kernels/vec-inl.h"

#ifndef TOMBOLO_BLOCK_WINDOW
#define TOMBOLO_BLOCK_WINDOW
namespace tombolo {
namespace {

enum class Window : uint8_t { kConv, kMax, kSum };

/// Output rows [from, to) of one block.
struct WindowTask {
  const ConvGeometry& s;
  const float* x;  ///< the block: [row][column][channel]
  float* y;
  int64_t from, to;
  const float* weights = nullptr;  ///< [kernel position][input of the group][channel]
  int64_t group = 1;               ///< channels of one
  const int32_t* each = nullptr;   ///< [input of the group][channel]: where that input is
  const float* bias = nullptr;
  const float* residual = nullptr;  ///< as y
  bool clamp = false;
  float lo = 0, hi = 0;
  const float* row_counts = nullptr;
  const float* column_counts = nullptr;
  float* room = nullptr;  ///< of maxima: a row of the image with its padding
};

/// Floats of a row of the image, and of the padding that windows of a row reach.
inline int64_t max_room(const ConvGeometry& s) {
  const int64_t reached = (s.out[2] - 1) * s.stride[2] + s.extent(2);
  return std::max(s.pad[2] + s.in[2], reached) * kBlock;
}

}  // namespace
}  // namespace tombolo
#endif

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::CappedTag<float, 16>;
using V = hn::Vec<F>;

/// What of a pixel a vector of outputs takes: its own channels, one of the group that all are in,
/// or one of each of their groups.
enum class Take : uint8_t { kOwn, kOne, kEach };
using Table = decltype(hn::SetTableIndices(F(), static_cast<const int32_t*>(nullptr)));

template <Take kTake>
HWY_INLINE V take(const float* x, [[maybe_unused]] const Table& each) {
  const F f;
  if constexpr (kTake == Take::kOne) return hn::Set(f, *x);
  if constexpr (kTake == Take::kEach) return hn::TableLookupLanes(hn::LoadU(f, x), each);
  return hn::LoadU(f, x);
}

template <Window kWindow>
HWY_INLINE V combine(V sum, V v, V weight) {
  if constexpr (kWindow == Window::kConv) return hn::MulAdd(v, weight, sum);
  if constexpr (kWindow == Window::kSum) return hn::Add(sum, v);
  // A NaN stays whichever side it comes from.
  return hn::IfThenElse(hn::IsNaN(v), v, max_of(v, sum));
}

/// Outputs of one row at a time: the sums of so many leave room for a weight in 16 registers.
constexpr int kPixels = 8;

/// The sums of kPixels outputs from `column` on go to y, but for those before `from`.
template <Window kWindow>
HWY_INLINE void store_pixels(const WindowTask& t, const V (&sums)[kPixels], int64_t row,
                             int64_t column, int64_t lane, int64_t from, int64_t to) {
  const F f;
  const int64_t at = (row * t.s.out[2] + column) * kBlock + lane;
  float* const y = t.y + at;
  const float* const residual = t.residual == nullptr ? nullptr : t.residual + at;
  const bool clamp = t.clamp;
  const V low = hn::Set(f, t.lo), high = hn::Set(f, t.hi);
  if (kWindow != Window::kSum && from <= 0 && to >= kPixels) {
    // Asked once for all: with short sums, questions take as long as they do.
    V v[kPixels];
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) v[p] = sums[p];
    if (residual != nullptr)
#pragma GCC unroll 8
      for (int p = 0; p < kPixels; ++p) v[p] = hn::Add(v[p], hn::LoadU(f, residual + p * kBlock));
    if (clamp)
#pragma GCC unroll 8
      for (int p = 0; p < kPixels; ++p) v[p] = min_of(high, max_of(low, v[p]));
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) hn::StoreU(v[p], f, y + p * kBlock);
    return;
  }
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
    if (p < from || p >= to) continue;
    V v = sums[p];
    if (kWindow == Window::kSum) {
      const float n = t.row_counts[row] * t.column_counts[column + p];
      v = n == 0 ? hn::Zero(f) : hn::Div(v, hn::Set(f, n));
    }
    if (residual != nullptr) v = hn::Add(v, hn::LoadU(f, residual + p * kBlock));
    if (clamp) v = min_of(high, max_of(low, v));
    hn::StoreU(v, f, y + p * kBlock);
  }
}

/// Inputs of a row of the kernel, from `start` of a row of `width` floats on; `outside` stands for
/// those beyond.
struct Inputs {
  const float* row;
  const float* outside;
  int64_t start, width;
  template <bool kEdge>
  HWY_INLINE const float* at(int64_t offset) const {
    const int64_t i = start + offset;
    const bool inside = static_cast<uint64_t>(i) < static_cast<uint64_t>(width);
    return !kEdge || inside ? row + i : outside;
  }
};

/// Adds a row of the kernel, kKernel wide, its weights at w: each input is read once for all
/// outputs that it is a part of. Of the inputs, so many on the left and on the right are outside.
template <Take kTake, int kKernel, int kStride, bool kEdge, int kLeft, int kRight>
HWY_INLINE void add_row(V (&sums)[kPixels], const Inputs& x, const float* w, int64_t w_step,
                        const Table& each) {
  const F f;
  V weights[kKernel];
#pragma GCC unroll 8
  for (int c = 0; c < kKernel; ++c) weights[c] = hn::LoadU(f, w + c * w_step);
#pragma GCC unroll 32
  for (int i = kLeft; i < (kPixels - 1) * kStride + kKernel - kRight; ++i) {
    V v = take<kTake>(x.at<kEdge>(i * kBlock), each);
    keep_in_register(v);
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) {
      const int c = i - p * kStride;
      if (c >= 0 && c < kKernel) sums[p] = hn::MulAdd(v, weights[c], sums[p]);
    }
  }
}

/// The same of a wide kernel, by parts: a part of more columns would
/// leave no registers for the sums.
template <int kStride, bool kEdge>
HWY_INLINE void add_wide_row(V (&sums)[kPixels], Inputs x, const float* w, int64_t w_step,
                             int64_t kernel) {
  const Table none{};
  for (int64_t left = kernel; left > 0;) {
    const int64_t part = left > 8 || left == 5   ? 5
                         : left > 6 || left == 4 ? 4
                                                 : std::min<int64_t>(left, 3);
    if (part == 5)
      add_row<Take::kOwn, 5, kStride, kEdge, 0, 0>(sums, x, w, w_step, none);
    else if (part == 4)
      add_row<Take::kOwn, 4, kStride, kEdge, 0, 0>(sums, x, w, w_step, none);
    else if (part == 3)
      add_row<Take::kOwn, 3, kStride, kEdge, 0, 0>(sums, x, w, w_step, none);
    else if (part == 2)
      add_row<Take::kOwn, 2, kStride, kEdge, 0, 0>(sums, x, w, w_step, none);
    else
      add_row<Take::kOwn, 1, kStride, kEdge, 0, 0>(sums, x, w, w_step, none);
    left -= part;
    x.start += part * kBlock;
    w += part * w_step;
  }
}

/// The same for any width, stride and dilation, and for pools.
template <Window kWindow, Take kTake, bool kEdge>
HWY_INLINE void add_any_row(V (&sums)[kPixels], Inputs x, const float* w, int64_t w_step,
                            int64_t kernel, int64_t step, int64_t across, const Table& each) {
  const F f;
#if HWY_TARGET != HWY_SSE4
  if constexpr (kWindow == Window::kConv && kTake == Take::kOwn)
    if (kernel > 3 && across == kBlock && (step == kBlock || step == 2 * kBlock)) {
      const bool inside =
          !kEdge ||
          (x.start >= 0 && x.start + (kPixels - 1) * step + (kernel - 1) * kBlock < x.width);
      if (step == kBlock)
        return inside ? add_wide_row<1, false>(sums, x, w, w_step, kernel)
                      : add_wide_row<1, true>(sums, x, w, w_step, kernel);
      return inside ? add_wide_row<2, false>(sums, x, w, w_step, kernel)
                    : add_wide_row<2, true>(sums, x, w, w_step, kernel);
    }
#endif
  for (int64_t c = 0; c < kernel; ++c, x.start += across) {
    V weight = hn::Zero(f);
    if (kWindow == Window::kConv) weight = hn::LoadU(f, w + c * w_step);
    if (!kEdge || (x.start >= 0 && x.start + (kPixels - 1) * step < x.width)) {
#pragma GCC unroll 8
      for (int p = 0; p < kPixels; ++p)
        sums[p] = combine<kWindow>(sums[p], take<kTake>(x.row + x.start + p * step, each), weight);
    } else {
#pragma GCC unroll 8
      for (int p = 0; p < kPixels; ++p)
        sums[p] = combine<kWindow>(sums[p], take<kTake>(x.at<kEdge>(p * step), each), weight);
    }
  }
}

/// Of kPixels outputs from `column` on those in [from, to), of the kernel's rows [r0, r1). Eight
/// sums that wait for nothing cost less than one that waits for itself, so all are formed, also at
/// an edge of the image, where what the padding would hold is read for inputs outside (kEdge) or
/// they are left out (kLeft and kRight of them). kKernel is the kernel's width where the dilation
/// is 1, 0 for any.
template <Window kWindow, Take kTake, int kKernel, int kStride, bool kEdge, int kLeft = 0,
          int kRight = 0>
void pixels(const WindowTask& t, int64_t row, int64_t column, int64_t from, int64_t to, int64_t r0,
            int64_t r1) {
  const F f;
  const ConvGeometry& s = t.s;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const int64_t step = s.stride[2] * kBlock, across = s.dilation[2] * kBlock;
  const int64_t width = s.in[2] * kBlock, start = (column * s.stride[2] - s.pad[2]) * kBlock;
  const int64_t kernel = s.kernel[2], down = s.dilation[1] * width;
  const int64_t first = row * s.stride[1] - s.pad[1] + r0 * s.dilation[1];
  const float none = kWindow == Window::kMax ? -std::numeric_limits<float>::infinity() : 0.0f;
  HWY_ALIGN float outside[HWY_LANES(float)];
  if (kEdge) hn::Store(hn::Set(f, none), f, outside);
  for (int64_t lane = 0; lane < kBlock; lane += lanes) {
    V sums[kPixels];
    const V begin = kWindow == Window::kConv && t.bias != nullptr ? hn::LoadU(f, t.bias + lane)
                                                                  : hn::Set(f, none);
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) sums[p] = begin;
    // One input channel of the groups after the other.
    const int64_t group = kTake == Take::kOwn ? 1 : t.group, w_step = group * kBlock;
    for (int64_t i = 0; i < group; ++i) {
      const int64_t from_lane = kTake == Take::kOne ? lane / group * group + i : lane;
      Inputs x{t.x + first * width + from_lane, outside, start, width};
      const float* w = kWindow == Window::kConv
                           ? t.weights + (r0 * kernel * group + i) * kBlock + lane
                           : nullptr;
      Table each{};
      if constexpr (kTake == Take::kEach) each = hn::SetTableIndices(f, t.each + i * kBlock);
      int64_t r = r0;
      if constexpr (kKernel == 3 && !kEdge)
        if (r1 - r0 == kKernel) {
#pragma GCC unroll 3
          for (int k = 0; k < kKernel; ++k) {
            add_row<kTake, kKernel, kStride, kEdge, kLeft, kRight>(sums, x, w, w_step, each);
            x.row += down;
            w += kKernel * w_step;
          }
          r = r1;
        }
      for (; r < r1; ++r) {
        if constexpr (kKernel > 0)
          add_row<kTake, kKernel, kStride, kEdge, kLeft, kRight>(sums, x, w, w_step, each);
        else
          add_any_row<kWindow, kTake, kEdge>(sums, x, w, w_step, kernel, step, across, each);
        x.row += down;
        if (kWindow == Window::kConv) w += kernel * w_step;
      }
    }
    store_pixels<kWindow>(t, sums, row, column, lane, from, to);
  }
}

using PixelsFn = void(const WindowTask&, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);

/// For outputs whose windows reach so far outside. What is usual has a kernel of its own: in small
/// images most outputs are at an edge.
template <Window kWindow, Take kTake, int kKernel, int kStride>
PixelsFn* pixels_of(int64_t left, int64_t right) {
  left = std::max<int64_t>(0, left);
  right = std::max<int64_t>(0, right);
  if constexpr (kKernel > 0) {
    // Rows of three to five pixels reach far outside on the right.
    constexpr int kPad = kKernel / 2, kMost = kKernel == 3 && kTake == Take::kOwn ? 6 : 3;
    static constexpr auto some = []<int... kRight>(std::integer_sequence<int, kRight...>) {
      return std::array<std::array<PixelsFn*, kMost + 1>, 2>{
          {{&pixels<kWindow, kTake, kKernel, kStride, false, 0, kRight>...},
           {&pixels<kWindow, kTake, kKernel, kStride, false, kPad, kRight>...}}};
    }
    (std::make_integer_sequence<int, kMost + 1>());
    if ((left == 0 || left == kPad) && right <= kMost)
      return some[left > 0 ? 1 : 0][static_cast<size_t>(right)];
  } else if (left == 0 && right == 0) {
    return &pixels<kWindow, kTake, kKernel, kStride, false>;
  }
  return &pixels<kWindow, kTake, kKernel, kStride, true>;
}

template <Window kWindow, Take kTake = Take::kOwn, int kKernel = 0, int kStride = 0>
void window_rows(const WindowTask& t) {
  const ConvGeometry& s = t.s;
  const int64_t span = (kPixels - 1) * s.stride[2] + s.extent(2);
  for (int64_t row = t.from; row < t.to; ++row) {
    const auto [r0, r1] = positions_inside(s, 1, row);
    for (int64_t done = 0; done < s.out[2]; done += kPixels) {
      // The last ones begin further to the left, where fewer windows reach outside.
      const int64_t column = std::max<int64_t>(0, std::min(done, s.out[2] - kPixels));
      const int64_t to = std::min<int64_t>(kPixels, s.out[2]);
      const int64_t start = column * s.stride[2] - s.pad[2];
      pixels_of<kWindow, kTake, kKernel, kStride>(-start, start + span - s.in[2])(
          t, row, column, done - column, to, r0, r1);
    }
  }
}

template <Take kTake>
void conv_rows_of(const WindowTask& t) {
#if HWY_TARGET != HWY_SSE4  // processors of long ago: not worth a third of this file's compilation
  const int64_t kernel = t.s.dilation[2] == 1 ? t.s.kernel[2] : 0, stride = t.s.stride[2];
  if (kernel == 3 && stride == 1) return window_rows<Window::kConv, kTake, 3, 1>(t);
  if (kernel == 3 && stride == 2) return window_rows<Window::kConv, kTake, 3, 2>(t);
  if constexpr (kTake == Take::kOwn) {
    if (kernel == 5 && stride == 1) return window_rows<Window::kConv, kTake, 5, 1>(t);
    if (kernel == 5 && stride == 2) return window_rows<Window::kConv, kTake, 5, 2>(t);
  }
#endif
  window_rows<Window::kConv, kTake>(t);
}
void conv_rows(const WindowTask& t) {
  if (t.group == 1) return conv_rows_of<Take::kOwn>(t);
  if (t.group < static_cast<int64_t>(hn::Lanes(F()))) return conv_rows_of<Take::kEach>(t);
  conv_rows_of<Take::kOne>(t);
}
/// y[i] = the largest of x[r * down + i] for r < rows (kRows where that is not 0), for i < n, whole
/// vectors. False: maybe one of them is NaN, and what is at y is nothing.
template <int kRows>
bool max_down(const float* x, int64_t down, int64_t rows, int64_t n, float* y) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  // A sum is NaN where one of its terms is, or where it has infinities of both signs.
  V sum0 = hn::Zero(f), sum1 = sum0;
  const auto largest = [&](int64_t i, V & sum) HWY_ATTR __attribute__((always_inline)) {
    V most = hn::LoadU(f, x + i);
    sum = hn::Add(sum, most);
#pragma GCC unroll 3
    for (int64_t r = 1; r < (kRows > 0 ? kRows : rows); ++r) {
      const V v = hn::LoadU(f, x + r * down + i);
      sum = hn::Add(sum, v);
      most = max_of(v, most);
    }
    hn::StoreU(most, f, y + i);
  };
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    largest(i, sum0);
    largest(i + lanes, sum1);
  }
  for (; i < n; i += lanes) largest(i, sum0);
  return hn::AllFalse(f, hn::IsNaN(hn::Add(sum0, sum1)));
}

/// Outputs of one row: the largest of `kernel` (kKernel where that is not 0) inputs `across` floats
/// apart, `step` floats from output to output.
template <int kKernel>
void max_across(const float* x, int64_t step, int64_t across, int64_t kernel, int64_t outputs,
                float* y) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  for (int64_t o = 0; o < outputs; ++o, x += step, y += kBlock)
#pragma GCC unroll 2
    for (int64_t lane = 0; lane < kBlock; lane += lanes) {
      V most = hn::LoadU(f, x + lane);
#pragma GCC unroll 3
      for (int64_t c = 1; c < (kKernel > 0 ? kKernel : kernel); ++c)
        most = max_of(hn::LoadU(f, x + c * across + lane), most);
      hn::StoreU(most, f, y + lane);
    }
}

/// The columns of a row of windows first, then what lies side by side: no input is looked at again
/// for the next output of a row. Where there may be NaN the slow way takes care of it.
void max_rows(const WindowTask& t) {
  const ConvGeometry& s = t.s;
  const int64_t kernel = s.kernel[2], step = s.stride[2] * kBlock, across = s.dilation[2] * kBlock;
  const int64_t width = s.in[2] * kBlock, left = s.pad[2] * kBlock;
  const int64_t right = max_room(s) - left - width;
  if (t.room == nullptr) return window_rows<Window::kMax>(t);
  const float none = -std::numeric_limits<float>::infinity();
  float* const inside = t.room + left;
  std::fill_n(t.room, left, none);
  std::fill_n(inside + width, right, none);
  for (int64_t row = t.from; row < t.to; ++row) {
    const auto [r0, r1] = positions_inside(s, 1, row);
    const int64_t rows = r1 - r0, down = s.dilation[1] * width;
    const float* const x = t.x + (row * s.stride[1] - s.pad[1] + r0 * s.dilation[1]) * width;
    bool numbers = true;
    if (rows <= 0)
      std::fill_n(inside, width, none);
    else
      numbers = (rows == 3   ? max_down<3>
                 : rows == 2 ? max_down<2>
                             : max_down<0>)(x, down, rows, width, inside);
    if (!numbers) {
      WindowTask slow = t;
      slow.from = row;
      slow.to = row + 1;
      window_rows<Window::kMax>(slow);
      continue;
    }
    (kernel == 3 ? max_across<3>
     : kernel == 2
         ? max_across<2>
         : max_across<0>)(t.room, step, across, kernel, s.out[2], t.y + row * s.out[2] * kBlock);
  }
}
void sum_rows(const WindowTask& t) { window_rows<Window::kSum>(t); }

template <Window kWindow>
void global_pool_of(const float* x, int64_t n, float* y) {
  const F f;
  constexpr int kLanes = static_cast<int>(HWY_LANES(float)) < kBlock ? HWY_LANES(float) : kBlock;
  constexpr int kVectors = kBlock / kLanes, kSums = kVectors > 2 ? 2 : 4;
  const V start =
      hn::Set(f, kWindow == Window::kMax ? -std::numeric_limits<float>::infinity() : 0.0f);
  V sums[kSums][kVectors];
  for (auto& sum : sums)
    for (V& v : sum) v = start;
  // A pixel's channels together: each line is read once.
  const auto add = [&](int s, int64_t i) HWY_ATTR __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      sums[s][v] = combine<kWindow>(sums[s][v], hn::LoadU(f, x + i * kBlock + v * kLanes), start);
  };
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums)
#pragma GCC unroll 4
    for (int s = 0; s < kSums; ++s) add(s, i + s);
  for (; i < n; ++i) add(0, i);
  for (int v = 0; v < kVectors; ++v) {
    V all = sums[0][v];
    for (int s = 1; s < kSums; ++s) all = combine<kWindow>(all, sums[s][v], start);
    if (kWindow == Window::kSum) all = hn::Div(all, hn::Set(f, static_cast<float>(n)));
    hn::StoreU(all, f, y + v * kLanes);
  }
}
void global_pool(const float* x, int64_t n, bool average, float* y) {
  (average ? global_pool_of<Window::kSum> : global_pool_of<Window::kMax>)(x, n, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {
namespace {

using TaskFn = void(const WindowTask&);

/// run(block, from, to) over rows of `planes` blocks: bands of rows of all blocks, one after the
/// other, or one image after the other, as the convolutions before and behind share them out.
template <typename Run>
void share_rows(int64_t planes, const ConvGeometry& s, Run&& run) {
  const int64_t row_work = s.out[2] * s.depth() * kBlock;
  const int64_t most = thread_count() == 1 ? 1 : 4 * thread_count();
  // Of small images whole blocks: a processor that fetches ahead reaches into what another writes.
  const bool whole = s.in[1] <= 14 && planes >= most;
  const int64_t parts = whole ? 1 : std::clamp<int64_t>(s.out[1] / 7, 1, most);
  const int64_t weights = s.groups * s.depth() * s.out_channels;
  const bool apart = images_apart(s.batch, weights, planes / std::max<int64_t>(1, s.batch) * parts);
  parallel(planes * parts, std::max<int64_t>(1, 131072 * parts / (s.out[1] * row_work)),
           [&](int64_t begin, int64_t end) {
             for (int64_t task = begin; task < end; ++task) {
               const int64_t part = apart ? task % parts : task / planes;
               run(apart ? task / parts : task % planes, s.out[1] * part / parts,
                   s.out[1] * (part + 1) / parts);
             }
           });
}

/// The shape of an image that is only these rows, along `axis`, of its input and its output.
ConvGeometry of_rows(ConvGeometry s, BlockRows in, BlockRows out, int axis = 1) {
  s.pad[axis] += in.first - out.first * s.stride[axis];
  s.in[axis] = in.count;
  s.out[axis] = out.count;
  return s;
}

/// Output rows [from, to) of a block of an image of shape `s`, which begins at x and y.
void run_groups(const ConvGeometry& s, const float* weights, const ConvEpilogue& epilogue,
                int64_t block, const float* x, float* y, int64_t from, int64_t to) {
  const auto group = static_cast<int32_t>(s.in_channels);
  alignas(64) int32_t each[kBlock / 2 * kBlock];
  if (group > 1)
    for (int32_t i = 0; i < group; ++i)
      for (int32_t c = 0; c < kBlock; ++c) each[i * kBlock + c] = c / group * group + i;
  const Activation& act = epilogue.activation;
  WindowTask task{s, x, y, from, to};
  task.weights = weights + block * s.depth() * kBlock;
  task.group = group;
  task.each = each;
  if (epilogue.bias != nullptr) task.bias = epilogue.bias + block * kBlock;
  task.residual = epilogue.residual;
  task.clamp = act.kind == Activation::Kind::kClamp;
  task.lo = act.alpha;
  task.hi = act.beta;
  TOMBOLO_TARGET(TaskFn, conv_rows).get()(task);
  const int64_t row = s.out[2] * kBlock;
  if (!act.tiled()) apply_activation(act, y + from * row, (to - from) * row);
}

}  // namespace

void run_block_group_rows(const BlockConvPlan& plan, const float* packed,
                          const ConvEpilogue& epilogue, int64_t block, BlockRows in, const float* x,
                          BlockRows out, float* y, int axis) {
  const ConvGeometry s = of_rows(plan.shape, in, out, axis);
  run_groups(s, packed, epilogue, block, x, y, 0, s.out[1]);
}

void run_block_groups(const BlockConvPlan& plan, const float* x, const float* packed, float* y,
                      const ConvEpilogue& epilogue, float*) {
  const ConvGeometry& s = plan.shape;
  const int64_t blocks = blocks_of(s.groups * s.out_channels), in = s.in_plane() * kBlock,
                out = s.out_plane() * kBlock;
  share_rows(s.batch * blocks, s, [&](int64_t plane, int64_t from, int64_t to) {
    ConvEpilogue part = epilogue;
    if (part.residual != nullptr) part.residual += plane * out;
    run_groups(s, packed, part, plane % blocks, x + plane * in, y + plane * out, from, to);
  });
}

void run_block_pool_rows(const BlockPool& pool, BlockRows in, const float* x, BlockRows out,
                         float* y) {
  const ConvGeometry s = of_rows(pool.shape, in, out);
  if (!pool.average) {
    WindowTask task{s, x, y, 0, out.count};
    const int64_t apart = 3 * s.taps() * s.out[2];  // a maximum that minds NaN takes three steps
    const int64_t in_turn = (2 * s.kernel[1] - 1) * s.in[2] + (s.kernel[2] - 1) * s.out[2];
    if (in_turn <= apart) task.room = thread_floats(2, static_cast<size_t>(max_room(s)));
    return TOMBOLO_TARGET(TaskFn, max_rows)(task);
  }
  const auto run = [&](const ConvGeometry& shape, const float* from, float* to, int64_t rows,
                       const float* row_counts, const float* column_counts) {
    WindowTask task{shape, from, to, 0, rows};
    task.row_counts = row_counts;
    task.column_counts = column_counts;
    TOMBOLO_TARGET(TaskFn, sum_rows)(task);
  };
  const float* const rows = pool.row_counts.data() + out.first;
  const float* const columns = pool.column_counts.data();
  // Large windows: the columns of a row of them first, then what lies side by side.
  const int64_t each = s.taps() * s.out[2];
  const int64_t both = s.kernel[1] * s.in[2] + s.kernel[2] * s.out[2];
  if (2 * both > each) return run(s, x, y, out.count, rows, columns);
  ConvGeometry down = s, along = s;
  down.kernel[2] = down.stride[2] = down.dilation[2] = along.kernel[1] = along.stride[1] =
      along.dilation[1] = 1;
  down.pad[2] = along.pad[1] = 0;
  down.out[2] = s.in[2];
  down.out[1] = along.in[1] = along.out[1] = 1;
  float* const room = thread_floats(2, static_cast<size_t>(s.in[2] * (kBlock + 1)));
  float* const ones = room + s.in[2] * kBlock;
  std::fill_n(ones, s.in[2], 1.0f);
  for (int64_t r = 0; r < out.count; ++r) {
    down.pad[1] = s.pad[1] - r * s.stride[1];
    run(down, x, room, 1, ones, ones);
    run(along, room, y + r * s.out[2] * kBlock, 1, rows + r, columns);
  }
}

void run_block_pool(const BlockPool& pool, const float* x, float* y) {
  const ConvGeometry& s = pool.shape;
  const int64_t in = s.in_plane() * kBlock, out = s.out_plane() * kBlock;
  share_rows(s.batch * blocks_of(s.groups), s, [&](int64_t plane, int64_t from, int64_t to) {
    run_block_pool_rows(pool, {0, s.in[1]}, x + plane * in, {from, to - from},
                        y + plane * out + from * s.out[2] * kBlock);
  });
}

void run_block_global_pool(const float* x, int64_t planes, int64_t pixels, bool average, float* y) {
  auto* const fn = TOMBOLO_TARGET(void(const float*, int64_t, bool, float*), global_pool).get();
  parallel(planes, std::max<int64_t>(1, 1024 / pixels), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      fn(x + p * pixels * kBlock, pixels, average, y + p * kBlock);
  });
}

void block_channels(const float* x, int64_t batch, int64_t channels, int64_t plane, float* y) {
  constexpr int64_t kRun = 64;
  const int64_t blocks = blocks_of(channels), runs = (plane + kRun - 1) / kRun;
  parallel(batch * blocks * runs, 16, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t block = task / runs % blocks, n = task / runs / blocks;
      const int64_t at = task % runs * kRun, count = std::min(kRun, plane - at);
      const int64_t rows = std::min(kBlock, channels - block * kBlock);
      float* to = y + (task / runs * plane + at) * kBlock;
      if (rows < kBlock) std::fill_n(to, count * kBlock, 0.0f);
      transpose_tile(
          reinterpret_cast<const std::byte*>(x + (n * channels + block * kBlock) * plane + at),
          plane, reinterpret_cast<std::byte*>(to), kBlock, rows, count, 4);
    }
  });
}

void unblock_channels(const float* x, int64_t batch, int64_t channels, int64_t plane, float* y) {
  constexpr int64_t kRun = 64;
  const int64_t blocks = blocks_of(channels), runs = (plane + kRun - 1) / kRun;
  parallel(batch * blocks * runs, 16, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t block = task / runs % blocks, n = task / runs / blocks;
      const int64_t at = task % runs * kRun, count = std::min(kRun, plane - at);
      transpose_tile(reinterpret_cast<const std::byte*>(x + (task / runs * plane + at) * kBlock),
                     kBlock,
                     reinterpret_cast<std::byte*>(y + (n * channels + block * kBlock) * plane + at),
                     plane, count, std::min(kBlock, channels - block * kBlock), 4);
    }
  });
}

}  // namespace tombolo
#endif
