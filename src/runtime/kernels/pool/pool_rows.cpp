#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/pool/pool_rows.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <type_traits>
#include <vector>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/pool/pool_rows.h"
#include "runtime/kernels/tensor/transpose_tile.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <PoolFold kFold, class V>
HWY_INLINE V first_of(V x) {
  if constexpr (kFold == PoolFold::kSumSquare) return hn::Mul(x, x);
  if constexpr (kFold == PoolFold::kSumMagnitude) return hn::Abs(x);
  return x;
}
template <PoolFold kFold, bool kNumbers, class D, class V>
HWY_INLINE V fold_in(D, V sum, V x) {
  if constexpr (kFold == PoolFold::kMax) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>() && !kNumbers)
      return hn::IfThenElse(hn::Or(hn::IsNaN(sum), hn::Lt(x, sum)), sum, x);
    else
      return max_of(sum, x);
  }
  if constexpr (kFold == PoolFold::kSum) return hn::Add(sum, x);
  if constexpr (kFold == PoolFold::kSumSquare) return hn::MulAdd(x, x, sum);
  if constexpr (kFold == PoolFold::kSumMagnitude) return hn::Add(sum, hn::Abs(x));
}

/// one(i) for vectors that cover [0, n): whole ones, the last of which reaches back.
template <typename One>
HWY_INLINE void cover(int64_t n, int64_t lanes, One&& one) {
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) one(i);
  if (i < n) one(n - lanes);
}

/// The rows of a window: `rows` of each of `depths`. Known numbers of rows need no loop.
template <PoolFold kFold, bool kNumbers, int kRows, typename T>
HWY_INLINE void fold_window(const T* first, int64_t row_step, int64_t many, int64_t depth_step,
                            int64_t depths, int64_t width, T* line) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t rows = kRows != 0 ? kRows : many;
  const auto window = [&](const T* from, auto&& load) HWY_ATTR {
    V sum = first_of<kFold>(load(from));
    for (int64_t k = 1; k < rows; ++k)
      sum = fold_in<kFold, kNumbers>(d, sum, load(from + k * row_step));
    for (int64_t q = 1; q < depths; ++q)
      for (int64_t k = 0; k < rows; ++k)
        sum = fold_in<kFold, kNumbers>(d, sum, load(from + q * depth_step + k * row_step));
    return sum;
  };
  if (width >= lanes)
    cover(width, lanes, [&](int64_t i) HWY_ATTR {
      const auto whole = [&](const T* from) HWY_ATTR { return hn::LoadU(d, from); };
      hn::StoreU(window(first + i, whole), d, line + i);
    });
  else
    store_n(window(first, [&](const T* from) HWY_ATTR { return load_n(d, from, width); }), d, line,
            width);
}

template <PoolFold kFold, bool kNumbers, typename T>
void rows_of(const T* x, const PoolWindows& s, T empty, T* lines) {
  const int64_t slice = s.in_rows * s.width;
  for (int64_t r = 0; r < s.rows; ++r, lines += s.step) {
    // The taps that lie inside, in either direction.
    const auto inside = [](int64_t first, int64_t step, int64_t count, int64_t end, int64_t& low,
                           int64_t& high) {
      if (first >= 0 && first + (count - 1) * step < end) {  // without a division
        low = 0;
        high = count;
        return;
      }
      low = first >= 0 ? 0 : (-first + step - 1) / step;
      high = end <= first ? 0 : (end - 1 - first) / step + 1;
      if (high > count) high = count;
    };
    const int64_t first_row = r * s.stride - s.pad;
    int64_t low, high, near, far;
    inside(first_row, s.dilation, s.taps, s.in_rows, low, high);
    inside(s.first_depth, s.depth_step, s.depths, s.in_depths, near, far);
    if (low >= high || near >= far) {
      for (int64_t i = 0; i < s.width; ++i) lines[i] = empty;
      continue;
    }
    const T* first = x + (s.first_depth + near * s.depth_step) * slice +
                     (first_row + low * s.dilation) * s.width;
    const int64_t row_step = s.dilation * s.width, depth_step = s.depth_step * slice;
    const int64_t rows = high - low, depths = far - near;
    const auto fold = rows == 3   ? fold_window<kFold, kNumbers, 3, T>
                      : rows == 2 ? fold_window<kFold, kNumbers, 2, T>
                      : rows == 5 ? fold_window<kFold, kNumbers, 5, T>
                                  : fold_window<kFold, kNumbers, 0, T>;
    fold(first, row_step, rows, depth_step, depths, s.width, lines);
  }
}

/// Neighbours that fill vectors themselves: four sums that take turns.
template <PoolFold kFold, bool kNumbers, typename T>
HWY_INLINE T long_window(const T* x, int64_t taps) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto s0 = hn::LoadU(d, x), s1 = hn::LoadU(d, x + lanes);
  auto s2 = hn::LoadU(d, x + 2 * lanes), s3 = hn::LoadU(d, x + 3 * lanes);
  int64_t k = 4 * lanes;
  for (; k + 4 * lanes <= taps; k += 4 * lanes) {
    s0 = fold_in<kFold, kNumbers>(d, s0, hn::LoadU(d, x + k));
    s1 = fold_in<kFold, kNumbers>(d, s1, hn::LoadU(d, x + k + lanes));
    s2 = fold_in<kFold, kNumbers>(d, s2, hn::LoadU(d, x + k + 2 * lanes));
    s3 = fold_in<kFold, kNumbers>(d, s3, hn::LoadU(d, x + k + 3 * lanes));
  }
  for (; k + lanes <= taps; k += lanes) s0 = fold_in<kFold, kNumbers>(d, s0, hn::LoadU(d, x + k));
  s0 = fold_in<kFold, kNumbers>(d, fold_in<kFold, kNumbers>(d, s0, s1),
                                fold_in<kFold, kNumbers>(d, s2, s3));
  HWY_ALIGN T all[HWY_LANES(T)];
  hn::Store(s0, d, all);
  T sum = all[0];
  const auto fold = [&](T value) {
    if constexpr (kFold == PoolFold::kMax)
      sum = sum != sum || value < sum ? sum : value;
    else
      sum = static_cast<T>(sum + value);
  };
  for (int64_t i = 1; i < lanes; ++i) fold(all[i]);
  for (; k < taps; ++k) fold(x[k]);
  return sum;
}

/// out[i] = sum_at(i), the results from i on, times their factors if there are any, for i < n.
template <class D, typename SumAt, typename T = hn::TFromD<D>>
HWY_INLINE void give_line(D d, int64_t n, const float* factors, T* out, SumAt&& sum_at) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (n >= lanes) {
    cover(n, lanes, [&](int64_t i) HWY_ATTR {
      auto sum = sum_at(i);
      if constexpr (std::is_same_v<T, float>)
        if (factors != nullptr) sum = hn::Mul(sum, hn::LoadU(d, factors + i));
      hn::StoreU(sum, d, out + i);
    });
    return;
  }
  auto sum = sum_at(0);
  if constexpr (std::is_same_v<T, float>)
    if (factors != nullptr) sum = hn::Mul(sum, load_n(d, factors, n));
  store_n(sum, d, out, n);
}

template <PoolFold kFold, bool kNumbers, int kTaps, typename T>
HWY_INLINE void one_line(const T* x, const PoolLines& s, const float* factors, T* out) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t taps = kTaps != 0 ? kTaps : s.taps, dilation = s.dilation, n = s.n;
  const auto next_to = [&](int64_t i) HWY_ATTR {
    V sum = hn::LoadU(d, x + i);
    for (int64_t k = 1; k < taps; ++k)
      sum = fold_in<kFold, kNumbers>(d, sum, hn::LoadU(d, x + i + k * dilation));
    return sum;
  };
  // Even and odd elements apart, two taps at a time.
  const auto every_other = [&](int64_t i) HWY_ATTR {
    V sum = hn::Zero(d);
    if constexpr (sizeof(T) == 4)
      for (int64_t k = 0; k < taps; ++k) {
        const T* from = x + 2 * i + k * dilation;
        const V low = hn::LoadU(d, from), high = hn::LoadU(d, from + lanes);
        const V value = hn::ConcatEven(d, high, low);
        sum = k == 0 ? value : fold_in<kFold, kNumbers>(d, sum, value);
        if (k + 1 < taps && dilation == 1) {
          sum = fold_in<kFold, kNumbers>(d, sum, hn::ConcatOdd(d, high, low));
          ++k;
        }
      }
    return sum;
  };
  if (s.pixel > 1) {  // whole vectors, wherever they are
    const int64_t pixel = s.pixel, step = s.stride * pixel, down = dilation * pixel;
    for (int64_t p = 0; p * pixel < n; ++p)
      for (int64_t lane = 0; lane < pixel; lane += lanes) {
        const T* from = x + p * step + lane;
        V sum = hn::LoadU(d, from);
        for (int64_t k = 1; k < taps; ++k)
          sum = fold_in<kFold, kNumbers>(d, sum, hn::LoadU(d, from + k * down));
        if constexpr (std::is_same_v<T, float>)
          if (factors != nullptr) sum = hn::Mul(sum, hn::Set(d, factors[p]));
        hn::StoreU(sum, d, out + p * pixel + lane);
      }
    return;
  }
  if (kTaps == 0 && dilation == 1 && taps >= 4 * lanes && (n < lanes || s.stride > 2)) {
    for (int64_t i = 0; i < n; ++i) {
      out[i] = long_window<kFold, kNumbers>(x + i * s.stride, taps);
      if constexpr (std::is_same_v<T, float>)
        if (factors != nullptr) out[i] *= factors[i];
    }
    return;
  }
  if (s.stride == 1) return give_line(d, n, factors, out, next_to);
  if (sizeof(T) == 4 && s.stride == 2) return give_line(d, n, factors, out, every_other);
  for (int64_t i = 0; i < n; ++i) {
    T sum = x[i * s.stride];
    for (int64_t k = 1; k < taps; ++k) {
      const T value = x[i * s.stride + k * dilation];
      if constexpr (kFold == PoolFold::kMax)
        sum = sum != sum || value < sum ? sum : value;
      else
        sum = static_cast<T>(sum + value);
    }
    if constexpr (std::is_same_v<T, float>)
      if (factors != nullptr) sum *= factors[i];
    out[i] = sum;
  }
}

/// Windows three or four numbers apart: the numbers of all windows' first places are one vector,
/// and so on. Rows that do not fill one have shorter ones, as no more than two vectors may be read
/// beyond them.
template <PoolFold kFold, bool kNumbers, int kStride, class D, typename T = hn::TFromD<D>>
HWY_INLINE void every_few(D d, const T* x, const PoolLines& s, const float* factors, T* out) {
  using V = hn::Vec<D>;
  const auto sum_at = [&](int64_t i) HWY_ATTR {
    V sum = hn::Zero(d);
    for (int64_t k = 0; k < s.taps; k += kStride) {
      const T* const from = x + i * kStride + k;
      V of[4];
      if constexpr (kStride == 3)
        hn::LoadInterleaved3(d, from, of[0], of[1], of[2]);
      else
        hn::LoadInterleaved4(d, from, of[0], of[1], of[2], of[3]);
      sum = k == 0 ? of[0] : fold_in<kFold, kNumbers>(d, sum, of[0]);
#pragma GCC unroll 4
      for (int c = 1; c < kStride; ++c)
        if (k + c < s.taps) sum = fold_in<kFold, kNumbers>(d, sum, of[c]);
    }
    return sum;
  };
  give_line(d, s.n, factors, out, sum_at);
}
template <PoolFold kFold, bool kNumbers, typename T>
HWY_INLINE void lines_of_every_few(const T* x, const PoolLines& s, T* out) {
  constexpr int64_t kHalf = HWY_LANES(T) / 2;
  for (int64_t r = 0; r < s.rows; ++r, x += s.step, out += s.n) {
    const float* const factors = s.factors == nullptr ? nullptr : s.factors + r * s.n;
    const auto with = [&](auto d) HWY_ATTR {
      if (s.stride == 3)
        every_few<kFold, kNumbers, 3>(d, x, s, factors, out);
      else
        every_few<kFold, kNumbers, 4>(d, x, s, factors, out);
    };
    if (s.n > kHalf)
      with(hn::ScalableTag<T>());
    else
      with(hn::CappedTag<T, static_cast<size_t>(kHalf)>());
  }
}

/// to[i] = from[i] and from[i + by] folded, for i < n; in whole vectors.
template <PoolFold kFold, bool kNumbers, typename T>
HWY_INLINE void fold_shifted(const T* from, const T* with, int64_t n, T* to) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes)
    hn::StoreU(fold_in<kFold, kNumbers>(d, hn::LoadU(d, from + i), hn::LoadU(d, with + i)), d,
               to + i);
}

/// Windows of many neighbours, from those of half as many: of twice as many in each round.
template <PoolFold kFold, bool kNumbers, typename T>
void doubled_line(const T* x, const PoolLines& s, int64_t results, const float* factors,
                  std::vector<T>& room, T* out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t unit = s.pixel;
  const int64_t starts = (results - 1) * s.stride + 1;  // where windows might begin
  const int64_t span = (starts + s.taps) * unit + 2 * lanes;
  room.resize(static_cast<size_t>(2 * span));
  T *const doubled = room.data(), *const all = doubled + span;
  // `from` has windows of `taps`; some of those make up all, of which `done` neighbours are.
  const T* from = x;
  int64_t taps = 1, done = 0;
  const auto add = [&] {
    const T* with = from + done * unit;
    if (done == 0)
      std::copy_n(with, starts * unit, all);
    else
      fold_shifted<kFold, kNumbers>(all, with, starts * unit, all);
    done += taps;
  };
  if (kFold == PoolFold::kSum && s.taps % 2 != 0) add();
  while (2 * taps <= s.taps) {
    const int64_t left = (starts + s.taps - 2 * taps) * unit;
    fold_shifted<kFold, kNumbers>(from, from + taps * unit, left, doubled);
    from = doubled;
    taps *= 2;
    if (kFold == PoolFold::kSum && (s.taps & taps) != 0) add();
  }
  // The greatest may be looked at twice.
  if (kFold == PoolFold::kMax)
    fold_shifted<kFold, kNumbers>(from, from + (s.taps - taps) * unit, starts * unit, all);
  if (s.stride == 1)
    std::copy_n(all, results * unit, out);
  else
    for (int64_t i = 0; i < results; ++i)
      std::copy_n(all + i * s.stride * unit, unit, out + i * unit);
  if constexpr (std::is_same_v<T, float>) {
    if (factors == nullptr) return;
    if (unit == 1)
      for (int64_t i = 0; i < results; ++i) out[i] *= factors[i];
    else
      for (int64_t i = 0; i < results; ++i)
        for (int64_t j = 0; j < unit; ++j) out[i * unit + j] *= factors[i];
  }
}
template <PoolFold kFold, bool kNumbers, typename T>
void doubled_lines(const T* x, const PoolLines& s, T* out) {
  constexpr int64_t kNear = 4096;  // numbers at a time, unless one window has more
  const int64_t results = s.n / s.pixel;
  const int64_t some = std::max<int64_t>(1, (kNear / s.pixel - s.taps) / s.stride);
  const int64_t together = std::max(some, std::min(results, 4 * s.taps / s.stride + 1));
  std::vector<T> room;
  for (int64_t r = 0; r < s.rows; ++r)
    for (int64_t i = 0; i < results; i += together)
      doubled_line<kFold, kNumbers>(x + r * s.step + i * s.stride * s.pixel, s,
                                    std::min(together, results - i),
                                    s.factors == nullptr ? nullptr : s.factors + r * results + i,
                                    room, out + r * s.n + i * s.pixel);
}
/// Whether that takes less than to go through all windows, in vectors' steps: those of a round
/// move what they fold.
bool worth_doubling(const PoolLines& s) {
  if (s.dilation != 1) return false;
  const int64_t results = s.n / s.pixel;
  const int64_t span = ((results - 1) * s.stride + s.taps) * s.pixel;
  const auto rounds = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(s.taps)));
  return s.n * s.taps > 4 * span * (rounds + 2);
}

/// Windows some numbers apart: a line is turned, so that each of the numbers between two windows
/// has a line of its own; what a window takes of those whole is folded once for all windows.
template <PoolFold kFold, bool kNumbers, typename T>
void strided_lines(const T* x, const PoolLines& s, T* out) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t kNear = 4096;
  const int64_t whole = s.taps / s.stride, beside = s.taps % s.stride;
  const int64_t together =
      std::clamp<int64_t>(kNear / s.stride - whole, 64, std::max(s.n, int64_t{64}));
  const int64_t step = together + whole + 2 * lanes;
  std::vector<T> room(static_cast<size_t>(step * (s.stride + 1)));
  T *const lines = room.data(), *const folded = lines + step * s.stride;
  for (int64_t task = 0, parts = (s.n + together - 1) / together; task < s.rows * parts; ++task) {
    const int64_t row = task / parts, first = task % parts * together;
    const int64_t count = std::min(together, s.n - first);
    const T* const from = x + row * s.step + first * s.stride;
    // The last window may end within a row.
    const int64_t turned = count + whole - 1;
    transpose_tile(reinterpret_cast<const std::byte*>(from), s.stride,
                   reinterpret_cast<std::byte*>(lines), step, turned, s.stride, sizeof(T));
    for (int64_t c = 0; c < beside; ++c) lines[c * step + turned] = from[turned * s.stride + c];
    for (int64_t i = 0; i < turned && whole > 0; i += lanes) {
      V sum = hn::LoadU(d, lines + i);
      for (int64_t c = 1; c < s.stride; ++c)
        sum = fold_in<kFold, kNumbers>(d, sum, hn::LoadU(d, lines + c * step + i));
      hn::StoreU(sum, d, folded + i);
    }
    T* const to = out + row * s.n + first;
    for (int64_t i = 0; i < count; i += lanes) {
      V sum = hn::LoadU(d, (whole > 0 ? folded : lines) + i);
      for (int64_t k = 1; k < whole; ++k)
        sum = fold_in<kFold, kNumbers>(d, sum, hn::LoadU(d, folded + i + k));
      for (int64_t c = whole > 0 ? 0 : 1; c < beside; ++c)
        sum = fold_in<kFold, kNumbers>(d, sum, hn::LoadU(d, lines + c * step + i + whole));
      if constexpr (std::is_same_v<T, float>)
        if (s.factors != nullptr)
          sum = hn::Mul(sum, load_n(d, s.factors + row * s.n + first + i, count - i));
      store_n(sum, d, to + i, count - i);
    }
  }
}
bool worth_turning_lines(const PoolLines& s, int64_t lanes) {
  constexpr int64_t kMostStride = 16;  // else long windows are gone through
  return s.stride > 2 && s.pixel == 1 && s.dilation == 1 && s.n >= lanes &&
         (s.stride <= kMostStride || (s.taps < 4 * lanes && 2 * s.taps > s.stride));
}

template <PoolFold kFold, bool kNumbers, typename T>
void neighbours_of(const T* x, const PoolLines& s, T* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  if constexpr (sizeof(T) == 4)
    if ((s.stride == 3 || s.stride == 4) && s.pixel == 1 && s.dilation == 1 &&
        s.taps <= 4 * s.stride)
      return lines_of_every_few<kFold, kNumbers>(x, s, out);
  if (worth_turning_lines(s, lanes)) return strided_lines<kFold, kNumbers>(x, s, out);
  if (worth_doubling(s)) return doubled_lines<kFold, kNumbers>(x, s, out);
  const auto line = s.taps == 3   ? one_line<kFold, kNumbers, 3, T>
                    : s.taps == 2 ? one_line<kFold, kNumbers, 2, T>
                    : s.taps == 5 ? one_line<kFold, kNumbers, 5, T>
                                  : one_line<kFold, kNumbers, 0, T>;
  for (int64_t r = 0; r < s.rows; ++r)
    line(x + r * s.step, s, s.factors == nullptr ? nullptr : s.factors + r * (s.n / s.pixel),
         out + r * s.n);
}

template <typename T>
void rows_any(PoolFold fold, const T* x, const PoolWindows& windows, T empty, bool numbers,
              T* lines) {
  if constexpr (std::is_same_v<T, float>) {
    if (fold == PoolFold::kMax && !numbers)
      return rows_of<PoolFold::kMax, false>(x, windows, empty, lines);
    if (fold == PoolFold::kSum) return rows_of<PoolFold::kSum, true>(x, windows, empty, lines);
    if (fold == PoolFold::kSumSquare)
      return rows_of<PoolFold::kSumSquare, true>(x, windows, empty, lines);
    if (fold == PoolFold::kSumMagnitude)
      return rows_of<PoolFold::kSumMagnitude, true>(x, windows, empty, lines);
  }
  rows_of<PoolFold::kMax, true>(x, windows, empty, lines);
}
template <typename T>
void neighbours_any(PoolFold fold, const T* x, const PoolLines& lines, T* out) {
  if constexpr (std::is_same_v<T, float>) {
    if (fold != PoolFold::kMax) return neighbours_of<PoolFold::kSum, true>(x, lines, out);
    if (!lines.numbers) return neighbours_of<PoolFold::kMax, false>(x, lines, out);
  }
  neighbours_of<PoolFold::kMax, true>(x, lines, out);
}

bool has_nan(const float* x, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  // Zero times a finite number adds nothing.
  const auto zero = hn::Zero(d);
  auto a = zero, b = zero, c = zero, e = zero;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = hn::MulAdd(hn::LoadU(d, x + i), zero, a);
    b = hn::MulAdd(hn::LoadU(d, x + i + lanes), zero, b);
    c = hn::MulAdd(hn::LoadU(d, x + i + 2 * lanes), zero, c);
    e = hn::MulAdd(hn::LoadU(d, x + i + 3 * lanes), zero, e);
  }
  for (; i + lanes <= n; i += lanes) a = hn::MulAdd(hn::LoadU(d, x + i), zero, a);
  if (!hn::AllFalse(d, hn::IsNaN(hn::Add(hn::Add(a, b), hn::Add(c, e))))) i = 0;  // or infinite
  for (; i < n; i += lanes)
    if (!hn::AllFalse(d, hn::IsNaN(load_n(d, x + i, n - i)))) return true;
  return false;
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

template <typename T>
void pool_rows(PoolFold fold, const T* x, const PoolWindows& windows, T empty, bool numbers,
               T* lines) {
  using Fn = void(PoolFold, const T*, const PoolWindows&, T, bool, T*);
  TOMBOLO_TARGET(Fn, rows_any<T>).get()(fold, x, windows, empty, numbers, lines);
}
bool any_nan(const float* x, int64_t n) {
  return TOMBOLO_TARGET(bool(const float*, int64_t), has_nan)(x, n);
}
template <typename T>
void pool_neighbours(PoolFold fold, const T* x, const PoolLines& lines, T* out) {
  using Fn = void(PoolFold, const T*, const PoolLines&, T*);
  TOMBOLO_TARGET(Fn, neighbours_any<T>).get()(fold, x, lines, out);
}
#define TOMBOLO_POOL(T)                                                         \
  template void pool_rows(PoolFold, const T*, const PoolWindows&, T, bool, T*); \
  template void pool_neighbours(PoolFold, const T*, const PoolLines&, T*);
TOMBOLO_POOL(float)
TOMBOLO_POOL(uint8_t)
TOMBOLO_POOL(int8_t)
#undef TOMBOLO_POOL

}  // namespace tombolo
#endif
