#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/matmul/gemm_small.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <utility>

#include "runtime/kernels/across-inl.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/matmul/gemm_small.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/row_pointers.h"
#include "runtime/kernels/tensor/transpose_tile.h"
#include "runtime/kernels/vec-inl.h"

namespace tombolo {
#ifndef TOMBOLO_GEMM_SMALL_PRODUCT
#define TOMBOLO_GEMM_SMALL_PRODUCT
struct SmallProduct {
  int64_t m, n, k;
  const float* a;
  int64_t lda;
  const float* b;
  int64_t ldb;
  float alpha;
  float* c;
  int64_t ldc;
  const GemmEpilogue& epilogue;
  int64_t first = 0;  ///< of the columns, in all of C
  /// Rows of a column or a row of C are summed by short_dots(): by all of them, not those of one
  /// thread, so that equal ones give equal bits.
  bool short_rows = false;
};
constexpr int64_t kStreamColumns = 2048;
#endif
}  // namespace tombolo

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

#if HWY_TARGET <= HWY_AVX3
inline constexpr int kRows = 8;
#else
inline constexpr int kRows = 6;
#endif

/// Of few_tile(): rows, and vectors of columns.
inline constexpr int kFewRows = 3, kFewVectors = 4;
/// What is summed in one piece, as in other tiles: the error of a long sum grows with its root.
inline constexpr int64_t kFewPart = 192;

HWY_INLINE float finish(float sum, float alpha, const GemmEpilogue& e, int64_t row,
                        int64_t column) {
  sum *= alpha;
  if (e.row_bias != nullptr) sum += e.row_bias[row];
  if (e.col_bias != nullptr) sum += e.col_bias[column];
  if (e.init != nullptr) sum += e.init[row * e.ldi + column];
  return e.clamp ? std::min(std::max(sum, e.lo), e.hi) : sum;  // in this order a NaN stays
}

/// The last vector of a row, of which `columns` lanes count: told once, not for each row.
class LastVector {
 public:
  explicit LastVector(int64_t columns)
      : columns_(columns)
#if HWY_TARGET <= HWY_AVX2
        ,
        lanes_(hn::FirstN(F(), static_cast<size_t>(columns)))
#endif
  {
  }
  HWY_INLINE V load(const float* from) const {
#if HWY_TARGET <= HWY_AVX2
    return hn::MaskedLoad(lanes_, F(), from);
#else
    return load_n(F(), from, columns_);
#endif
  }

 private:
  int64_t columns_;
#if HWY_TARGET <= HWY_AVX2
  hn::Mask<F> lanes_;
#endif
};

/// What surrounds the sums of a tile, and the sums to C; `last` columns in the last vector.
template <int kR, int kV, bool kPartial>
HWY_INLINE void store_tile(const SmallProduct& p, int64_t row, int64_t column, int64_t last,
                           const V (&sum)[kR][kV]) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const GemmEpilogue& e = p.epilogue;
  const auto load = [&](const float* from, int v) HWY_ATTR __attribute__((always_inline)) {
    return kPartial && v == kV - 1 ? load_n(f, from + v * lanes, last)
                                   : hn::LoadU(f, from + v * lanes);
  };
  const V lo = hn::Set(f, e.lo), hi = hn::Set(f, e.hi);
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) {
      V value = p.alpha == 1 ? sum[r][v] : hn::Mul(sum[r][v], hn::Set(f, p.alpha));
      if (e.row_bias != nullptr) value = hn::Add(value, hn::Set(f, e.row_bias[row + r]));
      const int64_t at = p.first + column;
      if (e.col_bias != nullptr) value = hn::Add(value, load(e.col_bias + at, v));
      if (e.init != nullptr) value = hn::Add(value, load(e.init + (row + r) * e.ldi + at, v));
      if (e.clamp) value = min_of(hi, max_of(lo, value));  // in this order a NaN stays
      store_n(value, f, p.c + (row + r) * p.ldc + column + v * lanes,
              kPartial && v == kV - 1 ? last : lanes);
    }
}

/// Rows from `row` on and columns from `column` on, `last` of them in the last vector.
template <int kR, int kV, bool kPartial>
void small_tile(const SmallProduct& p, int64_t row, int64_t column, int64_t last) {
  const F f;
  const LastVector part(last);
  V sum[kR][kV];
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) sum[r][v] = hn::Zero(f);
  RowPointers<float, kR> a(p.a + row * p.lda, p.lda);
  const float* b = p.b + column;
  const int64_t ldb = p.ldb;
  for (int64_t i = p.k; i > 0; --i, b += ldb, a.advance(1)) {
    V bv[kV];
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v)
      bv[v] = kPartial && v == kV - 1 ? part.load(b + v * HWY_LANES(float))
                                      : hn::LoadU(f, b + v * HWY_LANES(float));
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r) {
      const V av = hn::Set(f, *a.at(r));
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v) add_product(sum[r][v], av, bv[v]);
    }
  }
  store_tile<kR, kV, kPartial>(p, row, column, last, sum);
}

using Tile = void(const SmallProduct&, int64_t, int64_t, int64_t);
struct Tiles {
  Tile* get[kRows + 1][3][2] = {};
};
template <int... kR>
constexpr Tiles fill(std::integer_sequence<int, kR...>) {
  Tiles tiles;
  ((tiles.get[kR + 1][1][0] = &small_tile<kR + 1, 1, false>), ...);
  ((tiles.get[kR + 1][1][1] = &small_tile<kR + 1, 1, true>), ...);
  ((tiles.get[kR + 1][2][0] = &small_tile<kR + 1, 2, false>), ...);
  ((tiles.get[kR + 1][2][1] = &small_tile<kR + 1, 2, true>), ...);
  return tiles;
}

void small_product(const SmallProduct& p) {
  static constexpr Tiles kTiles = fill(std::make_integer_sequence<int, kRows>());
  const auto lanes = static_cast<int64_t>(hn::Lanes(F()));
  const int64_t cuts = (p.m + kRows - 1) / kRows;
  for (int64_t column = 0; column < p.n; column += 2 * lanes) {
    const int64_t rest = p.n - column;
    const int vectors = rest > lanes ? 2 : 1;
    const int64_t last = std::min(lanes, rest - (vectors - 1) * lanes);
    for (int64_t i = 0; i < cuts; ++i) {
      const int64_t row = p.m * i / cuts, rows = p.m * (i + 1) / cuts - row;
      kTiles.get[rows][vectors][last < lanes](p, row, column, last);
    }
  }
}

/// Sums kept side by side for a product of so many rows and vectors of columns: fewer than eight
/// wait for one another. By all columns of a product, not those of a tile: equal ones give equal
/// bits.
inline int few_sets(int64_t rows, int64_t vectors) {
  const int64_t sums = rows * std::min<int64_t>(vectors, kFewVectors);
  return sums <= 2 ? 4 : sums <= 4 ? 2 : 1;
}

/// kR rows from `row` on and kV vectors of columns from `column` on, `last` in the last vector.
/// Rows of B by turns to kS sets of sums.
template <int kR, int kV, int kS>
void few_tile(const SmallProduct& p, int64_t row, int64_t column, int64_t last) {
  const F f;
  const LastVector part_of_row(last);
  const float* a = p.a + row * p.lda;
  const float* b = p.b + column;
  const int64_t lda = p.lda, ldb = p.ldb;
  V total[kR][kV];
#pragma GCC unroll 4
  for (int r = 0; r < kR; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) total[r][v] = hn::Zero(f);
  for (int64_t left = p.k; left > 0;) {
    const int64_t part = left > kS * (kFewPart + kFewPart / 2) ? kS * kFewPart : left;
    V sum[kS][kR][kV];
#pragma GCC unroll 4
    for (int s = 0; s < kS; ++s)
#pragma GCC unroll 4
      for (int r = 0; r < kR; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < kV; ++v) sum[s][r][v] = hn::Zero(f);
    const auto step = [&](int s) HWY_ATTR __attribute__((always_inline)) {
      V bv[kV];
#pragma GCC unroll 4
      for (int v = 0; v < kV; ++v)
        bv[v] = v < kV - 1 ? hn::LoadU(f, b + v * HWY_LANES(float))
                           : part_of_row.load(b + v * HWY_LANES(float));
#pragma GCC unroll 4
      for (int r = 0; r < kR; ++r) {
        const V av = hn::Set(f, a[r * lda]);
#pragma GCC unroll 4
        for (int v = 0; v < kV; ++v) add_product(sum[s][r][v], av, bv[v]);
      }
      ++a;
      b += ldb;
    };
    int64_t i = 0;
    for (; i + kS <= part; i += kS)
#pragma GCC unroll 4
      for (int s = 0; s < kS; ++s) step(s);
    for (; i < part; ++i) step(0);
#pragma GCC unroll 4
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < kV; ++v) {
        V x = sum[0][r][v];
        if (kS == 2) x = hn::Add(x, sum[kS > 1 ? 1 : 0][r][v]);
        if (kS == 4)
          x = hn::Add(hn::Add(x, sum[kS > 1 ? 1 : 0][r][v]),
                      hn::Add(sum[kS > 2 ? 2 : 0][r][v], sum[kS > 3 ? 3 : 0][r][v]));
        total[r][v] = left == p.k ? x : hn::Add(total[r][v], x);
      }
    left -= part;
  }
  store_tile<kR, kV, true>(p, row, column, last, total);
}

template <int kR>
void few_tiles(const SmallProduct& p, int64_t row, int64_t column, int64_t vectors, int64_t last,
               int sets) {
  const auto take = [&](auto v) HWY_ATTR {
    constexpr int kV = decltype(v)::value;
    if constexpr (kV <= kFewVectors) {
      if (sets == 1) return few_tile<kR, kV, 1>(p, row, column, last);
      if constexpr (kR * kV <= 4)
        if (sets == 2) return few_tile<kR, kV, 2>(p, row, column, last);
      if constexpr (kR * kV <= 2)
        if (sets == 4) return few_tile<kR, kV, 4>(p, row, column, last);
    }
  };
  switch (vectors) {
    case 1:
      return take(std::integral_constant<int, 1>());
    case 2:
      return take(std::integral_constant<int, 2>());
    case 3:
      return take(std::integral_constant<int, 3>());
    default:
      return take(std::integral_constant<int, 4>());
  }
}

/// Vectors [begin, end) of the columns, in tiles of about the same width.
void few_columns(const SmallProduct& p, int64_t begin, int64_t end) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(F()));
  const int64_t vectors = (p.n + lanes - 1) / lanes, cuts_r = (p.m + kFewRows - 1) / kFewRows;
  const int64_t tallest = (p.m + cuts_r - 1) / cuts_r;
  const int sets = few_sets(tallest, vectors);
  const int64_t cuts = (end - begin + kFewVectors - 1) / kFewVectors;
  for (int64_t cut = 0; cut < cuts; ++cut) {
    const int64_t from = begin + (end - begin) * cut / cuts;
    const int64_t count = begin + (end - begin) * (cut + 1) / cuts - from;
    const int64_t column = from * lanes;
    const int64_t last = std::min(lanes, p.n - column - (count - 1) * lanes);
    const int64_t columns = (count - 1) * lanes + last;
    for (int64_t i = 0; i < cuts_r; ++i) {
      const int64_t row = p.m * i / cuts_r, rows = p.m * (i + 1) / cuts_r - row;
      switch (rows) {
        case 1:
          few_tiles<1>(p, row, column, count, last, sets);
          break;
        case 2:
          few_tiles<2>(p, row, column, count, last, sets);
          break;
        default:
          few_tiles<3>(p, row, column, count, last, sets);
          break;
      }
      if (const BlockPost* post = p.epilogue.post)
        post->apply(post->argument, p.c + row * p.ldc + column, p.ldc, row, rows, column, columns);
    }
  }
}

/// kR rows by columns [begin, end): whole rows of B one after the other, as they come from memory,
/// added to sums that stay in the first cache.
template <int kR>
void stream_rows(const SmallProduct& p, int64_t row, int64_t begin, int64_t end) {
  constexpr int kSteps = 4;
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const int64_t columns = end - begin, whole = columns / lanes * lanes;
  HWY_ALIGN float sums[kR * kStreamColumns], totals[kR * kStreamColumns];
  const float* a = p.a + row * p.lda;
  const float* b = p.b + begin;
  // kN rows of B; `first`: the sums begin with them.
  const auto add = [&](auto steps, bool first) HWY_ATTR __attribute__((always_inline)) {
    constexpr int kN = decltype(steps)::value;
    V av[kR][kN];
#pragma GCC unroll 4
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 4
      for (int i = 0; i < kN; ++i) av[r][i] = hn::Set(f, a[r * p.lda + i]);
    const auto at = [&](int64_t j, auto&& load) HWY_ATTR __attribute__((always_inline)) {
      V bv[kN];
#pragma GCC unroll 4
      for (int i = 0; i < kN; ++i) bv[i] = load(b + i * p.ldb + j);
#pragma GCC unroll 4
      for (int r = 0; r < kR; ++r) {
        float* const to = sums + r * kStreamColumns + j;
        V sum = first ? hn::Zero(f) : hn::Load(f, to);
#pragma GCC unroll 4
        for (int i = 0; i < kN; ++i) add_product(sum, av[r][i], bv[i]);
        hn::Store(sum, f, to);
      }
    };
    for (int64_t j = 0; j < whole; j += lanes)
      at(
          j, [&](const float* from) HWY_ATTR
          __attribute__((always_inline)) { return hn::LoadU(f, from); });
    if (whole < columns)
      at(
          whole, [&](const float* from) HWY_ATTR
          __attribute__((always_inline)) { return load_n(f, from, columns - whole); });
    a += kN;
    b += kN * p.ldb;
  };
  bool more = false;
  for (int64_t left = p.k; left > 0; more = true) {
    const int64_t part = left > kFewPart + kFewPart / 2 ? kFewPart : left;
    int64_t i = 0;
    for (; i + kSteps <= part; i += kSteps) add(std::integral_constant<int, kSteps>(), i == 0);
    for (; i < part; ++i) add(std::integral_constant<int, 1>(), i == 0);
    left -= part;
    if (left == 0 && !more) break;
    for (int r = 0; r < kR; ++r)
      for (int64_t j = 0; j < columns; j += lanes) {
        float *const to = totals + r * kStreamColumns + j, *const sum = to - totals + sums;
        hn::Store(more ? hn::Add(hn::Load(f, to), hn::Load(f, sum)) : hn::Load(f, sum), f, to);
      }
  }
  for (int64_t j = 0; j < columns; j += lanes) {
    V result[kR][1];
    for (int r = 0; r < kR; ++r)
      result[r][0] = hn::Load(f, (more ? totals : sums) + r * kStreamColumns + j);
    store_tile<kR, 1, true>(p, row, begin + j, std::min(lanes, columns - j), result);
  }
  if (const BlockPost* post = p.epilogue.post)
    post->apply(post->argument, p.c + row * p.ldc + begin, p.ldc, row, kR, begin, columns);
}

/// Blocks [begin, end) of `width` columns.
void stream_columns(const SmallProduct& p, int64_t width, int64_t begin, int64_t end) {
  for (int64_t block = begin; block < end; ++block) {
    const int64_t from = block * width, to = std::min(p.n, from + width);
    if (p.m == 1)
      stream_rows<1>(p, 0, from, to);
    else
      stream_rows<2>(p, 0, from, to);
  }
}

/// A row of C, of many short rows each with the one of the other matrix: as many results at a time
/// as a vector has lanes.
void short_dots(const SmallProduct& p, const float* rows, int64_t step, int64_t count,
                const float* one) {
  const F f;
  constexpr int64_t kLanes = HWY_LANES(float);
  const int64_t whole = p.k / kLanes * kLanes, rest = p.k - whole;
  const V tail = rest > 0 ? load_n(f, one + whole, rest) : hn::Zero(f);
  const LastVector part(std::max<int64_t>(rest, 1));
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t some = std::min(kLanes, count - i);
    V sum[kLanes];
#pragma GCC unroll 16
    for (int64_t r = 0; r < kLanes; ++r) {
      const float* const row = rows + std::min(i + r, count - 1) * step;
      V x = rest > 0 ? hn::Mul(part.load(row + whole), tail) : hn::Zero(f);
      for (int64_t k = 0; k < whole; k += kLanes)
        add_product(x, hn::LoadU(f, row + k), hn::LoadU(f, one + k));
      sum[r] = x;
    }
    const V all[1][1] = {{sums_across(f, sum)}};
    store_tile<1, 1, true>(p, 0, i, some, all);
  }
}

/// Each element along both rows, which lie one behind the other: B is turned, or a column. Four of
/// the more rows at a time with one of the other matrix.
void small_dots(const SmallProduct& p) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const int64_t whole = p.k / lanes * lanes, rest = p.k - whole;
  const bool columns = p.m < 4 && p.n > p.m;
  const int64_t many = columns ? p.n : p.m, few = columns ? p.m : p.n;
  const float *const all = columns ? p.b : p.a, *const each = columns ? p.a : p.b;
  const int64_t step = columns ? p.ldb : p.lda, step_each = columns ? p.lda : p.ldb;
  if (p.short_rows) return short_dots(p, all, step, many, each);
  const auto put = [&](int64_t i, int64_t j, float sum) {
    const int64_t row = columns ? j : i, column = columns ? i : j;
    p.c[row * p.ldc + column] = finish(sum, p.alpha, p.epilogue, row, p.first + column);
  };
  // Four rows meet all that are few before the next ones come.
  for (int64_t i = 0; i < many; i += 4) {
    const float* const a = all + i * step;
    const int64_t rows = std::min<int64_t>(4, many - i);
    for (int64_t j = 0; j < few; ++j) {
      const float* const b = each + j * step_each;
      const V tail = rest > 0 ? load_n(f, b + whole, rest) : hn::Zero(f);
      if (rows == 4) {
        V sum[4];
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r)
          sum[r] = rest > 0 ? hn::Mul(load_n(f, a + r * step + whole, rest), tail) : hn::Zero(f);
        for (int64_t k = 0; k < whole; k += lanes) {
          const V bv = hn::LoadU(f, b + k);
#pragma GCC unroll 4
          for (int r = 0; r < 4; ++r) add_product(sum[r], hn::LoadU(f, a + r * step + k), bv);
        }
        float sums[4];
        sums_of_four(f, sum[0], sum[1], sum[2], sum[3], sums);
        for (int r = 0; r < 4; ++r) put(i + r, j, sums[r]);
        continue;
      }
      for (int64_t r = 0; r < rows; ++r) {
        const float* const row = a + r * step;
        V sum = rest > 0 ? hn::Mul(load_n(f, row + whole, rest), tail) : hn::Zero(f);
        for (int64_t k = 0; k < whole; k += lanes)
          add_product(sum, hn::LoadU(f, row + k), hn::LoadU(f, b + k));
        put(i + r, j, hn::GetLane(hn::SumOfLanes(f, sum)));
      }
    }
  }
}

/// kR rows of A with kC of B.
template <int kR, int kC>
void dots_tile(const SmallProduct& p, int64_t row, int64_t column) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const int64_t whole = p.k / lanes * lanes, rest = p.k - whole;
  const float *const a = p.a + row * p.lda, *const b = p.b + column * p.ldb;
  V sum[kR * kC];
#pragma GCC unroll 16
  for (int i = 0; i < kR * kC; ++i) sum[i] = hn::Zero(f);
  // The next rows come while these meet the first columns.
  const int64_t next = column == 0 ? kR * p.lda : 0;
  for (int64_t k = 0; k < whole; k += lanes) {
    V bv[kC];
#pragma GCC unroll 4
    for (int j = 0; j < kC; ++j) bv[j] = hn::LoadU(f, b + j * p.ldb + k);
#pragma GCC unroll 4
    for (int i = 0; i < kR; ++i) {
      __builtin_prefetch(a + i * p.lda + k + next);
      const V av = hn::LoadU(f, a + i * p.lda + k);
#pragma GCC unroll 4
      for (int j = 0; j < kC; ++j) add_product(sum[i * kC + j], av, bv[j]);
    }
  }
  if (rest > 0)
#pragma GCC unroll 4
    for (int i = 0; i < kR; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < kC; ++j)
        add_product(sum[i * kC + j], load_n(f, a + i * p.lda + whole, rest),
                    load_n(f, b + j * p.ldb + whole, rest));
  float sums[kR * kC + 3];
  constexpr int kFours = kR * kC / 4 * 4;
#pragma GCC unroll 4
  for (int i = 0; i < kFours; i += 4)
    sums_of_four(f, sum[i], sum[i + 1], sum[i + 2], sum[i + 3], sums + i);
#pragma GCC unroll 4
  for (int i = kFours; i < kR * kC; ++i) sums[i] = hn::GetLane(hn::SumOfLanes(f, sum[i]));
  for (int i = 0; i < kR; ++i)
    for (int j = 0; j < kC; ++j)
      p.c[(row + i) * p.ldc + column + j] =
          finish(sums[i * kC + j], p.alpha, p.epilogue, row + i, column + j);
}

using DotsTile = void(const SmallProduct&, int64_t, int64_t);
constexpr int kDotRows = 4, kDotColumns = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
struct DotsTiles {
  DotsTile* get[kDotRows + 1][kDotColumns + 1] = {};
};
template <int... kI>
constexpr DotsTiles fill_dots(std::integer_sequence<int, kI...>) {
  DotsTiles tiles;
  ((tiles.get[kI / kDotColumns + 1][kI % kDotColumns + 1] =
        &dots_tile<kI / kDotColumns + 1, kI % kDotColumns + 1>),
   ...);
  return tiles;
}

/// Rows [begin, end) of C, all columns of each before the next, while A is near.
void dots_rows(const SmallProduct& p, int64_t begin, int64_t end) {
  static constexpr DotsTiles kTiles =
      fill_dots(std::make_integer_sequence<int, kDotRows * kDotColumns>());
  int64_t done = begin;  // rows of which nothing more becomes
  for (int64_t row = begin; row < end; row += kDotRows) {
    const int64_t rows = std::min<int64_t>(kDotRows, end - row);
    for (int64_t column = 0; column < p.n; column += kDotColumns)
      kTiles.get[rows][std::min<int64_t>(kDotColumns, p.n - column)](p, row, column);
    // For many rows at a time: vectors of one row would be mostly empty.
    constexpr int64_t kMany = 64;
    const BlockPost* const post = p.epilogue.post;
    if (post == nullptr || (row + rows < end && row + rows - done < kMany)) continue;
    post->apply(post->argument, p.c + done * p.ldc, p.ldc, done, row + rows - done, 0, p.n);
    done = row + rows;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

bool gemm_small_fits(int64_t m, int64_t n, int64_t k, const GemmEpilogue& epilogue) {
  // Narrower vectors have no masks: what is left of a row would go by memory.
  return vector_floats() >= 8 && m <= 64 && n <= 64 && k >= 1 && k <= 256 && n * k <= 4096 &&
         m * n * k <= 65536 && epilogue.post == nullptr;
}

namespace {
constexpr int64_t kShortRows = 64;
}

void gemm_small(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                int64_t ldb, bool trans_b, float alpha, float* c, int64_t ldc,
                const GemmEpilogue& epilogue) {
  using Fn = void(const SmallProduct&);
  SmallProduct product{m, n, k, a, lda, b, ldb, alpha, c, ldc, epilogue};
  // From a few rows on turning B costs less than adding up lanes for each element.
  const bool turn = trans_b && m > 4 && n > 1;
  if (turn) {
    float* const turned = thread_floats(3, static_cast<size_t>(n * k));
    transpose_tile(reinterpret_cast<const std::byte*>(b), ldb, reinterpret_cast<std::byte*>(turned),
                   n, n, k, sizeof(float));
    product.b = turned;
    product.ldb = n;
  }
  const bool column = n == 1 && (trans_b || ldb == 1);
  product.short_rows =
      k <= kShortRows && ((column && m >= vector_floats() && ldc == 1 && epilogue.is_plain()) ||
                          (trans_b && m == 1 && n >= vector_floats()));
  if ((trans_b && !turn) || column)
    TOMBOLO_TARGET(Fn, small_dots)(product);
  else
    TOMBOLO_TARGET(Fn, small_product)(product);
}

bool gemm_dots_fits(int64_t m, const GemmEpilogue& epilogue) {
  return vector_floats() >= 8 && m <= 4 && epilogue.post == nullptr;
}

void gemm_dots(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
               int64_t ldb, float alpha, float* c, int64_t ldc, const GemmEpilogue& epilogue) {
  using Fn = void(const SmallProduct&);
  parallel(n, std::max<int64_t>(4, 65536 / std::max<int64_t>(1, m * k)),
           [&](int64_t begin, int64_t end) {
             SmallProduct product{m,   end - begin, k,         a,   lda,      b + begin * ldb,
                                  ldb, alpha,       c + begin, ldc, epilogue, begin};
             product.short_rows = m == 1 && k <= kShortRows && n >= vector_floats();
             TOMBOLO_TARGET(Fn, small_dots)(product);
           });
}

namespace {
constexpr int64_t kFewColumns = 16;  ///< vectors of C that take columns of B where they are
constexpr int64_t kStreamRows = 2;
}  // namespace

bool gemm_few_fits(int64_t m, int64_t n) {
  return vector_floats() >= 8 &&
         (m <= kStreamRows || (m <= kMaxWideRows && n <= kFewColumns * vector_floats()));
}

void gemm_few(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
              int64_t ldb, float alpha, float* c, int64_t ldc, const GemmEpilogue& epilogue) {
  const SmallProduct product{m, n, k, a, lda, b, ldb, alpha, c, ldc, epilogue};
  const int64_t lanes = vector_floats(), vectors = (n + lanes - 1) / lanes;
  if (vectors <= kFewColumns) {
    using Fn = void(const SmallProduct&, int64_t, int64_t);
    parallel(vectors, std::max<int64_t>(1, 65536 / std::max<int64_t>(1, m * k * lanes)),
             [&](int64_t begin, int64_t end) {
               TOMBOLO_TARGET(Fn, few_columns)(product, begin, end);
             });
    return;
  }
  using Fn = void(const SmallProduct&, int64_t, int64_t, int64_t);
  const int64_t threads = thread_count();
  const int64_t least = threads == 1 || k * n < 65536 ? 1 : threads;
  const int64_t cuts = std::max((n + kStreamColumns - 1) / kStreamColumns, least);
  const int64_t width = round_up((n + cuts - 1) / cuts, lanes);
  parallel((n + width - 1) / width, 1, [&](int64_t begin, int64_t end) {
    TOMBOLO_TARGET(Fn, stream_columns)(product, width, begin, end);
  });
}

bool gemm_columns_fits(int64_t n, int64_t k) {
  const int64_t most = vector_floats() >= 16 ? 8 : 6;
  // Shorter rows: gemm_narrow(), which takes as long for one column as for eight.
  constexpr int64_t kLong = 128, kFew = 4, kShort = 20;
  return vector_floats() >= 8 && n <= most && (k > kLong || (n <= kFew && k >= n * kShort));
}

void gemm_columns(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                  int64_t ldb, float alpha, float* c, int64_t ldc, const GemmEpilogue& epilogue) {
  using Fn = void(const SmallProduct&, int64_t, int64_t);
  constexpr int64_t kRowsOfTile = 4;
  const SmallProduct product{m, n, k, a, lda, b, ldb, alpha, c, ldc, epilogue};
  parallel((m + kRowsOfTile - 1) / kRowsOfTile, std::max<int64_t>(1, 65536 / (n * k)),
           [&](int64_t begin, int64_t end) {
             TOMBOLO_TARGET(Fn, dots_rows)
             (product, begin * kRowsOfTile, std::min(m, end * kRowsOfTile));
           });
}

}  // namespace tombolo
#endif
