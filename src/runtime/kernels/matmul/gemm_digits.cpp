#include "runtime/kernels/matmul/gemm_digits.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {

bool digits_fit(int64_t n, int64_t k) { return n >= 16 && k >= 64 && has_amx_int8(); }

bool digits_pay_for_floats(int64_t m, int64_t n, int64_t k) {
  return has_amx_int8() && k >= 128 && m >= 96 && n >= 96 && m * n >= 128 * 192;
}

}  // namespace tombolo

#if defined(__x86_64__)
#if !defined(__clang__)
// gcc 12 takes its own _mm512_undefined_* inside the intrinsics for a mistake (gcc bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#include "runtime/kernels/amx.h"

#define TOMBOLO_DIGITS __attribute__((target("avx512f,avx512bw,avx512dq,amx-tile,amx-int8")))
#define TOMBOLO_DIGITS_INLINE TOMBOLO_DIGITS __attribute__((always_inline)) inline

namespace tombolo {
namespace {

constexpr int64_t kDigitTile = 1024;  // bytes: 16 lines of 64
constexpr int64_t kDigits = 4;
constexpr int64_t kStepBytes = kDigits * kDigitTile;
constexpr int kIntegerBits = 30;
constexpr int kHighest = 6;        // the highest digit counts 2^(exponent - 6): a scale
constexpr int kMostExponent = 40;  // either way: products and their sums stay far inside of float

/// What is known of 16 rows or columns of numbers, or of 16 parts of one.
struct Numbers {
  __m512i greatest;  ///< bits without the sign
  __m512i some;      ///< how many are not zero
  __m512 roots;      ///< sum of about the square roots: a few large numbers do not hide the others
};
TOMBOLO_DIGITS_INLINE Numbers no_numbers() {
  return {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_ps()};
}
TOMBOLO_DIGITS_INLINE void look_at(__m512 x, Numbers& seen) {
  const __m512i bits = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7FFFFFFF));
  const __mmask16 some = _mm512_test_epi32_mask(bits, bits);
  seen.greatest = _mm512_max_epu32(seen.greatest, bits);
  seen.some = _mm512_mask_add_epi32(seen.some, some, seen.some, _mm512_set1_epi32(1));
  // Half of the exponent, with the mantissa behind it, is within 6 % of the root.
  const __m512i root = _mm512_add_epi32(_mm512_srli_epi32(bits, 1), _mm512_set1_epi32(0x1FBD1DF5));
  seen.roots = _mm512_mask_add_ps(seen.roots, some, seen.roots, _mm512_castsi512_ps(root));
}

/// The same of one row or column.
struct Summary {
  uint32_t greatest = 0;
  int32_t some = 0;
  float roots = 0;

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
};
TOMBOLO_DIGITS_INLINE Summary summary_of(const Numbers& seen) {
  return {_mm512_reduce_max_epu32(seen.greatest), _mm512_reduce_add_epi32(seen.some),
          _mm512_reduce_add_ps(seen.roots)};
}

float power_of_two(int exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

DigitScale scale_of(const Summary& numbers) {
  if (!numbers.held()) return {-1, 0};
  if (numbers.some == 0) return {1, 0};
  return {power_of_two(numbers.exponent() - kHighest), numbers.exponent()};
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

/// The nearest integer of each number, in bytes that are its digits: half of a digit is added to
/// each but the highest, and taken off its byte without a carry.
TOMBOLO_DIGITS_INLINE __m512i digits_in(__m512 x, __m512 scale) {
  const __m512i halves = _mm512_set1_epi32(0x808080);
  const __m512i integer = _mm512_cvtps_epi32(_mm512_mul_ps(x, scale));
  return _mm512_xor_si512(_mm512_add_epi32(integer, halves), halves);
}

/// Digits of 4 x 16 numbers, the highest first, `step` bytes apart: what is in lane i of all four
/// lies side by side.
TOMBOLO_DIGITS_INLINE void store_digits(const __m512i (&digits)[4], std::byte* out, int64_t step) {
  __m512i bytes[4];
  turn_bytes(digits, bytes);
  for (int i = 0; i < kDigits; ++i) _mm512_store_si512(out + i * step, bytes[kDigits - 1 - i]);
}

inline __mmask16 digit_lanes(int64_t n) {
  return static_cast<__mmask16>(n >= 16 ? 0xFFFF : n <= 0 ? 0 : (1 << n) - 1);
}

/// Digits of `k` numbers, which integers hold, by sixteens.
TOMBOLO_DIGITS void split_numbers(const DigitRow& row, int exponent, const DigitPlaces& to) {
  const __m512 scale = _mm512_set1_ps(power_of_two(kIntegerBits - exponent));
  std::byte* out = to.digits;
  const float* a = row.a;
  for (int64_t i = 0; i < row.k; i += kDigitsDepth, out += to.step) {
    __m512i x[4];
    for (int64_t v = 0; v < 4; ++v, a += row.plane)
      x[v] = digits_in(_mm512_maskz_loadu_ps(digit_lanes(row.k - i - v * 16), a), scale);
    store_digits(x, out, to.digit);
  }
}

TOMBOLO_DIGITS Summary look_at_row(const DigitRow& row) {
  Numbers seen = no_numbers();
  const float* a = row.a;
  int64_t i = 0;
  for (; i + 16 <= row.k; i += 16, a += row.plane) look_at(_mm512_loadu_ps(a), seen);
  if (i < row.k) look_at(_mm512_maskz_loadu_ps(digit_lanes(row.k - i), a), seen);
  return summary_of(seen);
}

/// Tiles for so many rows of A.
TOMBOLO_DIGITS void set_tiles(int64_t rows) {
  TileConfig config;
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
  const float* row_scales = nullptr;  ///< rows that are not above zero stay as they are
  const int32_t* places = nullptr;    ///< of rows in C; null: one after the other
  const float* column_scales = nullptr;
  float* c = nullptr;
  int64_t ldc = 0;
  __mmask16 columns = 0;
  const float* add = nullptr;  ///< what lies there already, or is to be added
  int64_t ld_add = 0;
  const float* row_bias = nullptr;
  const float* column_bias = nullptr;
  float lo = 0, hi = 0;  ///< limits, or infinities

  int64_t place(int64_t r) const { return places != nullptr ? places[r] : r; }
  /// What row r starts from.
  TOMBOLO_DIGITS_INLINE __m512 begin(int64_t r, __m512 x) const {
    if (row_bias != nullptr) x = _mm512_add_ps(x, _mm512_set1_ps(row_bias[r]));
    if (add != nullptr)
      x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(columns, add + place(r) * ld_add));
    return x;
  }
  TOMBOLO_DIGITS_INLINE void end(int64_t r, __m512 x) const {
    // In this order a NaN stays.
    x = _mm512_min_ps(_mm512_set1_ps(hi), _mm512_max_ps(_mm512_set1_ps(lo), x));
    _mm512_mask_storeu_ps(c + place(r) * ldc, columns, x);
  }
};

TOMBOLO_DIGITS_INLINE __m512 as_floats(const int32_t* sums) {
  return _mm512_cvtepi32_ps(_mm512_load_si512(sums));
}

/// The four sums of 16 results, the highest one's place counting 1.
TOMBOLO_DIGITS_INLINE __m512 join_sums(const int32_t* sums) {
  const __m512 place = _mm512_set1_ps(1.0f / 256);
  __m512 x = _mm512_fmadd_ps(as_floats(sums + 3 * 256), place, as_floats(sums + 2 * 256));
  x = _mm512_fmadd_ps(x, place, as_floats(sums + 256));
  return _mm512_fmadd_ps(x, place, as_floats(sums));
}

/// Rows of a tile on their way into C, some at a time.
class Rows {
 public:
  TOMBOLO_DIGITS_INLINE explicit Rows(const Finish& finish)
      : f_(finish),
        scales_(_mm512_maskz_loadu_ps(finish.columns, finish.column_scales)),
        bias_(finish.column_bias != nullptr
                  ? _mm512_maskz_loadu_ps(finish.columns, finish.column_bias)
                  : _mm512_setzero_ps()),
        lo_(_mm512_set1_ps(finish.lo)),
        hi_(_mm512_set1_ps(finish.hi)) {}

  /// Up to row `end`, but for those that go by vectors.
  TOMBOLO_DIGITS_INLINE void finish(int64_t end) {
    if (f_.row_bias == nullptr)
      return f_.places == nullptr ? some_rows<false>(end) : some_rows<true>(end);
    for (; at_ < end; ++at_) {
      const float scale = f_.row_scales[at_];
      if (!(scale > 0)) continue;
      const __m512 factor = _mm512_mul_ps(scales_, _mm512_set1_ps(scale));
      f_.end(at_, _mm512_fmadd_ps(join_sums(f_.sums + at_ * 16), factor, f_.begin(at_, bias_)));
    }
  }

 private:
  template <bool kPlaced>
  TOMBOLO_DIGITS_INLINE void some_rows(int64_t end) {
    // C is no part of what is read here.
    const int32_t* sums = f_.sums + at_ * 16;
    const float* const row_scales = f_.row_scales;
    const int32_t* const places = f_.places;
    const int64_t ldc = f_.ldc, ld_add = f_.ld_add;
    const __mmask16 columns = f_.columns;
    const __mmask16 adds = f_.add != nullptr ? columns : __mmask16{0};
    float* const c = f_.c;
    const float* const add = f_.add != nullptr ? f_.add : c;
    for (; at_ < end; ++at_, sums += 16) {
      const float scale = row_scales[at_];
      if (!(scale > 0)) continue;
      const int64_t row = kPlaced ? places[at_] : at_;
      const __m512 factor = _mm512_mul_ps(scales_, _mm512_set1_ps(scale));
      const __m512 from = _mm512_add_ps(bias_, _mm512_maskz_loadu_ps(adds, add + row * ld_add));
      const __m512 x = _mm512_fmadd_ps(join_sums(sums), factor, from);
      _mm512_mask_storeu_ps(c + row * ldc, columns, _mm512_min_ps(hi_, _mm512_max_ps(lo_, x)));
    }
  }

  const Finish& f_;
  const __m512 scales_, bias_, lo_, hi_;
  int64_t at_ = 0;
};

/// What will be needed soon: so many cache lines of each step, so that pages of memory come nearer
/// side by side.
struct Ahead {
  const std::byte* data;
  int64_t lines;
};

/// `steps` of k: digits of up to 16 rows by those of 16 columns. Products that count the same are
/// added in one tile. Meanwhile the sums of the tile before are finished.
TOMBOLO_DIGITS void digits_tile(const DigitRows& rows, const std::byte* first, int64_t at,
                                const std::byte* b, int64_t steps, int32_t* sums,
                                const Finish& before, Ahead next) {
  const int64_t each = (before.rows + steps - 1) / steps, line = rows.line, digit = rows.digit;
  TOMBOLO_AMX_FENCE();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  Rows finished(before);
  for (int64_t i = 0; i < steps; ++i, b += kStepBytes) {
    const std::byte* const a =
        first + (rows.steps != nullptr ? rows.steps[at + i] : (at + i) * kStepBytes);
    for (int64_t n = 0; n < next.lines; ++n) __builtin_prefetch(next.data + n * 64, 0, 2);
    next.data += kStepBytes;
    _tile_loadd(4, a, line);
    _tile_loadd(7, b + 3 * kDigitTile, 64);
    _tile_dpbssd(3, 4, 7);
    _tile_loadd(5, b, 64);
    _tile_dpbssd(0, 4, 5);
    _tile_loadd(6, b + kDigitTile, 64);
    _tile_dpbssd(1, 4, 6);
    _tile_loadd(7, b + 2 * kDigitTile, 64);
    _tile_dpbssd(2, 4, 7);
    _tile_loadd(4, a + digit, line);
    _tile_dpbssd(1, 4, 5);
    _tile_dpbssd(2, 4, 6);
    _tile_dpbssd(3, 4, 7);
    _tile_loadd(4, a + 2 * digit, line);
    _tile_dpbssd(2, 4, 5);
    _tile_dpbssd(3, 4, 6);
    _tile_loadd(4, a + 3 * digit, line);
    _tile_dpbssd(3, 4, 5);
    finished.finish(std::min(before.rows, (i + 1) * each));
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
  for (int64_t k0 = 0; k0 < panels.k; k0 += kDigitsDepth, b += kStepBytes)
    for (int64_t line = 0; line < 16; ++line)
      for (int i = 0; i < 4; ++i) {
        const int64_t row = k0 + 16 * i + line;
        if (row >= panels.k) continue;
        __m512i x = _mm512_setzero_si512();
        for (int64_t d = 0; d < kDigits; ++d) {
          const __m512i four = _mm512_load_si512(b + d * kDigitTile + line * 64);
          x = _mm512_add_epi32(
              _mm512_slli_epi32(x, 8),
              _mm512_srai_epi32(_mm512_sll_epi32(four, _mm_cvtsi32_si128(24 - 8 * i)), 24));
        }
        _mm512_store_ps(out + row * 16, _mm512_mul_ps(_mm512_cvtepi32_ps(x), scale));
      }
}

/// Some rows by vectors.
constexpr int64_t kFloatRows = 8;
struct FloatRows {
  int64_t count = 0;
  int64_t row[kFloatRows];
  const float* a[kFloatRows];
};
TOMBOLO_DIGITS void multiply_floats(const Finish& f, const FloatRows& rows, const float* b,
                                    int64_t k) {
  // Rows that are not there are the first one once more.
  const float* a[kFloatRows];
  __m512 sums[kFloatRows];
#pragma GCC unroll 8
  for (int64_t r = 0; r < kFloatRows; ++r) {
    a[r] = rows.a[r < rows.count ? r : 0];
    sums[r] = _mm512_setzero_ps();
  }
  constexpr int64_t kSummed = 256;  // on their own: the error of a sum grows with its length
  for (int64_t from = 0; from < k; from += kSummed) {
    __m512 some[kFloatRows];
#pragma GCC unroll 8
    for (__m512& sum : some) sum = _mm512_setzero_ps();
    for (int64_t i = from; i < std::min(k, from + kSummed); ++i, b += 16) {
      const __m512 column = _mm512_load_ps(b);
#pragma GCC unroll 8
      for (int64_t r = 0; r < kFloatRows; ++r)
        some[r] = _mm512_fmadd_ps(_mm512_set1_ps(a[r][i]), column, some[r]);
    }
#pragma GCC unroll 8
    for (int64_t r = 0; r < kFloatRows; ++r) sums[r] = _mm512_add_ps(sums[r], some[r]);
  }
  const __m512 bias = f.column_bias != nullptr ? _mm512_maskz_loadu_ps(f.columns, f.column_bias)
                                               : _mm512_setzero_ps();
#pragma GCC unroll 8
  for (int64_t r = 0; r < kFloatRows; ++r)
    if (r < rows.count) f.end(rows.row[r], _mm512_add_ps(sums[r], f.begin(rows.row[r], bias)));
}

/// Steps that a tile takes: what it reads of A and B fits the first cache. The same whatever is
/// multiplied: so are then the sums of a row.
int64_t piece_of(int64_t steps) {
  constexpr int64_t kMostSteps = 4;
  const int64_t pieces = (steps + kMostSteps - 1) / kMostSteps;
  return (steps + pieces - 1) / pieces;
}

/// In place: what has just been written in small parts is slow to read as a whole.
TOMBOLO_DIGITS_INLINE void set_finish(const DigitRows& a, const float* column_scales,
                                      const DigitPanels& panels, const DigitResult& r, int64_t row,
                                      int64_t rows, int64_t column, bool first, bool last,
                                      Finish& f) {
  const bool placed = a.places != nullptr;
  const int64_t skipped = placed ? 0 : row, group = column / 16;
  f.rows = rows;
  f.row_scales = a.scales + row;
  f.places = placed ? a.places + row : nullptr;
  f.column_scales = column_scales + column;
  f.c = r.c + skipped * r.ldc + group * r.plane;
  f.ldc = r.ldc;
  f.columns = digit_lanes(panels.n - column);
  f.add = !first              ? f.c
          : r.init != nullptr ? r.init + skipped * r.ldi + group * r.init_plane
                              : nullptr;
  f.ld_add = first ? r.ldi : r.ldc;
  f.row_bias = first && r.row_bias != nullptr ? r.row_bias + row : nullptr;
  f.column_bias = first && r.column_bias != nullptr ? r.column_bias + column : nullptr;
  constexpr float kNone = std::numeric_limits<float>::infinity();
  f.lo = last && r.clamp ? r.lo : -kNone;
  f.hi = last && r.clamp ? r.hi : kNone;
}

bool any_held(const float* scales, int64_t rows) {
  return std::any_of(scales, scales + rows, [](float scale) { return scale > 0; });
}

/// Those rows that integers do not hold, by a panel from `column` on.
TOMBOLO_DIGITS void odd_rows(const DigitRows& a, int64_t rows, const float* column_scales,
                             const std::byte* data, const DigitPanels& panels,
                             const DigitResult& result, int64_t column) {
  float* const b = thread_floats(5, static_cast<size_t>(panels.k * (16 + kFloatRows)));
  float* const room = b + panels.k * 16;
  for (const int64_t end = std::min(panels.n, column + kDigitsWidth); column < end; column += 16) {
    join_digits(data + column / 16 * panels.half(), panels, column_scales + column, b);
    Finish f;
    set_finish(a, column_scales, panels, result, 0, rows, column, true, true, f);
    FloatRows some;
    for (int64_t r = 0; r < rows; ++r) {
      if (!(a.scales[r] < 0)) continue;
      some.row[some.count] = r;
      some.a[some.count] = a.floats(a.argument, r, room + some.count * panels.k);
      if (++some.count < kFloatRows) continue;
      multiply_floats(f, some, b, panels.k);
      some.count = 0;
    }
    if (some.count > 0) multiply_floats(f, some, b, panels.k);
  }
}

/// What is known of 16 columns, in memory.
struct alignas(64) ColumnNumbers {
  std::byte greatest[64] = {}, some[64] = {}, roots[64] = {};

  Summary column(int64_t i) const {
    Summary summary;
    std::memcpy(&summary.greatest, greatest + i * 4, 4);
    std::memcpy(&summary.some, some + i * 4, 4);
    std::memcpy(&summary.roots, roots + i * 4, 4);
    return summary;
  }
};

TOMBOLO_DIGITS void look_down(const std::byte* b, int64_t rows, int64_t step, int64_t columns,
                              ColumnNumbers& numbers) {
  Numbers seen{_mm512_load_si512(numbers.greatest), _mm512_load_si512(numbers.some),
               _mm512_load_ps(numbers.roots)};
  const __mmask16 there = digit_lanes(columns);
  for (int64_t i = 0; i < rows; ++i, b += step) look_at(_mm512_maskz_loadu_ps(there, b), seen);
  _mm512_store_si512(numbers.greatest, seen.greatest);
  _mm512_store_si512(numbers.some, seen.some);
  _mm512_store_ps(numbers.roots, seen.roots);
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

}  // namespace

bool digits_of(const std::byte* b, int64_t k, int64_t n, bool turned, const ReadFloats& read,
               float* scales) {
  const std::vector<Summary> columns = look_at_columns(b, k, n, turned, read);
  std::fill_n(scales, round_up(n, kDigitsWidth), 0.0f);
  for (const Summary& column : columns) {
    if (!column.held()) return false;
    if (column.some != 0) *scales = power_of_two(column.exponent() - kHighest);
    ++scales;
  }
  return true;
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
    std::byte* out = begins + half * panels.half() + step * kStepBytes;
    for (int64_t i = 0; i < k; i += kDigitsDepth, out += kStepBytes)
      for (int64_t line = 0; line < 16; ++line) {
        __m512i x[4];
        for (int64_t v = 0; v < 4; ++v) {
          const int64_t row = i + v * 16 + line;
          x[v] = row < k ? digits_in(_mm512_loadu_ps(rows + row * kDigitsWidth + half * 16), scale)
                         : _mm512_setzero_si512();
        }
        store_digits(x, out + line * 64, kDigitTile);
      }
  }
}

TOMBOLO_DIGITS DigitScale digits_scale_of_rows(const float* x, int64_t ldx, int64_t rows,
                                               int64_t k) {
  Numbers seen = no_numbers();
  for (int64_t r = 0; r < rows; ++r, x += ldx)
    for (int64_t i = 0; i < k; i += 16)
      look_at(_mm512_maskz_loadu_ps(digit_lanes(k - i), x + i), seen);
  return scale_of(summary_of(seen));
}

/// A panel of floats, [k][32], with a scale for each column, or `all` where that is above zero.
/// False where integers do not hold it.
bool pack_panel_digits(const float* rows, int64_t k, const DigitScale& all,
                       const DigitPanels& panels, int64_t panel, std::byte* matrix) {
  float* const scales = reinterpret_cast<float*>(matrix) + panel * kDigitsWidth;
  std::fill_n(scales, kDigitsWidth, std::max(all.scale, 0.0f));
  for (int64_t half = 0; half < kDigitsWidth && !(all.scale > 0); half += 16) {
    ColumnNumbers numbers;
    look_down(reinterpret_cast<const std::byte*>(rows + half), k, kDigitsWidth * 4, 16, numbers);
    for (int64_t i = 0; i < 16; ++i) {
      const Summary seen = numbers.column(i);
      if (!seen.held()) return false;
      if (seen.some != 0) scales[half + i] = power_of_two(seen.exponent() - kHighest);
    }
  }
  digits_pack(rows, 0, k, panels, panel, matrix);
  return true;
}

bool digits_pack_b(const float* b, int64_t row, int64_t column, int64_t k, int64_t n, float alpha,
                   bool alike, const DigitPanels& panels, std::byte* matrix) {
  const DigitScale all = !alike        ? DigitScale{-1, 0}
                         : column == 1 ? digits_scale_of_rows(b, row, k, n)
                                       : digits_scale_of_rows(b, column, n, k);
  float* const room = thread_floats(0, static_cast<size_t>(k * kDigitsWidth));
  for (int64_t j = 0; j < n; j += kDigitsWidth) {
    pack_b_panel(b + j * column, row, column, k, std::min(kDigitsWidth, n - j), 1, room);
    if (!pack_panel_digits(room, k, all, panels, j / kDigitsWidth, matrix)) return false;
  }
  auto* const scales = reinterpret_cast<float*>(matrix);
  for (int64_t j = 0; j < n; ++j) scales[j] *= alpha;
  return true;
}

float split_digits(const DigitRow& row, const DigitPlaces& to) {
  const Summary numbers = look_at_row(row);
  const bool held = numbers.held();
  if (held && numbers.some != 0) {
    split_numbers(row, numbers.exponent(), to);
    return power_of_two(numbers.exponent() - kHighest);
  }
  clear_digits(row.k, to);
  return held ? 1.0f : -1.0f;
}

void split_digits_as(const DigitRow& row, const DigitScale& scale, const DigitPlaces& to) {
  split_numbers(row, scale.exponent, to);
}

DigitScale digits_scale(const float* x, int64_t channels, int64_t pixels) {
  const int64_t groups = (channels + 15) / 16;
  constexpr int64_t kPiece = 1024;  // pixels
  const int64_t pieces = (pixels + kPiece - 1) / kPiece;
  std::vector<ColumnNumbers> seen(static_cast<size_t>(groups * pieces));
  parallel(groups * pieces, std::max<int64_t>(1, 1024 / pixels), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i / pieces, pixel = i % pieces * kPiece;
      look_down(reinterpret_cast<const std::byte*>(x + (group * pixels + pixel) * 16),
                std::min(kPiece, pixels - pixel), 64, channels - group * 16,
                seen[static_cast<size_t>(i)]);
    }
  });
  Summary all;
  for (const ColumnNumbers& numbers : seen)
    for (int64_t i = 0; i < 16; ++i) {
      const Summary some = numbers.column(i);
      all.greatest = std::max(all.greatest, some.greatest);
      all.some += some.some;
      all.roots += some.roots;
    }
  return scale_of(all);
}

void clear_digits(int64_t k, const DigitPlaces& to) {
  std::byte* out = to.digits;
  for (int64_t i = 0; i < k; i += kDigitsDepth, out += to.step)
    for (int64_t d = 0; d < kDigits; ++d) std::memset(out + d * to.digit, 0, 64);
}

int64_t digits_depth(int64_t rows, int64_t steps) {
  const auto parts = [](int64_t whole, int64_t most) { return (whole + most - 1) / most; };
  const int64_t most = near_bytes() * 5 / 4 / (parts(rows, kDigitsRows) * kStepBytes);
  return parts(steps, parts(steps, std::max<int64_t>(1, most)));
}

TOMBOLO_DIGITS void digits_product(const DigitRows& a, int64_t rows, const std::byte* matrix,
                                   const DigitPanels& panels, const DigitResult& result,
                                   int64_t depth, int64_t from, int64_t to) {
  alignas(64) int32_t sums[2][4 * 256];
  const auto* const column_scales = reinterpret_cast<const float*>(matrix);
  const std::byte* const data = matrix + panels.scales() + panels.skipped * kStepBytes;
  const int64_t steps = panels.steps(), half_bytes = panels.half(), piece = piece_of(steps);
  const int64_t tiles = (rows + kDigitsRows - 1) / kDigitsRows;
  depth = round_up(std::min(depth, steps), piece);
  const bool odd = std::any_of(a.scales, a.scales + rows, [](float scale) { return scale < 0; });
  const int64_t lines = (kDigits * kDigitTile / 64 + tiles - 1) / tiles;
  const int64_t asked = (lines * 3 + 3) / 4;  // the processor brings what is between by itself
  int turn = 0;
  Finish before;
  set_tiles(std::min(rows, kDigitsRows));
  for (int64_t start = 0; start < steps; start += depth) {
    const int64_t stop = std::min(steps, start + depth);
    for (int64_t panel = from * kDigitsWidth; panel < to * kDigitsWidth; panel += kDigitsWidth) {
      const int64_t columns = std::min(kDigitsWidth, panels.n - panel);
      for (int64_t at = start; at < stop; at += piece) {
        const int64_t count = std::min(piece, stop - at);
        const bool first = at == 0, last = at + count == steps;
        for (int64_t column = panel; column < panel + columns; column += 16) {
          const std::byte* const b = data + column / 16 * half_bytes + at * kStepBytes;
          for (int64_t t = 0; t < tiles; ++t) {
            const int64_t r = t * kDigitsRows, some = std::min(kDigitsRows, rows - r);
            if (odd && !any_held(a.scales + r, some)) continue;
            int32_t* const into = sums[turn];
            // The same piece of the next columns is asked for, some lines of each step.
            digits_tile(a, a.digits + t * a.tile, at, b, count, into, before,
                        {b + half_bytes + t * lines * 64, asked});
            set_finish(a, column_scales, panels, result, r, some, column, first, last, before);
            before.sums = into;
            turn ^= 1;
          }
        }
      }
      if (stop < steps || (!odd && result.post == nullptr)) continue;
      Rows(before).finish(before.rows);
      before.rows = 0;
      if (odd) odd_rows(a, rows, column_scales, data, panels, result, panel);
      if (result.post != nullptr) result.post(result.argument, rows, panel, columns);
    }
  }
  Rows(before).finish(before.rows);
  free_tiles();
}

namespace {

/// Rows of A in blocks, some of which are kept as digits.
struct RowBlocks {
  const float* a;
  int64_t lda, m, k;
  int64_t rows;  ///< of a block
  float* scales;
  std::byte* digits;

  int64_t tile_bytes() const { return digit_tile_bytes(k); }
  int64_t tiles() const { return rows / kDigitsRows; }
  int64_t blocks() const { return (m + rows - 1) / rows; }
  static size_t floats(int64_t rows, int64_t k) {
    return static_cast<size_t>(rows + rows / kDigitsRows * digit_tile_bytes(k) / 4);
  }
  /// Room for so many blocks, which are 64 bytes aligned.
  void keep_in(float* room, int64_t count) {
    scales = room;
    digits = reinterpret_cast<std::byte*>(room + count * rows);
  }
  /// Blocks from `first` on are kept. Threaded.
  void split(int64_t first, int64_t count) const {
    parallel(count * tiles(), std::max<int64_t>(1, 512 / k), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = first * rows + i * kDigitsRows;
        if (row >= m) continue;
        split_tiles(std::min(kDigitsRows, m - row), k, digits + i * tile_bytes(),
                    scales + i * kDigitsRows, [&](int64_t r) {
                      return DigitRow{a + (row + r) * lda, 16, k};
                    });
      }
    });
  }
};

/// Columns of C from `column` on.
struct ColumnsOfC {
  float* c;
  int64_t ldc, column;
  const GemmEpilogue& epilogue;
};

struct BlockRows {
  const float* a;
  int64_t lda;
  static const float* floats(const void* argument, int64_t row, float*) {
    const auto& self = *static_cast<const BlockRows*>(argument);
    return self.a + row * self.lda;
  }
};
struct ColumnsPost {
  const BlockPost* post;
  float* c;
  int64_t ldc, row, first;
  static void apply(const void* argument, int64_t rows, int64_t column, int64_t columns) {
    const auto& p = *static_cast<const ColumnsPost*>(argument);
    p.post->apply(p.post->argument, p.c + column, p.ldc, p.row, rows, p.first + column, columns);
  }
};

/// Block `block` of A, which is kept as number `kept`, by panels [from, to).
void multiply_block(const RowBlocks& a, int64_t block, int64_t kept, const std::byte* b,
                    const DigitPanels& panels, const ColumnsOfC& to_c, int64_t depth, int64_t from,
                    int64_t to) {
  const GemmEpilogue& e = to_c.epilogue;
  const int64_t row = block * a.rows;
  const BlockRows floats{a.a + row * a.lda, a.lda};
  const DigitRows split{.digits = a.digits + kept * a.tiles() * a.tile_bytes(),
                        .tile = a.tile_bytes(),
                        .scales = a.scales + kept * a.rows,
                        .floats = &BlockRows::floats,
                        .argument = &floats};
  DigitResult result{.c = to_c.c + row * to_c.ldc + to_c.column, .ldc = to_c.ldc};
  if (e.init != nullptr) {
    result.init = e.init + row * e.ldi + to_c.column;
    result.ldi = e.ldi;
  }
  if (e.row_bias != nullptr) result.row_bias = e.row_bias + row;
  if (e.col_bias != nullptr) result.column_bias = e.col_bias + to_c.column;
  result.clamp = e.clamp;
  result.lo = e.lo;
  result.hi = e.hi;
  const ColumnsPost post{e.post, result.c, to_c.ldc, row, to_c.column};
  if (e.post != nullptr) {
    result.post = &ColumnsPost::apply;
    result.argument = &post;
  }
  digits_product(split, std::min(a.rows, a.m - row), b, panels, result, depth, from, to);
}

/// Several tasks for each thread: cores are not equally fast at all times.
int64_t column_groups(int64_t blocks, int64_t panels) {
  const int64_t threads = thread_count();
  return threads == 1 ? 1 : std::clamp<int64_t>(8 * threads / blocks, 1, panels);
}

/// What a GemmEpilogue does, from a column on.
struct ShiftedEpilogue {
  const GemmEpilogue& whole;
  int64_t column;
  BlockPost post{&apply, this};

  static void apply(const void* argument, float* c, int64_t ldc, int64_t row, int64_t rows,
                    int64_t column, int64_t columns) {
    const auto& self = *static_cast<const ShiftedEpilogue*>(argument);
    const BlockPost& inner = *self.whole.post;
    inner.apply(inner.argument, c, ldc, row, rows, self.column + column, columns);
  }
  GemmEpilogue epilogue() const {
    GemmEpilogue e = whole;
    if (e.col_bias != nullptr) e.col_bias += column;
    if (e.init != nullptr) e.init += column;
    if (e.post != nullptr) e.post = &post;
    return e;
  }
};

}  // namespace

void gemm_digits(int64_t m, const float* a, int64_t lda, const std::byte* b,
                 const DigitPanels& panels, float* c, int64_t ldc, const GemmEpilogue& epilogue) {
  if (m <= 0) return;
  constexpr int64_t kMostBytes = 16 << 20;
  RowBlocks rows{a, lda, m, panels.k, digits_block(m), nullptr, nullptr};
  const int64_t block_bytes = rows.tiles() * rows.tile_bytes();
  const int64_t depth = digits_depth(rows.rows, panels.steps());
  const int64_t at_once =
      thread_count() == 1 ? 1 : std::clamp<int64_t>(kMostBytes / block_bytes, 1, rows.blocks());
  rows.keep_in(
      thread_floats(4, static_cast<size_t>(at_once) * RowBlocks::floats(rows.rows, panels.k)),
      at_once);
  for (int64_t done = 0; done < rows.blocks(); done += at_once) {
    const int64_t blocks = std::min(at_once, rows.blocks() - done);
    rows.split(done, blocks);
    const int64_t groups = column_groups(blocks, panels.panels());
    parallel(blocks * groups, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t block = task / groups, at = task % groups;
        multiply_block(rows, done + block, block, b, panels, {c, ldc, 0, epilogue}, depth,
                       panels.panels() * at / groups, panels.panels() * (at + 1) / groups);
      }
    });
  }
}

void gemm_digits(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const FloatPanels& b,
                 float* c, int64_t ldc, const GemmEpilogue& epilogue) {
  if (m <= 0) return;
  constexpr int64_t kMostRows = 1024, kMostBytes = 4 << 20;  // of A and of B, kept as digits
  RowBlocks rows{a, lda, m, k, digits_block(m), nullptr, nullptr};
  const int64_t at_once = std::clamp<int64_t>(kMostRows / rows.rows, 1, rows.blocks());
  const DigitPanels all{k, n};
  const int64_t panels = all.panels();
  const int64_t together = std::clamp(kMostBytes / (2 * all.half()),
                                      std::min<int64_t>(panels, 2 * thread_count()), panels);
  const size_t row_floats = static_cast<size_t>(at_once) * RowBlocks::floats(rows.rows, k);
  const int64_t matrix_floats = DigitPanels{k, together * kDigitsWidth}.bytes() / 4;
  float* const room = thread_floats(4, row_floats + static_cast<size_t>(matrix_floats));
  rows.keep_in(room, at_once);
  auto* const matrix = reinterpret_cast<std::byte*>(room + row_floats);
  const int64_t depth = digits_depth(rows.rows, all.steps());
  const auto panel_floats = [&](int64_t panel) {
    return b.panel(b.argument, panel,
                   thread_floats(0, static_cast<size_t>(round_up(k, 4) * kDigitsWidth)));
  };
  std::vector<uint8_t> held(static_cast<size_t>(panels));
  for (int64_t done = 0; done < rows.blocks(); done += at_once) {
    const int64_t blocks = std::min(at_once, rows.blocks() - done);
    rows.split(done, blocks);
    for (int64_t first = 0; first < panels; first += together) {
      const int64_t count = std::min(together, panels - first);
      const DigitPanels some{k, std::min(n - first * kDigitsWidth, count * kDigitsWidth)};
      uint8_t* const hold = held.data() + first;
      parallel(count, 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p)
          hold[p] = pack_panel_digits(panel_floats(first + p), k, {-1, 0}, some, p, matrix);
      });
      const ColumnsOfC to{c, ldc, first * kDigitsWidth, epilogue};
      const int64_t groups = column_groups(blocks, count);
      parallel(blocks * groups, 1, [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
          const int64_t block = task / groups, at = task % groups;
          const int64_t last = count * (at + 1) / groups;
          for (int64_t p = count * at / groups; p < last; ++p) {
            const int64_t start = p;
            while (p < last && hold[p] != 0) ++p;
            if (start < p)
              multiply_block(rows, done + block, block, matrix, some, to, depth, start, p);
          }
        }
      });
    }
  }
  for (int64_t p = 0; p < panels; ++p) {
    if (held[static_cast<size_t>(p)] != 0) continue;
    const int64_t column = p * kDigitsWidth;
    const ShiftedEpilogue shifted{epilogue, column};
    gemm(m, std::min(kDigitsWidth, n - column), k, a, lda, panel_floats(p), c + column, ldc,
         shifted.epilogue());
  }
}

}  // namespace tombolo

#else

namespace tombolo {
float split_digits(const DigitRow&, const DigitPlaces&) { return 0; }
void split_digits_as(const DigitRow&, const DigitScale&, const DigitPlaces&) {}
DigitScale digits_scale(const float*, int64_t, int64_t) { return {0, 0}; }
void clear_digits(int64_t, const DigitPlaces&) {}
void digits_product(const DigitRows&, int64_t, const std::byte*, const DigitPanels&,
                    const DigitResult&, int64_t, int64_t, int64_t) {}
bool digits_of(const std::byte*, int64_t, int64_t, bool, const ReadFloats&, float*) {
  return false;
}
void digits_pack(const float*, int64_t, int64_t, const DigitPanels&, int64_t, std::byte*) {}
bool digits_pack_b(const float*, int64_t, int64_t, int64_t, int64_t, float, bool,
                   const DigitPanels&, std::byte*) {
  return false;
}
DigitScale digits_scale_of_rows(const float*, int64_t, int64_t, int64_t) { return {0, 0}; }
int64_t digits_depth(int64_t, int64_t) { return 1; }
void gemm_digits(int64_t, const float*, int64_t, const std::byte*, const DigitPanels&, float*,
                 int64_t, const GemmEpilogue&) {}
void gemm_digits(int64_t, int64_t, int64_t, const float*, int64_t, const FloatPanels&, float*,
                 int64_t, const GemmEpilogue&) {}
}  // namespace tombolo

#endif
