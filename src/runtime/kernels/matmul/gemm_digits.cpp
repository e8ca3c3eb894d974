#include "runtime/kernels/matmul/gemm_digits.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {

bool digits_fit(int64_t n, int64_t k) { return n >= 16 && k >= 64 && has_amx_int8(); }

}  // namespace tombolo

#if defined(__x86_64__)
#if !defined(__clang__)
// gcc 12 takes its own _mm512_undefined_* inside the intrinsics for a mistake (gcc bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#define TOMBOLO_DIGITS __attribute__((target("avx512f,avx512bw,avx512dq,amx-tile,amx-int8")))
#define TOMBOLO_DIGITS_INLINE TOMBOLO_DIGITS __attribute__((always_inline)) inline

namespace tombolo {
namespace {

constexpr int64_t kDigitTile = 1024;  // bytes: 16 lines of 64
constexpr int64_t kTileRows = 16;
constexpr int64_t kDigits = 4;
constexpr int64_t kStepA = kDigits * kDigitTile;
constexpr int64_t kStepB = 3 * kDigitTile;  // of the higher digits
constexpr int kIntegerBits = 30;
constexpr int kHighest = 6;        // the highest digit counts 2^(exponent - 6): a scale
constexpr int kMostExponent = 40;  // either way: products and their sums stay far inside of float

/// What is known of 16 rows or columns of numbers, or of 16 parts of one.
struct Numbers {
  __m512i greatest;  ///< bits without the sign
  __m512i some;      ///< how many are not zero
  __m512 roots;      ///< sum of about the square roots: a few large numbers do not hide the others
  __m512 squares;
};
TOMBOLO_DIGITS_INLINE Numbers no_numbers() {
  return {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_ps(), _mm512_setzero_ps()};
}
TOMBOLO_DIGITS_INLINE void look_at(__m512 x, Numbers& seen) {
  const __m512i bits = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7FFFFFFF));
  const __mmask16 some = _mm512_test_epi32_mask(bits, bits);
  seen.greatest = _mm512_max_epu32(seen.greatest, bits);
  seen.some = _mm512_mask_add_epi32(seen.some, some, seen.some, _mm512_set1_epi32(1));
  // Half of the exponent, with the mantissa behind it, is within 6 % of the root.
  const __m512i root = _mm512_add_epi32(_mm512_srli_epi32(bits, 1), _mm512_set1_epi32(0x1FBD1DF5));
  seen.roots = _mm512_mask_add_ps(seen.roots, some, seen.roots, _mm512_castsi512_ps(root));
  seen.squares = _mm512_fmadd_ps(x, x, seen.squares);
}

/// The same of one row or column.
struct Summary {
  uint32_t greatest = 0;
  int32_t some = 0;
  float roots = 0, squares = 0;

  /// About how large they are where they are not zero, whatever a few of them are.
  float usual() const {
    const float root = roots / static_cast<float>(std::max(1, some));
    return root * root;
  }
  /// 2^(30 - exponent) makes of them integers below 2^31, with room for digits to carry.
  int exponent() const {
    const int exponent = static_cast<int>(greatest >> 23) - 127;
    return exponent + ((greatest & 0x7FFFFF) >= 0x7E0000 ? 1 : 0);
  }
  /// Whether such integers hold them: what one rounds off is less than what a float of the usual
  /// size does.
  bool held() const {
    constexpr float kFarthest = 512;
    if (some == 0) return true;
    return std::abs(exponent()) <= kMostExponent &&
           std::bit_cast<float>(greatest) <= kFarthest * usual();
  }
  /// Whether a sum of products with them is one of many of about the same size, not of a few that
  /// are exact but for one rounding each: so many that B's lowest digit does not count.
  bool even() const {
    constexpr float kFewest = 48;
    const float sum = usual() * static_cast<float>(some);
    return sum * sum >= kFewest * squares;
  }
};
TOMBOLO_DIGITS_INLINE Summary summary_of(const Numbers& seen) {
  return {_mm512_reduce_max_epu32(seen.greatest), _mm512_reduce_add_epi32(seen.some),
          _mm512_reduce_add_ps(seen.roots), _mm512_reduce_add_ps(seen.squares)};
}

float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

/// a where the mask is set, b elsewhere.
TOMBOLO_DIGITS_INLINE __m512i pick(__m512i mask, __m512i a, __m512i b) {
  return _mm512_ternarylogic_epi32(mask, a, b, 0xCA);
}

/// Byte b of each of 4 x 16 integers: out[b] has in each lane those of x[0] to x[3], in order.
TOMBOLO_DIGITS_INLINE void turn_bytes(const __m512i (&x)[4], __m512i (&out)[4]) {
  const __m512i even = _mm512_set1_epi32(0x00FF00FF), low = _mm512_set1_epi32(0xFFFF);
  const __m512i even01 = pick(even, x[0], _mm512_slli_epi32(x[1], 8));
  const __m512i odd01 = pick(even, _mm512_srli_epi32(x[0], 8), x[1]);
  const __m512i even23 = pick(even, x[2], _mm512_slli_epi32(x[3], 8));
  const __m512i odd23 = pick(even, _mm512_srli_epi32(x[2], 8), x[3]);
  out[0] = pick(low, even01, _mm512_slli_epi32(even23, 16));
  out[1] = pick(low, odd01, _mm512_slli_epi32(odd23, 16));
  out[2] = pick(low, _mm512_srli_epi32(even01, 16), even23);
  out[3] = pick(low, _mm512_srli_epi32(odd01, 16), odd23);
}

/// The nearest integer of each number.
TOMBOLO_DIGITS_INLINE __m512i integers(__m512 x, __m512 scale) {
  return _mm512_cvtps_epi32(_mm512_mul_ps(x, scale));
}
/// Bytes that are the digits of x: half of a digit is added to each but the highest, and taken off
/// its byte without a carry.
TOMBOLO_DIGITS_INLINE __m512i digits_in(__m512i x, int32_t halves) {
  const __m512i half = _mm512_set1_epi32(halves);
  return _mm512_xor_si512(_mm512_add_epi32(x, half), half);
}
/// The same such that the three higher ones alone are the nearest, of two equally near the even
/// one: what is left out is not more often above than below. Where 128 would be the lowest, 127 is.
TOMBOLO_DIGITS_INLINE __m512i even_digits_in(__m512i x) {
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(x, 8), _mm512_set1_epi32(1));
  const __m512i higher =
      _mm512_srai_epi32(_mm512_add_epi32(_mm512_add_epi32(x, _mm512_set1_epi32(127)), odd), 8);
  const __m512i lowest =
      _mm512_min_epi32(_mm512_sub_epi32(x, _mm512_slli_epi32(higher, 8)), _mm512_set1_epi32(127));
  return _mm512_or_si512(_mm512_slli_epi32(digits_in(higher, 0x8080), 8),
                         _mm512_and_si512(lowest, _mm512_set1_epi32(255)));
}

/// Digits of 4 x 16 numbers, those of the three higher places a tile apart, the highest first: what
/// is in lane i of all four lies side by side.
TOMBOLO_DIGITS_INLINE void store_digits(const __m512i (&digits)[4], std::byte* higher,
                                        std::byte* lowest) {
  __m512i bytes[4];
  turn_bytes(digits, bytes);
  for (int i = 0; i < 3; ++i) _mm512_store_si512(higher + i * kDigitTile, bytes[3 - i]);
  _mm512_store_si512(lowest, bytes[0]);
}

inline __mmask16 digit_lanes(int64_t n) {
  return static_cast<__mmask16>(n >= 16 ? 0xFFFF : n <= 0 ? 0 : (1 << n) - 1);
}

/// A row of A, of `k` numbers, as line `line` of its tiles. Returns its scale, or 0 where integers
/// do not hold it and zeros are written. Clears `even` where it is not.
TOMBOLO_DIGITS float split_row(const float* a, int64_t k, int64_t line, std::byte* out,
                               bool& even) {
  Numbers seen = no_numbers();
  int64_t i = 0;
  for (; i + 16 <= k; i += 16) look_at(_mm512_loadu_ps(a + i), seen);
  if (i < k) look_at(_mm512_maskz_loadu_ps(digit_lanes(k - i), a + i), seen);
  const Summary numbers = summary_of(seen);
  const bool held = numbers.held();
  out += line * 64;
  if (!held || numbers.some == 0) {
    for (i = 0; i < k; i += kDigitsDepth, out += kStepA)
      for (int64_t d = 0; d < kDigits; ++d)
        _mm512_store_si512(out + d * kDigitTile, _mm512_setzero_si512());
    return held ? 1.0f : 0.0f;
  }
  even = even && numbers.even();
  const int exponent = numbers.exponent();
  const __m512 scale = _mm512_set1_ps(power_of_two(kIntegerBits - exponent));
  for (i = 0; i < k; i += kDigitsDepth, out += kStepA) {
    __m512i x[4];
    for (int64_t v = 0; v < 4; ++v)
      x[v] = digits_in(
          integers(_mm512_maskz_loadu_ps(digit_lanes(k - i - v * 16), a + i + v * 16), scale),
          0x808080);
    store_digits(x, out, out + 3 * kDigitTile);
  }
  return power_of_two(exponent - kHighest);
}

// The compiler does not know that tile instructions read and write memory.
#define TOMBOLO_AMX_FENCE() __asm__ volatile("" ::: "memory")

struct DigitTiles {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t column_bytes[16] = {};
  uint8_t rows[16] = {};
};
/// Tiles for so many rows of A.
TOMBOLO_DIGITS void set_tiles(int64_t rows) {
  alignas(64) DigitTiles config;
  for (int i = 0; i < 8; ++i) {
    config.column_bytes[i] = 64;
    config.rows[i] = static_cast<uint8_t>(i < 5 ? rows : 16);
  }
  TOMBOLO_AMX_FENCE();
  _tile_loadconfig(&config);
}
TOMBOLO_DIGITS void free_tiles() { _tile_release(); }

/// Sums of a tile on their way into C.
struct Finish {
  const int32_t* sums = nullptr;  ///< [4][16][16], of the highest digits first
  int64_t rows = 0;
  const float* row_scales = nullptr;
  const float* column_scales = nullptr;
  float* c = nullptr;
  int64_t ldc = 0;
  __mmask16 columns = 0;
  const float* add = nullptr;  ///< what lies there already, or is to be added
  int64_t ld_add = 0;
  const float* row_bias = nullptr;
  const float* column_bias = nullptr;
  bool clamp = false;
  float lo = 0, hi = 0;

  /// What row r starts from.
  TOMBOLO_DIGITS_INLINE __m512 begin(int64_t r, __m512 x) const {
    if (row_bias != nullptr) x = _mm512_add_ps(x, _mm512_set1_ps(row_bias[r]));
    if (add != nullptr) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(columns, add + r * ld_add));
    return x;
  }
  TOMBOLO_DIGITS_INLINE void end(int64_t r, __m512 x) const {
    if (clamp) x = _mm512_min_ps(_mm512_set1_ps(hi), _mm512_max_ps(_mm512_set1_ps(lo), x));
    _mm512_mask_storeu_ps(c + r * ldc, columns, x);
  }
};

TOMBOLO_DIGITS_INLINE __m512 as_floats(const int32_t* sums) {
  return _mm512_cvtepi32_ps(_mm512_load_si512(sums));
}

/// Rows [begin, end), but for those that go by vectors.
TOMBOLO_DIGITS_INLINE void finish_rows(const Finish& finish, int64_t begin, int64_t end) {
  if (begin >= end) return;
  const Finish f = finish;  // C cannot be part of it
  const __m512 place = _mm512_set1_ps(1.0f / 256), scales = _mm512_loadu_ps(f.column_scales);
  const __m512 bias = f.column_bias != nullptr ? _mm512_maskz_loadu_ps(f.columns, f.column_bias)
                                               : _mm512_setzero_ps();
  for (int64_t r = begin; r < end; ++r) {
    const float scale = f.row_scales[r];
    if (scale == 0) continue;
    const int32_t* const sums = f.sums + r * 16;
    __m512 x = _mm512_fmadd_ps(as_floats(sums + 3 * 256), place, as_floats(sums + 2 * 256));
    x = _mm512_fmadd_ps(x, place, as_floats(sums + 256));
    x = _mm512_fmadd_ps(x, place, as_floats(sums));
    f.end(r, _mm512_fmadd_ps(x, _mm512_mul_ps(scales, _mm512_set1_ps(scale)), f.begin(r, bias)));
  }
}

/// What will be needed soon: so many cache lines with each step.
struct Ahead {
  const std::byte* higher;
  const std::byte* lowest;
  int64_t lines, lowest_lines;
};

/// `steps` of k: digits of up to 16 rows by those of 16 columns, of B the three higher ones or all.
/// Products that count the same are added in one tile. Meanwhile the sums of the tile before are
/// finished.
template <bool kAll>
TOMBOLO_DIGITS void digits_tile(const std::byte* a, const std::byte* b, const std::byte* lowest,
                                int64_t steps, int32_t* sums, const Finish& before, Ahead next) {
  const int64_t each = (before.rows + steps - 1) / steps;
  TOMBOLO_AMX_FENCE();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t i = 0; i < steps; ++i, a += kStepA, b += kStepB) {
    for (int64_t line = 0; line < next.lines; ++line, next.higher += 64)
      __builtin_prefetch(next.higher, 0, 2);
    _tile_loadd(4, a, 64);
    if constexpr (kAll) {
      for (int64_t line = 0; line < next.lowest_lines; ++line, next.lowest += 64)
        __builtin_prefetch(next.lowest, 0, 2);
      _tile_loadd(7, lowest, 64);
      _tile_dpbssd(3, 4, 7);
      lowest += kDigitTile;
    }
    _tile_loadd(5, b, 64);
    _tile_dpbssd(0, 4, 5);
    _tile_loadd(6, b + kDigitTile, 64);
    _tile_dpbssd(1, 4, 6);
    _tile_loadd(7, b + 2 * kDigitTile, 64);
    _tile_dpbssd(2, 4, 7);
    _tile_loadd(4, a + kDigitTile, 64);
    _tile_dpbssd(1, 4, 5);
    _tile_dpbssd(2, 4, 6);
    _tile_dpbssd(3, 4, 7);
    _tile_loadd(4, a + 2 * kDigitTile, 64);
    _tile_dpbssd(2, 4, 5);
    _tile_dpbssd(3, 4, 6);
    _tile_loadd(4, a + 3 * kDigitTile, 64);
    _tile_dpbssd(3, 4, 5);
    finish_rows(before, i * each, std::min(before.rows, (i + 1) * each));
  }
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + 256, 64);
  _tile_stored(2, sums + 512, 64);
  _tile_stored(3, sums + 768, 64);
  TOMBOLO_AMX_FENCE();
}

/// Half a panel as floats, [k][16]; the scales are those of its columns.
TOMBOLO_DIGITS void join_digits(const std::byte* b, const DigitPanels& panels, const float* scales,
                                float* out) {
  const __m512 scale =
      _mm512_mul_ps(_mm512_loadu_ps(scales), _mm512_set1_ps(power_of_two(kHighest - kIntegerBits)));
  const std::byte* lowest = b + panels.steps() * kStepB;
  for (int64_t k0 = 0; k0 < panels.k; k0 += kDigitsDepth, b += kStepB, lowest += kDigitTile)
    for (int64_t line = 0; line < 16; ++line)
      for (int i = 0; i < 4; ++i) {
        const int64_t row = k0 + 16 * i + line;
        if (row >= panels.k) continue;
        __m512i x = _mm512_setzero_si512();
        for (int64_t d = 0; d < kDigits; ++d) {
          const __m512i four = _mm512_load_si512((d < 3 ? b + d * kDigitTile : lowest) + line * 64);
          x = _mm512_add_epi32(
              _mm512_slli_epi32(x, 8),
              _mm512_srai_epi32(_mm512_sll_epi32(four, _mm_cvtsi32_si128(24 - 8 * i)), 24));
        }
        _mm512_store_ps(out + row * 16, _mm512_mul_ps(_mm512_cvtepi32_ps(x), scale));
      }
}

/// Row r of a tile by vectors.
TOMBOLO_DIGITS void float_row(const Finish& f, int64_t r, const float* a, const float* b,
                              int64_t k) {
  __m512 sums[4];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  for (int64_t i = 0; i < k; ++i)
    sums[i % 4] = _mm512_fmadd_ps(_mm512_set1_ps(a[i]), _mm512_load_ps(b + i * 16), sums[i % 4]);
  const __m512 sum =
      _mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3]));
  const __m512 bias = f.column_bias != nullptr ? _mm512_maskz_loadu_ps(f.columns, f.column_bias)
                                               : _mm512_setzero_ps();
  f.end(r, _mm512_add_ps(sum, f.begin(r, bias)));
}

/// How A and the sums are cut.
struct DigitsPlan {
  int64_t rows;     ///< of a block: a multiple of 16
  int64_t tiles;    ///< of 16 rows in it
  int64_t blocks;   ///< of rows
  int64_t depth;    ///< steps that all panels of a task take before the next ones
  int64_t piece;    ///< steps that a tile takes: what it reads of A and B fits the first cache
  int64_t a_bytes;  ///< of the digits of a block
};
DigitsPlan plan_digits(int64_t m, const DigitPanels& panels) {
  constexpr int64_t kMostRows = 256, kMostSteps = 4;
  const auto parts = [](int64_t whole, int64_t most) { return (whole + most - 1) / most; };
  DigitsPlan plan{};
  plan.rows = round_up(parts(m, parts(m, kMostRows)), kTileRows);
  plan.blocks = parts(m, plan.rows);
  plan.tiles = plan.rows / kTileRows;
  const int64_t steps = panels.steps();
  // The same for all m: so are then the sums of a row.
  plan.piece = parts(steps, parts(steps, kMostSteps));
  const int64_t most = std::max(plan.piece, near_bytes() * 5 / 4 / (plan.tiles * kStepA));
  plan.depth = round_up(parts(steps, parts(steps, most)), plan.piece);
  plan.a_bytes = plan.tiles * steps * kStepA;
  return plan;
}

struct DigitsProduct {
  int64_t m;
  const float* a;
  int64_t lda;
  const std::byte* b;  ///< its panels
  const float* column_scales;
  const DigitPanels& panels;
  float* c;
  int64_t ldc;
  const GemmEpilogue& e;
  const DigitsPlan& plan;

  const std::byte* half_at(int64_t column) const { return b + column / 16 * panels.half(); }
  Finish finish_of(int64_t row, int64_t rows, int64_t column, const float* scales, bool first,
                   bool last) const {
    Finish f;
    f.rows = rows;
    f.row_scales = scales;
    f.column_scales = column_scales + column;
    f.c = c + row * ldc + column;
    f.ldc = ldc;
    f.columns = digit_lanes(panels.n - column);
    f.add = !first ? f.c : e.init != nullptr ? e.init + row * e.ldi + column : nullptr;
    f.ld_add = first ? e.ldi : ldc;
    f.row_bias = first && e.row_bias != nullptr ? e.row_bias + row : nullptr;
    f.column_bias = first && e.col_bias != nullptr ? e.col_bias + column : nullptr;
    f.clamp = last && e.clamp;
    f.lo = e.lo;
    f.hi = e.hi;
    return f;
  }
};

/// The rows of a block as digits, and what is known of them.
struct SplitRows {
  const std::byte* digits;
  const float* scales;  ///< of each row
  const float* even;    ///< of each tile: 1, or 0 where one of its rows is not
};

/// Up to 16 rows of A from `row` on as digits. Returns whether they are even.
TOMBOLO_DIGITS bool split_rows(const DigitsProduct& p, int64_t row, int64_t rows, std::byte* out,
                               float* scales) {
  const int64_t bytes = p.panels.steps() * kStepA;
  bool even = true;
  for (int64_t line = 0; line < kTileRows; ++line) {
    if (line < rows) {
      scales[line] = split_row(p.a + (row + line) * p.lda, p.panels.k, line, out, even);
      continue;
    }
    for (int64_t i = 0; i < bytes; i += kDigitTile)
      _mm512_store_si512(out + i + line * 64, _mm512_setzero_si512());
  }
  return even;
}

/// Those of `rows` rows from `row` on that integers do not hold, by a panel.
TOMBOLO_DIGITS void odd_rows(const DigitsProduct& p, const float* scales, int64_t row, int64_t rows,
                             int64_t column) {
  float* const b = thread_floats(5, static_cast<size_t>(p.panels.k * 16));
  for (const int64_t end = std::min(p.panels.n, column + kDigitsWidth); column < end;
       column += 16) {
    join_digits(p.half_at(column), p.panels, p.column_scales + column, b);
    const Finish f = p.finish_of(row, rows, column, scales, true, true);
    for (int64_t r = 0; r < rows; ++r)
      if (scales[r] == 0) float_row(f, r, p.a + (row + r) * p.lda, b, p.panels.k);
  }
}

/// Rows [row, row + rows) by panels [from, to).
TOMBOLO_DIGITS void digits_block(const DigitsProduct& p, const SplitRows& a, int64_t row,
                                 int64_t rows, int64_t from, int64_t to) {
  alignas(64) int32_t sums[2][4 * 256];
  const int64_t steps = p.panels.steps(), half_bytes = p.panels.half();
  const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  const auto none = [](const float* flags, int64_t n) {
    return std::find(flags, flags + n, 0.0f) == flags + n;
  };
  const bool odd = !none(a.scales, rows);
  const bool three = p.panels.three && none(a.even, tiles);
  constexpr int64_t kLines = kDigitTile / 64;
  Ahead ahead{nullptr, nullptr, (3 * kLines + tiles - 1) / tiles,
              three ? 0 : (kLines + tiles - 1) / tiles};
  int turn = 0;
  Finish before;
  for (int64_t start = 0; start < steps; start += p.plan.depth) {
    const int64_t stop = std::min(steps, start + p.plan.depth);
    for (int64_t panel = from * kDigitsWidth; panel < to * kDigitsWidth; panel += kDigitsWidth) {
      const int64_t columns = std::min(kDigitsWidth, p.panels.n - panel);
      for (int64_t at = start; at < stop; at += p.plan.piece) {
        const int64_t count = std::min(p.plan.piece, stop - at);
        const bool first = at == 0, last = at + count == steps;
        for (int64_t column = panel; column < panel + columns; column += 16) {
          const std::byte* const b = p.half_at(column) + at * kStepB;
          const std::byte* const lowest = p.half_at(column) + steps * kStepB + at * kDigitTile;
          // The same piece of the next columns is asked for.
          ahead.higher = b + half_bytes;
          ahead.lowest = lowest + half_bytes;
          for (int64_t t = 0; t < tiles; ++t) {
            const int64_t r = t * kTileRows, some = std::min(kTileRows, rows - r);
            int32_t* const into = sums[turn];
            (p.panels.three && a.even[t] != 0
                 ? digits_tile<false>
                 : digits_tile<true>)(a.digits + (t * steps + at) * kStepA, b, lowest, count, into,
                                      before, ahead);
            ahead.higher += ahead.lines * count * 64;
            ahead.lowest += ahead.lowest_lines * count * 64;
            before = p.finish_of(row + r, some, column, a.scales + r, first, last);
            before.sums = into;
            turn ^= 1;
          }
        }
      }
      if (stop < steps || (!odd && p.e.post == nullptr)) continue;
      finish_rows(before, 0, before.rows);
      before.rows = 0;
      if (odd) odd_rows(p, a.scales, row, rows, panel);
      if (p.e.post != nullptr)
        p.e.post->apply(p.e.post->argument, p.c + row * p.ldc + panel, p.ldc, row, rows, panel,
                        columns);
    }
  }
  finish_rows(before, 0, before.rows);
}

/// What is known of 16 columns, in memory.
struct alignas(64) ColumnNumbers {
  std::byte greatest[64] = {}, some[64] = {}, roots[64] = {}, squares[64] = {};

  Summary column(int64_t i) const {
    Summary summary;
    std::memcpy(&summary.greatest, greatest + i * 4, 4);
    std::memcpy(&summary.some, some + i * 4, 4);
    std::memcpy(&summary.roots, roots + i * 4, 4);
    std::memcpy(&summary.squares, squares + i * 4, 4);
    return summary;
  }
};

TOMBOLO_DIGITS void look_down(const std::byte* b, int64_t rows, int64_t step, int64_t columns,
                              ColumnNumbers& numbers) {
  Numbers seen{_mm512_load_si512(numbers.greatest), _mm512_load_si512(numbers.some),
               _mm512_load_ps(numbers.roots), _mm512_load_ps(numbers.squares)};
  const __mmask16 there = digit_lanes(columns);
  for (int64_t i = 0; i < rows; ++i, b += step) look_at(_mm512_maskz_loadu_ps(there, b), seen);
  _mm512_store_si512(numbers.greatest, seen.greatest);
  _mm512_store_si512(numbers.some, seen.some);
  _mm512_store_ps(numbers.roots, seen.roots);
  _mm512_store_ps(numbers.squares, seen.squares);
}

TOMBOLO_DIGITS Summary look_along(const std::byte* b, int64_t k) {
  Numbers seen = no_numbers();
  for (int64_t i = 0; i < k; i += 16)
    look_at(_mm512_maskz_loadu_ps(digit_lanes(k - i), b + i * 4), seen);
  return summary_of(seen);
}

std::vector<Summary> look_at_columns(const std::byte* b, int64_t k, int64_t n, bool turned,
                                     const ReadFloats& read) {
  constexpr int64_t kFloats = int64_t{1} << 20;
  std::vector<Summary> columns(static_cast<size_t>(n));
  if (turned) {
    const int64_t some = std::max<int64_t>(1, kFloats / k);
    for (int64_t from = 0; from < n; from += some) {
      const int64_t to = std::min(n, from + some);
      parallel(to - from, std::max<int64_t>(1, 16384 / k), [&](int64_t begin, int64_t end) {
        for (int64_t j = from + begin; j < from + end; ++j)
          columns[static_cast<size_t>(j)] = look_along(b + j * k * 4, k);
      });
      read.done(read.argument, from * k, to * k);
    }
    return columns;
  }
  const int64_t groups = (n + 15) / 16, some = std::max<int64_t>(1, kFloats / n);
  std::vector<ColumnNumbers> numbers(static_cast<size_t>(groups));
  for (int64_t from = 0; from < k; from += some) {
    const int64_t to = std::min(k, from + some);
    parallel(groups, std::max<int64_t>(4, 1024 / (to - from)), [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g)
        look_down(b + (from * n + g * 16) * 4, to - from, n * 4, n - g * 16,
                  numbers[static_cast<size_t>(g)]);
    });
    read.done(read.argument, from * n, to * n);
  }
  for (int64_t j = 0; j < n; ++j)
    columns[static_cast<size_t>(j)] = numbers[static_cast<size_t>(j / 16)].column(j % 16);
  return columns;
}

/// What three digits lose of a column, of its usual size: a root mean square.
double loss_of(const Summary& column, int64_t k) {
  if (column.some == 0) return 0;
  const double step = std::ldexp(1.0, column.exponent() - kIntegerBits + 8);
  return step / std::sqrt(12.0 * static_cast<double>(column.squares) / static_cast<double>(k));
}

}  // namespace

std::optional<DigitPanels> digits_of(const std::byte* b, int64_t k, int64_t n, bool turned,
                                     const ReadFloats& read, float* scales) {
  // Sums of floats are off by 1.4e-7 (64 numbers) to 3e-7 (256 and more) of their size.
  constexpr double kLoss = 2e-7, kMostLoss = 4 * kLoss;
  const std::vector<Summary> columns = look_at_columns(b, k, n, turned, read);
  std::fill_n(scales, round_up(n, kDigitsWidth), 0.0f);
  double squares = 0, most = 0;
  for (const Summary& column : columns) {
    if (!column.held()) return std::nullopt;
    if (column.some != 0) *scales = power_of_two(column.exponent() - kHighest);
    ++scales;
    const double loss = loss_of(column, k);
    squares += loss * loss;
    most = std::max(most, loss);
  }
  const bool three = most <= kMostLoss && squares <= kLoss * kLoss * static_cast<double>(n);
  return DigitPanels{k, n, three};
}

TOMBOLO_DIGITS void digits_pack(const float* rows, int64_t k0, int64_t k, const DigitPanels& panels,
                                int64_t panel, std::byte* matrix) {
  const auto* const scales = reinterpret_cast<const float*>(matrix) + panel * kDigitsWidth;
  std::byte* const begins = matrix + panels.scales() + panel * 2 * panels.half();
  for (int64_t half = 0; half < 2; ++half) {
    const __m512 column = _mm512_loadu_ps(scales + half * 16);
    const __m512 scale =
        _mm512_maskz_div_ps(_mm512_cmp_ps_mask(column, _mm512_setzero_ps(), _CMP_NEQ_UQ),
                            _mm512_set1_ps(power_of_two(kIntegerBits - kHighest)), column);
    const int64_t step = k0 / kDigitsDepth;
    std::byte* out = begins + half * panels.half() + step * kStepB;
    std::byte* lowest = begins + half * panels.half() + panels.steps() * kStepB + step * kDigitTile;
    for (int64_t i = 0; i < k; i += kDigitsDepth, out += kStepB, lowest += kDigitTile)
      for (int64_t line = 0; line < 16; ++line) {
        __m512i x[4];
        for (int64_t v = 0; v < 4; ++v) {
          const int64_t row = i + v * 16 + line;
          x[v] = row < k ? even_digits_in(integers(
                               _mm512_loadu_ps(rows + row * kDigitsWidth + half * 16), scale))
                         : _mm512_setzero_si512();
        }
        store_digits(x, out + line * 64, lowest + line * 64);
      }
  }
}

void gemm_digits(int64_t m, const float* a, int64_t lda, const std::byte* b,
                 const DigitPanels& panels, float* c, int64_t ldc, const GemmEpilogue& epilogue) {
  if (m <= 0) return;
  constexpr int64_t kMostBytes = 16 << 20;
  const DigitsPlan plan = plan_digits(m, panels);
  const auto* const column_scales = reinterpret_cast<const float*>(b);
  const DigitsProduct p{m,   a,        lda, b + panels.scales(), column_scales, panels, c,
                        ldc, epilogue, plan};
  const int64_t threads = thread_count();
  const int64_t at_once =
      threads == 1 ? 1 : std::clamp<int64_t>(kMostBytes / plan.a_bytes, 1, plan.blocks);
  float* const scales =
      thread_floats(4, static_cast<size_t>(at_once * (2 * plan.rows + plan.a_bytes / 4)));
  float* const even = scales + at_once * plan.rows;
  auto* const digits = reinterpret_cast<std::byte*>(even + at_once * plan.rows);
  for (int64_t done = 0; done < plan.blocks; done += at_once) {
    const int64_t blocks = std::min(at_once, plan.blocks - done);
    parallel(
        blocks * plan.tiles, std::max<int64_t>(1, 512 / panels.k), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t row = done * plan.rows + i * kTileRows;
            if (row >= m) continue;
            std::byte* const to = digits + i * panels.steps() * kStepA;
            even[i] = split_rows(p, row, std::min(kTileRows, m - row), to, scales + i * kTileRows)
                          ? 1.0f
                          : 0.0f;
          }
        });
    // Several tasks for each thread: cores are not equally fast at all times.
    const int64_t groups =
        threads == 1 ? 1 : std::clamp<int64_t>(8 * threads / blocks, 1, panels.panels());
    parallel(blocks * groups, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t block = task / groups, at = task % groups;
        const int64_t row = (done + block) * plan.rows, rows = std::min(plan.rows, m - row);
        set_tiles(std::min(rows, kTileRows));
        digits_block(
            p,
            {digits + block * plan.a_bytes, scales + block * plan.rows, even + block * plan.tiles},
            row, rows, panels.panels() * at / groups, panels.panels() * (at + 1) / groups);
        free_tiles();
      }
    });
  }
}

}  // namespace tombolo

#else

namespace tombolo {
std::optional<DigitPanels> digits_of(const std::byte*, int64_t, int64_t, bool, const ReadFloats&,
                                     float*) {
  return std::nullopt;
}
void digits_pack(const float*, int64_t, int64_t, const DigitPanels&, int64_t, std::byte*) {}
void gemm_digits(int64_t, const float*, int64_t, const std::byte*, const DigitPanels&, float*,
                 int64_t, const GemmEpilogue&) {}
}  // namespace tombolo

#endif
