// Tiles of AMX over digits (gemm_digits.h), and what becomes of their sums.

#include <algorithm>
#include <limits>

#include "runtime/kernels/matmul/gemm_digits.h"

#if defined(__x86_64__)
#include "runtime/kernels/amx.h"
#include "runtime/kernels/matmul/digits_target.h"

namespace tombolo {
namespace {

/// Tiles for so many rows of A, which is in number 6, too, where B has one digit.
TOMBOLO_DIGITS void set_tiles(int64_t rows, bool one_digit) {
  TileConfig config;
  for (int i = 0; i < 8; ++i) {
    config.column_bytes[i] = 64;
    config.rows[i] = static_cast<uint8_t>(i < 5 || (i == 6 && one_digit) ? rows : 16);
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
class FinishedRows {
 public:
  TOMBOLO_DIGITS_INLINE explicit FinishedRows(const Finish& finish)
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

/// One step of A by four digits of B.
TOMBOLO_DIGITS_INLINE void multiply_step(const std::byte* a, int64_t line, int64_t digit,
                                         const std::byte* b) {
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
}

/// By one digit.
TOMBOLO_DIGITS_INLINE void multiply_byte_step(const std::byte* a, int64_t line, int64_t digit,
                                              const std::byte* b) {
  _tile_loadd(5, b, 64);
  _tile_loadd(4, a, line);
  _tile_dpbssd(0, 4, 5);
  _tile_loadd(6, a + digit, line);
  _tile_dpbssd(1, 6, 5);
  _tile_loadd(4, a + 2 * digit, line);
  _tile_dpbssd(2, 4, 5);
  _tile_loadd(6, a + 3 * digit, line);
  _tile_dpbssd(3, 6, 5);
}

/// `steps` of k: digits of up to 16 rows by those of 16 columns, of which there are so many.
/// Products that count the same are added in one tile. Meanwhile the sums of the tile before are
/// finished.
template <int64_t kOfB>
TOMBOLO_DIGITS void digits_tile(const DigitRows& rows, const std::byte* first, int64_t at,
                                const std::byte* b, int64_t steps, int32_t* sums,
                                const Finish& before, Ahead next) {
  const int64_t each = (before.rows + steps - 1) / steps, line = rows.line, digit = rows.digit;
  TOMBOLO_AMX_FENCE();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  FinishedRows finished(before);
  for (int64_t i = 0; i < steps; ++i, b += kOfB * kDigitTile) {
    const std::byte* const a =
        first + (rows.steps != nullptr ? rows.steps[at + i] : (at + i) * kStepBytes);
    for (int64_t n = 0; n < next.lines; ++n) __builtin_prefetch(next.data + n * 64, 0, 2);
    next.data += kOfB * kDigitTile;
    if constexpr (kOfB == 1)
      multiply_byte_step(a, line, digit, b);
    else
      multiply_step(a, line, digit, b);
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
  const __m128i lower = _mm_cvtsi64_si128(8 * (kDigits - panels.digits));  // digits that are zero
  for (int64_t k0 = 0; k0 < panels.k; k0 += kDigitsDepth, b += panels.step_bytes())
    for (int64_t line = 0; line < 16; ++line)
      for (int i = 0; i < 4; ++i) {
        const int64_t row = k0 + 16 * i + line;
        if (row >= panels.k) continue;
        __m512i x = _mm512_setzero_si512();
        for (int64_t d = 0; d < panels.digits; ++d) {
          const __m512i four = _mm512_load_si512(b + d * kDigitTile + line * 64);
          x = _mm512_add_epi32(
              _mm512_slli_epi32(x, 8),
              _mm512_srai_epi32(_mm512_sll_epi32(four, _mm_cvtsi32_si128(24 - 8 * i)), 24));
        }
        x = _mm512_sll_epi32(x, lower);
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
int64_t piece_of(int64_t steps, int64_t most) {
  const int64_t pieces = (steps + most - 1) / most;
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
  f.columns = first_lanes(panels.n - column);
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

/// Those rows that integers do not hold, by so many columns from `column` on.
TOMBOLO_DIGITS void odd_rows(const DigitRows& a, int64_t rows, const float* column_scales,
                             const std::byte* data, const DigitPanels& panels,
                             const DigitResult& result, int64_t column, int64_t columns) {
  float* const b = thread_floats(5, static_cast<size_t>(panels.k * (16 + kFloatRows)));
  float* const room = b + panels.k * 16;
  for (const int64_t end = column + columns; column < end; column += 16) {
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

}  // namespace

TOMBOLO_DIGITS void digits_product(const DigitRows& a, int64_t rows, const std::byte* matrix,
                                   const DigitPanels& panels, const DigitResult& result,
                                   int64_t depth, int64_t from, int64_t to) {
  alignas(64) int32_t sums[2][4 * 256];
  const auto* const column_scales = reinterpret_cast<const float*>(matrix);
  const std::byte* const data = matrix + panels.scales() + panels.skipped * panels.step_bytes();
  const bool one = panels.digits == 1;
  const int64_t steps = panels.steps(), half_bytes = panels.half();
  const int64_t piece = piece_of(steps, one ? 12 : 4), ahead = one ? 2 : 1;
  const int64_t tiles = (rows + kDigitsRows - 1) / kDigitsRows;
  depth = round_up(std::min(depth, steps), piece);
  const bool odd = std::any_of(a.scales, a.scales + rows, [](float scale) { return scale < 0; });
  const int64_t lines = (panels.step_bytes() / 64 + tiles - 1) / tiles;
  auto* const tile = panels.digits == 1 ? &digits_tile<1> : &digits_tile<kDigits>;
  const int64_t asked = (lines * 3 + 3) / 4;  // the processor brings what is between by itself
  int turn = 0;
  Finish before;
  set_tiles(std::min(rows, kDigitsRows), panels.digits == 1);
  for (int64_t start = 0; start < steps; start += depth) {
    const int64_t stop = std::min(steps, start + depth);
    const int64_t end = std::min(panels.n, to * kDigitsHalf);
    for (int64_t panel = from * kDigitsHalf; panel < end; panel += kDigitsWidth) {
      const int64_t columns = std::min(kDigitsWidth, end - panel);
      for (int64_t at = start; at < stop; at += piece) {
        const int64_t count = std::min(piece, stop - at);
        const bool first = at == 0, last = at + count == steps;
        const int64_t halves = (columns + 15) / 16;
        for (int64_t i = 0; i < halves * tiles; ++i) {
          // A piece of one digit is so small that both halves stay near, and rows are read once.
          const int64_t half = one ? i % halves : i / tiles, t = one ? i / halves : i % tiles;
          const int64_t column = panel + half * 16;
          const std::byte* const b = data + column / 16 * half_bytes + at * panels.step_bytes();
          // The same piece of the next columns is asked for, some lines of each step; behind the
          // last ones the first ones' next steps, at the end what is likely this thread's next
          // turn.
          int64_t next_half = column / 16 + ahead, next_at = at;
          if (next_half >= to) {
            const bool more = at + depth < steps;
            next_half += more ? from - to : 0;
            next_at += more ? depth : -start;
          }
          const std::byte* const next =
              data + next_half * half_bytes + next_at * panels.step_bytes();
          const int64_t r = t * kDigitsRows, some = std::min(kDigitsRows, rows - r);
          if (odd && !any_held(a.scales + r, some)) continue;
          int32_t* const into = sums[turn];
          tile(a, a.digits + t * a.tile, at, b, count, into, before,
               {next + t * lines * 64, asked});
          set_finish(a, column_scales, panels, result, r, some, column, first, last, before);
          before.sums = into;
          turn ^= 1;
        }
      }
      if (stop < steps || (!odd && result.post == nullptr)) continue;
      FinishedRows(before).finish(before.rows);
      before.rows = 0;
      if (odd) odd_rows(a, rows, column_scales, data, panels, result, panel, columns);
      if (result.post != nullptr) result.post(result.argument, rows, panel, columns);
    }
  }
  FinishedRows(before).finish(before.rows);
  free_tiles();
}

}  // namespace tombolo

#else

namespace tombolo {
void digits_product(const DigitRows&, int64_t, const std::byte*, const DigitPanels&,
                    const DigitResult&, int64_t, int64_t, int64_t) {}
}  // namespace tombolo

#endif
