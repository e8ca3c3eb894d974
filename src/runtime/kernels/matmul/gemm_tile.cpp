#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/matmul/gemm_tile.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <utility>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/matmul/gemm_tile-inl.h"
#include "runtime/kernels/matmul/gemm_tile.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of B. What is far comes into the second cache, which waits for more lines at a time than the
// first: it decides how fast weights come from memory.
inline constexpr int64_t kAhead = 12, kFar = 96;
inline constexpr int64_t kBetween = 24;  ///< where few rows leave no time to ask twice
inline constexpr int64_t kBesideOthers = 32;
inline constexpr int64_t kFarHalves = 4096;  ///< halves that a panel alone is asked for ahead

template <int kR, int kV, bool kPacked, PanelFormat kFormat = PanelFormat::kFloat32,
          bool kWidens = kFormat != PanelFormat::kFloat32>
void tile(const GemmTile& t) {
  static_assert(!kWidens || kR > 2);
  const F f;
  V acc[kR][kV];
  begin<kR, kV>(t, acc);
  RowsOfA<kR, kPacked> a(t.a, t.lda);
  const auto* HWY_RESTRICT b = reinterpret_cast<const typename Element<kFormat>::Type*>(t.b);
  float* HWY_RESTRICT widened = t.widened;
  const int64_t ldb = t.ldb;
  int64_t k = t.k;
  if constexpr (kR <= 2) {
    // Too few sums to hide the latency of a fused multiply-add: keep four sets.
    V more[3][kR][kV];
    for (int s = 0; s < 3; ++s)
#pragma GCC unroll 4
      for (int r = 0; r < kR; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < kV; ++v) more[s][r][v] = hn::Zero(f);
    for (; k >= 4; k -= 4) {
      // A panel lies in one piece: four rows of it are eight lines.
#pragma GCC unroll 8
      for (int line = 0; line < 4; ++line) {
        __builtin_prefetch(b + (kBetween + line) * ldb);
        if (kV > 1) __builtin_prefetch(b + (kBetween + line) * ldb + 16);
      }
      step<kR, kV, kPacked>(acc, a, b);
      step<kR, kV, kPacked>(more[0], a, b + ldb, nullptr, 1);
      step<kR, kV, kPacked>(more[1], a, b + 2 * ldb, nullptr, 2);
      step<kR, kV, kPacked>(more[2], a, b + 3 * ldb, nullptr, 3);
      a.advance(4);
      b += 4 * ldb;
    }
#pragma GCC unroll 4
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < kV; ++v)
        acc[r][v] =
            hn::Add(hn::Add(acc[r][v], more[0][r][v]), hn::Add(more[1][r][v], more[2][r][v]));
  }
  constexpr bool kTwice = kR >= 8;
  /// Of k at a time.
  constexpr int kSteps = (kPacked || HWY_LANES(float) < 16) && !kTwice && kR > 2 ? 4 : 1;
  const auto* next = t.next != nullptr
                         ? t.next
                         : reinterpret_cast<const float*>(b + (kTwice ? kFar : kBetween) * ldb);
  const int64_t next_step = t.next != nullptr ? t.next_step : ldb;
  const int64_t also = t.next != nullptr ? t.next_also : kSteps == 4 ? 2 * ldb : 16;
  Parts<kR, kV> parts;
  bool any = false;
  while (k > 0) {
    const int64_t part = next_part(k);
    k -= part;
    int64_t i = 0;
    if constexpr (kSteps == 4) {
      // Four steps at a time: sixteen registers do with few sums a step, so what surrounds them
      // counts, most where another thread shares the core.
      for (; i + 4 <= part; i += 4) {
        __builtin_prefetch(next, 0, 2);
        __builtin_prefetch(next + also, 0, 2);
        next += 4 * next_step;
#pragma GCC unroll 4
        for (int s = 0; s < 4; ++s, b += ldb) {
          step<kR, kV, kPacked, kFormat, kWidens>(acc, a, b, widened, kPacked ? 0 : s);
          if constexpr (kPacked) a.advance();
          if constexpr (kWidens) widened += kV * HWY_LANES(float);
        }
        if constexpr (!kPacked) a.advance(4);
      }
    }
    for (; i < part; ++i) {
      if constexpr (kTwice && kV == 1) {
        // A load for each product already: nothing more fits beside them.
      } else if constexpr (kTwice) {
        __builtin_prefetch(b + kAhead * ldb);
        __builtin_prefetch(b + kAhead * ldb + 16);
        __builtin_prefetch(next, 0, 2);
        __builtin_prefetch(next + also, 0, 2);
      } else {
        __builtin_prefetch(next);
      }
      if (kR < 8 && kV > 1) __builtin_prefetch(next + also, 0, 3);
      next += next_step;
      step<kR, kV, kPacked, kFormat, kWidens>(acc, a, b, widened);
      if constexpr (kWidens) widened += kV * HWY_LANES(float);
      a.advance();
      b += ldb;
    }
    if (any) parts.take(acc);
    any = k > 0;
    if (any) parts.put(acc);
  }
  finish(t, acc);
}

/// Some panels of B side by side. Floats that come from memory are left to the processor's own
/// streams, where there are several: asking for lines besides took as many of its buffers as it
/// gave. One stream alone stops at each page, and is asked for: twice as fast. Halves leave less
/// time for each line and are asked for, too: a sixth faster on Intel's processors.
template <PanelFormat kFormat, int kR, int kP>
void wide(const GemmTile& t) {
  using B = Element<kFormat>;
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  V acc[kR][2 * kP];
  zero(acc);
  const float* HWY_RESTRICT a = t.a;
  const auto* HWY_RESTRICT b = reinterpret_cast<const typename B::Type*>(t.b);
  const int64_t lda = t.lda, ldb = t.ldb, panel = t.panel_step;
  [[maybe_unused]] const int64_t far = t.near ? 0 : kFarAlone * ldb;
  [[maybe_unused]] const int64_t ahead = t.near ? 0 : kAlone * ldb;
  Parts<kR, 2 * kP> parts;
  bool any = false;
  for (int64_t k = t.k; k > 0;) {
    const int64_t part = next_part(k);
    k -= part;
    for (int64_t i = 0; i < part; ++i) {
      if constexpr (kP == 1 && kFormat == PanelFormat::kFloat32) {
        __builtin_prefetch(b + far, 0, 2);
        __builtin_prefetch(b + ahead);
      } else if constexpr (kP == 1) {
        __builtin_prefetch(b + kFarHalves);
      }
#pragma GCC unroll 4
      for (int p = 0; p < kP; ++p) {
        if constexpr (kP > 1 && kFormat != PanelFormat::kFloat32)
          __builtin_prefetch(b + p * panel + kBesideOthers * ldb);
        V left = B::load(b + p * panel), right = B::load(b + p * panel + lanes);
        if constexpr (kR == 2 || (kR > 2 && HWY_TARGET <= HWY_AVX3)) {
          keep_in_register(left);
          keep_in_register(right);
        }
#pragma GCC unroll 8
        for (int r = 0; r < kR; ++r) {
          const V av = hn::Set(f, a[r * lda]);
          acc[r][2 * p] = hn::MulAdd(av, left, acc[r][2 * p]);
          acc[r][2 * p + 1] = hn::MulAdd(av, right, acc[r][2 * p + 1]);
        }
      }
      ++a;
      b += ldb;
    }
    if (any) parts.take(acc);
    any = k > 0;
    if (any) parts.put(acc);
  }
  finish(t, acc);
}

/// GemmTiles::short_rows, of kV vectors of columns, the last one whole or not; `plain`: sums are
/// the result.
template <int kK, int kV, bool kWhole, bool kPlain>
void short_sums(const GemmTile& t, int64_t rows) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  V b[kK][kV];
#pragma GCC unroll 16
  for (int k = 0; k < kK; ++k)
    for (int v = 0; v < kV; ++v) b[k][v] = hn::LoadU(f, t.b + k * t.ldb + v * lanes);
  const float* HWY_RESTRICT a = t.a;
  float* c = t.c;
  const int64_t lda = t.lda, ldc = t.ldc, last = t.cols - (kV - 1) * lanes;
  const auto load = [&](const float* from, int v) HWY_ATTR __attribute__((always_inline)) {
    if constexpr (kWhole) return hn::LoadU(f, from + v * lanes);
    return v < kV - 1 ? hn::LoadU(f, from + v * lanes) : load_n(f, from + v * lanes, last);
  };
  const bool columns = t.col_bias != nullptr, clamp = t.clamp;
  V bias[kV];
#pragma GCC unroll 2
  for (int v = 0; v < kV; ++v) bias[v] = columns ? load(t.col_bias, v) : hn::Zero(f);
  const V lo = hn::Set(f, t.lo), hi = hn::Set(f, t.hi);
  const float* const row_bias = t.row_bias;
  const float* init = t.init;
  for (int64_t r = 0; r < rows; ++r, a += lda, c += ldc) {
    // Of the next panel, which comes after the other rows. AVX-512's is more than a line.
    if (HWY_LANES(float) < 16) __builtin_prefetch(c + kV * lanes, 1);
    V sum[kV];
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) sum[v] = hn::Zero(f);
#pragma GCC unroll 16
    for (int k = 0; k < kK; ++k) {
      const V av = hn::Set(f, a[k]);
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v) sum[v] = hn::MulAdd(av, b[k][v], sum[v]);
    }
    const auto each = [&](auto&& made) HWY_ATTR __attribute__((always_inline)) {
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v) sum[v] = made(sum[v], v);
    };
    // In the order of finish_whole().
    if (!kPlain && row_bias != nullptr)
      each([&](V x, int) HWY_ATTR { return hn::Add(x, hn::Set(f, row_bias[r])); });
    if (!kPlain && columns) each([&](V x, int v) HWY_ATTR { return hn::Add(x, bias[v]); });
    if (!kPlain && init != nullptr) {
      each([&](V x, int v) HWY_ATTR { return hn::Add(x, load(init, v)); });
      init += t.ldi;
    }
    if (!kPlain && clamp) each([&](V x, int) HWY_ATTR { return min_of(hi, max_of(lo, x)); });
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v)
      if (kWhole || v < kV - 1)
        hn::StoreU(sum[v], f, c + v * lanes);
      else
        store_n(sum[v], f, c + v * lanes, last);
  }
}
template <int kK>
void short_rows(const GemmTile& t, int64_t rows) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(F()));
  const bool more = t.row_bias != nullptr || t.col_bias != nullptr || t.init != nullptr || t.clamp;
  const bool two = t.cols > lanes, whole = t.cols % lanes == 0;
  if (!whole)
    return two ? short_sums<kK, 2, false, false>(t, rows)
               : short_sums<kK, 1, false, false>(t, rows);
  if (two)
    return more ? short_sums<kK, 2, true, false>(t, rows) : short_sums<kK, 2, true, true>(t, rows);
  more ? short_sums<kK, 1, true, false>(t, rows) : short_sums<kK, 1, true, true>(t, rows);
}

/// GemmTiles::pack_rows.
void pack_rows_of_b(const float* b, int64_t row, int64_t k, int64_t n, float alpha, float* out) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const V factor = hn::Set(f, alpha);
  const bool one = n <= lanes;
  for (int64_t i = 0; i < k; ++i, b += row, out += 2 * lanes) {
    const V left = load_n(f, b, n), right = one ? hn::Zero(f) : load_n(f, b + lanes, n - lanes);
    hn::StoreU(alpha == 1 ? left : hn::Mul(left, factor), f, out);
    hn::StoreU(alpha == 1 ? right : hn::Mul(right, factor), f, out + lanes);
  }
}

/// GemmTiles::scale.
void scale_panel(float* x, int64_t n, float alpha) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const V factor = hn::Set(f, alpha);
  for (int64_t i = 0; i < n; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(f, x + i), factor), f, x + i);
}

template <int... kR>
void fill(GemmTiles& tiles, std::integer_sequence<int, kR...>) {
  ((tiles.row_major[kR + 1][1] = &tile<kR + 1, 1, false>), ...);
  ((tiles.row_major[kR + 1][2] = &tile<kR + 1, 2, false>), ...);
  ((tiles.packed[kR + 1][1] = &tile<kR + 1, 1, true>), ...);
  ((tiles.packed[kR + 1][2] = &tile<kR + 1, 2, true>), ...);
}

template <int... kK>
void fill_short(GemmTiles& tiles, std::integer_sequence<int, kK...>) {
  ((tiles.short_rows[kK + 1] = &short_rows<kK + 1>), ...);
}

// More rows than wide tiles have are cut into tiles of at least half of the most.
template <PanelFormat kFormat, int... kR>
void fill_widening(GemmTiles& tiles, std::integer_sequence<int, kR...>) {
  auto& to = tiles.widening[static_cast<int>(kFormat)];
  ((to[kR + kRows / 2][0] = &tile<kR + kRows / 2, 2, false, kFormat, true>), ...);
  if (tiles.packs_rows || kFormat == PanelFormat::kFloat32)
    ((to[kR + kRows / 2][1] = &tile<kR + kRows / 2, 2, true, kFormat, true>), ...);
}

template <PanelFormat kFormat, int... kR>
void fill_wide(GemmTiles& tiles, std::integer_sequence<int, kR...>) {
  constexpr int kSums = kRows * 2;  // that registers hold
  auto& to = tiles.wide[static_cast<int>(kFormat)];
  (((to[kR + 1][1] = &wide<kFormat, kR + 1, 1>),
    (to[kR + 1][2] = (kR + 1) * 4 <= kSums ? &wide<kFormat, kR + 1, 2> : nullptr),
    (to[kR + 1][4] = (kR + 1) * 8 <= kSums ? &wide<kFormat, kR + 1, 4> : nullptr)),
   ...);
}

GemmTiles make_tiles() {
  GemmTiles tiles{kRows, static_cast<int>(hn::Lanes(F()))};
  tiles.packs_rows = kRows < 8;
  tiles.pack_rows = &pack_rows_of_b;
  tiles.scale = &scale_panel;
  fill(tiles, std::make_integer_sequence<int, kRows>());
  // Sixteen registers hold no more of B than a tile's rows pay for.
  fill_short(tiles, std::make_integer_sequence < int, HWY_TARGET <= HWY_AVX3 ? kMaxShort : 12 > ());
  constexpr std::make_integer_sequence<int, kMaxWideRows> few;
  fill_wide<PanelFormat::kFloat32>(tiles, few);
  constexpr std::make_integer_sequence<int, kRows - kRows / 2 + 1> tall;
  fill_fixed26(tiles);
  fill_widening<PanelFormat::kFloat32>(tiles, tall);
  fill_wide<PanelFormat::kBfloat16>(tiles, few);
  fill_widening<PanelFormat::kBfloat16>(tiles, tall);
#if HWY_TARGET <= HWY_AVX2
  fill_wide<PanelFormat::kFloat16>(tiles, few);
  fill_widening<PanelFormat::kFloat16>(tiles, tall);
#endif
  return tiles;
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

const GemmTiles& gemm_tiles() {
  static IsaTables<GemmTiles> tables;
  return tables.get(TOMBOLO_TARGET(GemmTiles(), make_tiles));
}

}  // namespace tombolo
#endif
