// Many numbers into one, along rows and down columns.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/reduce/fold.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "runtime/kernels/across-inl.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/math-inl.h"
#include "runtime/kernels/reduce/rows.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V>
HWY_INLINE V magnitude(D d, V x) {
  if constexpr (hwy::IsFloat<hn::TFromD<D>>()) return hn::Abs(x);
  return max_of(x, hn::Sub(hn::Zero(d), x));
}

template <class D, class V>
HWY_INLINE V product(D d, V a, V b) {
  if constexpr (sizeof(hn::TFromD<D>) == 8 && !hwy::IsFloat<hn::TFromD<D>>()) {
    const hn::Repartition<uint32_t, D> half;
    const hn::RebindToUnsigned<D> du;
    const auto ah = hn::BitCast(half, a), bh = hn::BitCast(half, b);
    const auto a_up = hn::BitCast(half, hn::ShiftRight<32>(hn::BitCast(du, a))),
               b_up = hn::BitCast(half, hn::ShiftRight<32>(hn::BitCast(du, b)));
    const auto cross = hn::Add(hn::MulEven(a_up, bh), hn::MulEven(ah, b_up));
    return hn::BitCast(d, hn::Add(hn::MulEven(ah, bh), hn::ShiftLeft<32>(cross)));
  } else {
    (void)d;
    return hn::Mul(a, b);
  }
}

/// `acc` with x taken in.
template <Fold kFold, class D, class V>
HWY_INLINE V combine(D d, V acc, V x) {
  constexpr bool kFloating = hwy::IsFloat<hn::TFromD<D>>();
  if constexpr (kFold == Fold::kSum) return hn::Add(acc, x);
  if constexpr (kFold == Fold::kSumSquare) {
    if constexpr (kFloating) return hn::MulAdd(x, x, acc);
    return hn::Add(acc, product(d, x, x));
  }
  if constexpr (kFold == Fold::kSumAbs) return hn::Add(acc, magnitude(d, x));
  if constexpr (kFold == Fold::kProd) return product(d, acc, x);
  if constexpr (!kFloating) {
    if constexpr (kFold == Fold::kMax) return max_of(acc, x);
    if constexpr (kFold == Fold::kMin) return min_of(acc, x);
  } else {
    // A NaN stays whichever side it comes from.
    if constexpr (kFold == Fold::kMax)
      return hn::IfThenElse(hn::IsNaN(acc), acc, hn::IfThenElse(hn::Lt(x, acc), acc, x));
    if constexpr (kFold == Fold::kMin)
      return hn::IfThenElse(hn::IsNaN(acc), acc, hn::IfThenElse(hn::Gt(x, acc), acc, x));
  }
}

/// The greater or the lesser of both; `nan` learns where v is no number.
template <Fold kFold, typename T, class V, class M>
HWY_INLINE V better(V best, V v, M& nan) {
  if constexpr (hwy::IsFloat<T>()) nan = hn::Or(nan, hn::IsNaN(v));
  return kFold == Fold::kMax ? max_of(best, v) : min_of(best, v);
}

template <Fold kFold, typename T>
constexpr T start_of() {
  using Limits = std::numeric_limits<T>;
  if (kFold == Fold::kMax) return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  if (kFold == Fold::kMin) return Limits::has_infinity ? Limits::infinity() : Limits::max();
  return kFold == Fold::kProd ? T{1} : T{0};
}

/// Partial results together: those of squares and magnitudes are sums already.
template <Fold kFold, class D, class V>
HWY_INLINE V merge(D d, V a, V b) {
  if constexpr (kFold == Fold::kSumSquare || kFold == Fold::kSumAbs) return hn::Add(a, b);
  return combine<kFold>(d, a, b);
}

/// The greatest (or least) of floats, at least a vector of them; false where one is NaN: to look
/// for those beside takes less than to keep them on the way.
template <Fold kFold, typename T>
HWY_INLINE bool fold_numbers(const T* x, int64_t n, T& result) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V best[4];
  auto nan = hn::MaskFromVec(hn::Zero(d));
  const auto take = [&](V& sum, const T* from)
                        HWY_ATTR { sum = better<kFold, T>(sum, hn::LoadU(d, from), nan); };
  // The last ones first, as they may not fill four vectors.
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    best[k] = hn::LoadU(d, x + std::max<int64_t>(0, n - (k + 1) * lanes));
    nan = hn::Or(nan, hn::IsNaN(best[k]));
  }
  for (int64_t i = 0; i + 4 * lanes <= n; i += 4 * lanes)
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) take(best[k], x + i + k * lanes);
  if (!hn::AllFalse(d, nan)) return false;
  if constexpr (kFold == Fold::kMax)
    result =
        hn::GetLane(hn::MaxOfLanes(d, max_of(max_of(best[0], best[1]), max_of(best[2], best[3]))));
  else
    result =
        hn::GetLane(hn::MinOfLanes(d, min_of(min_of(best[0], best[1]), min_of(best[2], best[3]))));
  return true;
}

/// The greatest or the least of a vector of integers.
template <Fold kFold, class D, class V, typename T = hn::TFromD<D>>
HWY_INLINE T extreme_lane(D d, V v) {
  if constexpr (sizeof(T) == 1 && hn::MaxLanes(D()) > 16) {
    const hn::Half<D> half;
    return extreme_lane<kFold>(
        half, combine<kFold>(half, hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else if constexpr (sizeof(T) == 1) {
    // Highway has none for bytes; x86 has an instruction for the least of eight of 16 bits.
    const hn::Repartition<uint16_t, D> pairs;
    constexpr int kTurned = (kFold == Fold::kMax ? 0xff : 0) ^ (std::is_signed_v<T> ? 0x80 : 0);
    const auto turned =
        hn::Xor(hn::BitCast(pairs, v), hn::Set(pairs, static_cast<uint16_t>(kTurned * 0x101)));
    const auto least =
        min_of(hn::And(turned, hn::Set(pairs, uint16_t{0xff})), hn::ShiftRight<8>(turned));
    return static_cast<T>(hn::GetLane(hn::MinOfLanes(pairs, least)) ^ kTurned);
  } else if constexpr (kFold == Fold::kMax) {
    return hn::GetLane(hn::MaxOfLanes(d, v));
  } else {
    return hn::GetLane(hn::MinOfLanes(d, v));
  }
}

template <Fold kFold, typename T>
T fold_one(const T* x, int64_t n) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if constexpr (hwy::IsFloat<T>() && (kFold == Fold::kMax || kFold == Fold::kMin))
    if (T result; n >= lanes && fold_numbers<kFold>(x, n, result)) return result;
  const V start = hn::Set(d, start_of<kFold, T>());
  V s0 = start, s1 = start, s2 = start, s3 = start;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = combine<kFold>(d, s0, hn::LoadU(d, x + i));
    s1 = combine<kFold>(d, s1, hn::LoadU(d, x + i + lanes));
    s2 = combine<kFold>(d, s2, hn::LoadU(d, x + i + 2 * lanes));
    s3 = combine<kFold>(d, s3, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) s0 = combine<kFold>(d, s0, hn::LoadU(d, x + i));
  if (i < n)
    s1 = combine<kFold>(
        d, s1,
        hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(n - i)), load_n(d, x + i, n - i), start));
  s0 = merge<kFold>(d, merge<kFold>(d, s0, s1), merge<kFold>(d, s2, s3));
  if constexpr (kFold == Fold::kSum || kFold == Fold::kSumSquare || kFold == Fold::kSumAbs)
    return hn::GetLane(hn::SumOfLanes(d, s0));
  if constexpr (!hwy::IsFloat<T>() && (kFold == Fold::kMax || kFold == Fold::kMin))
    return extreme_lane<kFold>(d, s0);
  if constexpr (hwy::IsFloat<T>() && (kFold == Fold::kMax || kFold == Fold::kMin))
    if (hn::AllFalse(d, hn::IsNaN(s0)))
      return hn::GetLane(kFold == Fold::kMax ? hn::MaxOfLanes(d, s0) : hn::MinOfLanes(d, s0));
  HWY_ALIGN T parts[HWY_LANES(T)];
  hn::Store(s0, d, parts);
  using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                               std::type_identity<T>>::type;
  T result = parts[0];
  for (int64_t j = 1; j < lanes; ++j) {
    const T p = parts[j];
    if constexpr (kFold == Fold::kMax)
      result = result != result ? result : (p < result ? result : p);
    else if constexpr (kFold == Fold::kMin)
      result = result != result ? result : (p > result ? result : p);
    else
      result = static_cast<T>(static_cast<Wrapping>(result) * static_cast<Wrapping>(p));
  }
  return result;
}

/// kNumbers: extrema of floats for which a NaN is looked for beside, as in fold_numbers; false
/// where there is one.
template <Fold kFold, bool kNumbers, typename T>
HWY_INLINE bool fold_down_as(const T* x, int64_t n, int64_t step, int64_t width, T* y) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V start = hn::Set(d, start_of<kFold, T>());
  auto nan = hn::MaskFromVec(hn::Zero(d));
  const auto take = [&](V sum, V v) HWY_ATTR {
    if constexpr (kNumbers) return better<kFold, T>(sum, v, nan);
    return combine<kFold>(d, sum, v);
  };
  if (width >= 16 * lanes && n >= 4) {
    // Wide: a few rows at a time as they lie in memory, results in the cache.
    for (int64_t i = 0; i < n;) {
      const int64_t rows = n - i >= 4 ? 4 : 1;
      const T* from = x + i * step;
      int64_t j = 0;
      for (; j < width; j += lanes) {
        const int64_t left = width - j;
        V s = i == 0 ? start : load_n(d, y + j, left);
        s = take(s, load_n(d, from + j, left));
        if (rows == 4) {
          V t = take(start, load_n(d, from + step + j, left));
          s = take(s, load_n(d, from + 2 * step + j, left));
          t = take(t, load_n(d, from + 3 * step + j, left));
          s = merge<kFold>(d, s, t);
        }
        store_n(s, d, y + j, left);
      }
      i += rows;
    }
    return !kNumbers || hn::AllFalse(d, nan);
  }
  int64_t j = 0;
  for (; j + 4 * lanes <= width; j += 4 * lanes) {
    V s0 = start, s1 = start, s2 = start, s3 = start;
    const T* from = x + j;
    for (int64_t i = 0; i < n; ++i, from += step) {
      s0 = take(s0, hn::LoadU(d, from));
      s1 = take(s1, hn::LoadU(d, from + lanes));
      s2 = take(s2, hn::LoadU(d, from + 2 * lanes));
      s3 = take(s3, hn::LoadU(d, from + 3 * lanes));
    }
    hn::StoreU(s0, d, y + j);
    hn::StoreU(s1, d, y + j + lanes);
    hn::StoreU(s2, d, y + j + 2 * lanes);
    hn::StoreU(s3, d, y + j + 3 * lanes);
  }
  // What is left of the width: two vectors at a time, the last of which may be short.
  for (; j < width; j += 2 * lanes) {
    const int64_t left = width - j;
    V s = start, t = start;
    const T* from = x + j;
    if (left > lanes) {
      for (int64_t i = 0; i < n; ++i, from += step) {
        s = take(s, hn::LoadU(d, from));
        t = take(t, load_n(d, from + lanes, left - lanes));
      }
      hn::StoreU(s, d, y + j);
      store_n(t, d, y + j + lanes, left - lanes);
      continue;
    }
    int64_t i = 0;
    for (; i + 2 <= n; i += 2, from += 2 * step) {
      s = take(s, load_n(d, from, left));
      t = take(t, load_n(d, from + step, left));
    }
    if (i < n) s = take(s, load_n(d, from, left));
    store_n(merge<kFold>(d, s, t), d, y + j, left);
  }
  return !kNumbers || hn::AllFalse(d, nan);
}
/// Extrema of n rows of 2, 4 or 8 numbers of 32 bits one behind the other, of which a vector holds
/// several; false where there is a NaN.
template <Fold kFold, typename T>
HWY_INLINE bool fold_narrow(const T* x, int64_t n, int64_t width, T* y) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V start = hn::Set(d, start_of<kFold, T>());
  auto nan = hn::MaskFromVec(hn::Zero(d));
  const auto take = [&](V sum, V v) HWY_ATTR { return better<kFold, T>(sum, v, nan); };
  V s[4] = {start, start, start, start};
  const int64_t all = n * width;
  int64_t i = 0;
  for (; i + 4 * lanes <= all; i += 4 * lanes)
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) s[v] = take(s[v], hn::LoadU(d, x + i + v * lanes));
  for (; i + lanes <= all; i += lanes) s[0] = take(s[0], hn::LoadU(d, x + i));
  if (i < all) {
    const auto some = hn::FirstN(d, static_cast<size_t>(all - i));
    s[1] = take(s[1], hn::IfThenElse(some, load_n(d, x + i, all - i), start));
  }
  V sum = take(take(s[0], s[1]), take(s[2], s[3]));
#if HWY_TARGET <= HWY_AVX3
  sum = take(sum, hn::ConcatUpperUpper(d, sum, sum));
#endif
#if HWY_TARGET <= HWY_AVX2
  if (width <= 4) sum = take(sum, hn::SwapAdjacentBlocks(sum));
#endif
  if (width <= 2) sum = take(sum, hn::Shuffle1032(sum));
  store_n(sum, d, y, width);
  return hn::AllFalse(d, nan);
}
template <Fold kFold, typename T>
void fold_down(const T* x, int64_t n, int64_t step, int64_t width, int64_t blocks, T* y) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  const bool narrow =
      step == width && width >= 2 && 2 * width <= lanes && lanes % width == 0 && n >= 4;
  for (int64_t block = 0; block < blocks; ++block, x += n * step, y += width) {
    if constexpr (sizeof(T) == 4 && (kFold == Fold::kMax || kFold == Fold::kMin))
      if (narrow && fold_narrow<kFold>(x, n, width, y)) continue;
    if constexpr (hwy::IsFloat<T>() && (kFold == Fold::kMax || kFold == Fold::kMin))
      if (fold_down_as<kFold, true>(x, n, step, width, y)) continue;
    fold_down_as<kFold, false>(x, n, step, width, y);
  }
}

// Of bytes only the greatest and the least are asked for.
#define EACH_FOLD(CASE)           \
  if constexpr (sizeof(T) == 1) { \
    switch (fold) {               \
      CASE(kMax)                  \
      CASE(kMin)                  \
      default:                    \
        break;                    \
    }                             \
  } else {                        \
    switch (fold) {               \
      CASE(kSum)                  \
      CASE(kSumSquare)            \
      CASE(kSumAbs)               \
      CASE(kMax)                  \
      CASE(kMin)                  \
      CASE(kProd)                 \
    }                             \
  }

/// Rows of a few elements, less than a vector: one after the other.
template <Fold kFold, typename T, int kN>
void fold_short(const T* x, int64_t count, T* y) {
  using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                               std::type_identity<T>>::type;
  const auto one = [](T v) -> T {
    if constexpr (kFold == Fold::kSumSquare)
      return static_cast<T>(static_cast<Wrapping>(v) * static_cast<Wrapping>(v));
    if constexpr (kFold == Fold::kSumAbs)
      return v < 0 ? static_cast<T>(Wrapping{0} - static_cast<Wrapping>(v)) : v == 0 ? T{0} : v;
    return v;
  };
  for (int64_t i = 0; i < count; ++i, x += kN) {
    T result = one(x[0]);
#pragma GCC unroll 8
    for (int j = 1; j < kN; ++j) {
      const T v = one(x[j]);
      if constexpr (kFold == Fold::kMax)
        result = result != result ? result : (v < result ? result : v);
      else if constexpr (kFold == Fold::kMin)
        result = result != result ? result : (v > result ? result : v);
      else if constexpr (kFold == Fold::kProd)
        result = static_cast<T>(static_cast<Wrapping>(result) * static_cast<Wrapping>(v));
      else
        result = static_cast<T>(static_cast<Wrapping>(result) + static_cast<Wrapping>(v));
    }
    y[i] = result;
  }
}

#if HWY_TARGET == HWY_AVX3
/// Sums of a row, lane by lane.
template <Fold kFold>
HWY_INLINE hn::Vec<hn::ScalableTag<float>> sum_lanes(const float* x, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = s0;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    s0 = combine<kFold>(d, s0, hn::LoadU(d, x + i));
    s1 = combine<kFold>(d, s1, hn::LoadU(d, x + i + lanes));
  }
  for (; i < n; i += lanes) s0 = combine<kFold>(d, s0, load_n(d, x + i, n - i));
  return hn::Add(s0, s1);
}
/// Sums of rows of a few vectors of sixteen: lanes are summed for four rows at once. The last row
/// stands in for those that are not there, as no sum may depend on how rows are shared.
template <Fold kFold>
void sum_four(const float* x, int64_t n, int64_t count, float* y) {
  const hn::ScalableTag<float> d;
  for (int64_t i = 0; i < count; i += 4) {
    const auto row = [&](int64_t k) HWY_ATTR {
      return sum_lanes<kFold>(x + std::min(i + k, count - 1) * n, n);
    };
    float sums[4];
    sums_of_four(d, row(0), row(1), row(2), row(3), sums);
    std::copy_n(sums, std::min<int64_t>(4, count - i), y + i);
  }
}
#endif

template <Fold kFold, typename T>
void fold_all(const T* x, int64_t n, int64_t count, T* y) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (std::is_same_v<T, float> &&
                (kFold == Fold::kSum || kFold == Fold::kSumSquare || kFold == Fold::kSumAbs))
    if (n > 16 && n <= 128) return sum_four<kFold>(x, n, count, y);
#endif
  switch (n) {
    case 2:
      return fold_short<kFold, T, 2>(x, count, y);
    case 3:
      return fold_short<kFold, T, 3>(x, count, y);
    case 4:
      return fold_short<kFold, T, 4>(x, count, y);
    case 5:
      return fold_short<kFold, T, 5>(x, count, y);
    case 6:
      return fold_short<kFold, T, 6>(x, count, y);
    default:
      for (int64_t i = 0; i < count; ++i) y[i] = fold_one<kFold>(x + i * n, n);
  }
}

template <typename T>
void fold_any(Fold fold, const T* x, int64_t n, int64_t count, T* y) {
#define CASE(id) \
  case Fold::id: \
    return fold_all<Fold::id>(x, n, count, y);
  EACH_FOLD(CASE)
#undef CASE
}

template <typename T>
void fold_down_any(Fold fold, const T* x, int64_t n, int64_t step, int64_t width, int64_t blocks,
                   T* y) {
#define CASE(id) \
  case Fold::id: \
    return fold_down<Fold::id>(x, n, step, width, blocks, y);
  EACH_FOLD(CASE)
#undef CASE
}

/// e^x for x <= 0. Of doubles below -700 it is not told from zero.
template <class D, class V>
HWY_INLINE V exp_below(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 8)
    return hn::Exp(d, max_of(hn::Set(d, -700.0), x));
  else
    return v_exp_negative(d, x);
}

template <typename T>
T exp_sum(const T* x, int64_t n, T shift) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V by = hn::Set(d, shift);
  V s0 = hn::Zero(d), s1 = s0;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    s0 = hn::Add(s0, exp_below(d, hn::Sub(hn::LoadU(d, x + i), by)));
    s1 = hn::Add(s1, exp_below(d, hn::Sub(hn::LoadU(d, x + i + lanes), by)));
  }
  for (; i < n; i += lanes) {
    const V e = exp_below(d, hn::Sub(load_n(d, x + i, n - i), by));
    s0 = hn::Add(
        s0, n - i >= lanes ? e : hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(n - i)), e));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
}

template <typename T>
void exp_sum_down(const T* x, int64_t n, int64_t step, int64_t width, const T* shifts, T* sums) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < width; j += lanes) {
    const int64_t left = width - j;
    const V by = load_n(d, shifts + j, left);
    V sum = hn::Zero(d);
    for (int64_t i = 0; i < n; ++i)
      sum = hn::Add(sum, exp_below(d, hn::Sub(load_n(d, x + i * step + j, left), by)));
    store_n(sum, d, sums + j, left);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

template <typename T>
void fold_rows(Fold fold, const T* x, int64_t n, int64_t count, T* y) {
  TOMBOLO_TARGET(void(Fold, const T*, int64_t, int64_t, T*), fold_any<T>)(fold, x, n, count, y);
}
template <typename T>
void fold_columns(Fold fold, const T* x, int64_t n, int64_t step, int64_t width, T* y,
                  int64_t blocks) {
  TOMBOLO_TARGET(void(Fold, const T*, int64_t, int64_t, int64_t, int64_t, T*), fold_down_any<T>)
  (fold, x, n, step, width, blocks, y);
}
#define TOMBOLO_FOLD(T)                                          \
  template void fold_rows(Fold, const T*, int64_t, int64_t, T*); \
  template void fold_columns(Fold, const T*, int64_t, int64_t, int64_t, T*, int64_t);
TOMBOLO_FOLD(float)
TOMBOLO_FOLD(double)
TOMBOLO_FOLD(int32_t)
TOMBOLO_FOLD(int64_t)
TOMBOLO_FOLD(uint8_t)
TOMBOLO_FOLD(int8_t)
#undef TOMBOLO_FOLD

template <typename T>
T exp_sum_row(const T* x, int64_t n, T shift) {
  return TOMBOLO_TARGET(T(const T*, int64_t, T), exp_sum<T>)(x, n, shift);
}
template <typename T>
void exp_sum_columns(const T* x, int64_t n, int64_t step, int64_t width, const T* shifts, T* sums) {
  TOMBOLO_TARGET(void(const T*, int64_t, int64_t, int64_t, const T*, T*), exp_sum_down<T>)
  (x, n, step, width, shifts, sums);
}
#define TOMBOLO_EXP_SUM(T)                      \
  template T exp_sum_row(const T*, int64_t, T); \
  template void exp_sum_columns(const T*, int64_t, int64_t, int64_t, const T*, T*);
TOMBOLO_EXP_SUM(float)
TOMBOLO_EXP_SUM(double)
#undef TOMBOLO_EXP_SUM

}  // namespace tombolo
#endif
