#include "runtime/kernels/matmul/nbits_pieces.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/matmul/nbits_panel.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/quant/qgemm.h"

#if defined(__x86_64__)
#include "runtime/kernels/amx.h"
#include "runtime/kernels/intrinsics.h"

#define TOMBOLO_PIECES \
  __attribute__((      \
      target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile,amx-int8,amx-bf16")))
#define TOMBOLO_PIECES_INLINE TOMBOLO_PIECES __attribute__((always_inline)) inline

namespace tombolo {
namespace {

constexpr int64_t kPieces = 3;
constexpr int64_t kRows = 32, kColumns = 32;  ///< of a tile's sums
constexpr int64_t kLanes = 16;                ///< columns of a panel
constexpr int64_t kStep = 64;                 ///< bytes of k in a step of AMX: 32
constexpr int64_t kStepOfB = kStep * kColumns;

/// Which pieces of numbers are not all zero (bit i: piece i), and whether all are finite.
struct Found {
  unsigned used = 0;
  bool finite = true;
};

/// Bytes of a step of k of 32 rows: of each piece both tiles of sixteen rows.
constexpr int64_t kTileBytes = 1024, kPieceBytes = 2 * kTileBytes;
constexpr int64_t kStepBytes = kPieces * kPieceBytes;

/// n numbers of a row as pieces, 32 to a line of a tile, filled up with zeros to `steps` lines.
TOMBOLO_PIECES Found split(const float* x, int64_t n, int64_t steps, std::byte* out) {
  const __m256i exponent = _mm256_set1_epi16(0x7F80);
  __m256i any[kPieces] = {};
  __mmask16 endless = 0;
  for (int64_t i = 0; i < 2 * steps; ++i) {
    __m512 rest = _mm512_maskz_loadu_ps(first_lanes(n - i * kLanes), x + i * kLanes);
    std::byte* const to = out + i / 2 * kStepBytes + i % 2 * 32;
    for (int64_t p = 0; p < kPieces; ++p) {
      const auto piece = (__m256i)_mm512_cvtneps_pbh(rest);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + p * kPieceBytes), piece);
      any[p] = _mm256_or_si256(any[p], piece);
      if (p == 0)
        endless = static_cast<__mmask16>(
            endless | _mm256_cmpeq_epi16_mask(_mm256_and_si256(piece, exponent), exponent));
      const __m512i wide = _mm512_slli_epi32(_mm512_cvtepu16_epi32(piece), 16);
      rest = _mm512_sub_ps(rest, _mm512_castsi512_ps(wide));
    }
  }
  Found found;
  found.finite = endless == 0;
  // Nought may be negative.
  const __m256i bits = _mm256_set1_epi16(0x7FFF);
  for (int64_t p = 0; p < kPieces; ++p)
    if (_mm256_testz_si256(any[p], bits) == 0) found.used |= 1U << p;
  return found;
}

/// Blocks of codes of 4 bits less their zero points as bf16, sixteen columns: [k / 2][32][2].
TOMBOLO_PIECES void widen_fours(const NbitsShape& s, int64_t blocks, const std::byte* at,
                                std::byte* out) {
  // A code less a zero point is one of 31 numbers.
  alignas(64) uint16_t numbers[32];
  for (int i = 0; i < 32; ++i) {
    const auto number = static_cast<float>(i - 15);
    uint32_t bits;
    __builtin_memcpy(&bits, &number, 4);
    numbers[i] = static_cast<uint16_t>(bits >> 16);
  }
  const __m512i table = _mm512_load_si512(numbers);
  const __m512i low = _mm512_set1_epi32(0xF), high = _mm512_set1_epi32(0xF0000);
  for (int64_t b = 0; b < blocks; ++b) {
    const std::byte* const scales = at + s.block / 8 * 64;
    __m512i zeros = _mm512_set1_epi32(8);
    if (s.has_zeros)
      zeros = _mm512_cvtepu8_epi32(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(scales + kLanes * 4)));
    const __m512i less = _mm512_sub_epi32(_mm512_set1_epi32(15), zeros);
    const __m512i from = _mm512_or_si512(less, _mm512_slli_epi32(less, 16));
    for (int64_t k = 0; k < s.block; k += 8, at += 64) {
      __m512i word = _mm512_loadu_si512(at);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j, out += 128, word = _mm512_srli_epi32(word, 8)) {
        const __m512i even = _mm512_and_si512(word, low);
        // even | (odd & high)
        const __m512i pair =
            _mm512_ternarylogic_epi32(even, _mm512_slli_epi32(word, 12), high, 0xF8);
        _mm512_storeu_si512(out, _mm512_permutexvar_epi16(_mm512_add_epi32(pair, from), table));
      }
    }
    at = scales + kLanes * (4 + (s.has_zeros ? 1 : 0));
  }
}

/// total[rows][16] += sums[rows][16] times the scales of the columns.
TOMBOLO_PIECES_INLINE void add_scaled(const float* sums, int64_t rows, __m512 scales,
                                      float* total) {
  for (int64_t i = 0; i < rows; ++i, sums += kLanes, total += kLanes)
    _mm512_store_ps(total, _mm512_fmadd_ps(_mm512_load_ps(sums), scales, _mm512_load_ps(total)));
}

/// 32 rows by blocks of k of 32 columns.
struct Tile {
  const std::byte* a;
  int64_t pieces;
  const std::byte* b;  ///< [k / 2][32][2]
  int64_t steps;       ///< of k in a block
  int64_t blocks;
  const std::byte* scales[2];  ///< of the first block, of each half of the columns
  int64_t scales_step;         ///< bytes to the next block
  float* total;                ///< [2][32][16]
};

/// `steps` of k of sixteen columns of B, of which every piece of A is multiplied; `add` is called
/// after each piece.
template <bool kTwo, bool kSecond, typename Add>
TOMBOLO_PIECES_INLINE void multiply(const Tile& t, const std::byte* a, const std::byte* b,
                                    Add&& add) {
  for (int64_t i = 0; i < t.steps; ++i, a += kStepBytes, b += kStepOfB) {
    if constexpr (kSecond)
      _tile_loadd(7, b + 64, 128);
    else
      _tile_loadd(6, b, 128);
    const std::byte* piece = a;
    for (int64_t p = 0; p < t.pieces; ++p, piece += kPieceBytes) {
      _tile_loadd(4, piece, 64);
      if constexpr (kTwo) _tile_loadd(5, piece + kTileBytes, 64);
      if constexpr (kSecond) _tile_dpbf16ps(2, 4, 7);
      if constexpr (kSecond && kTwo) _tile_dpbf16ps(3, 5, 7);
      if constexpr (!kSecond) _tile_dpbf16ps(0, 4, 6);
      if constexpr (!kSecond && kTwo) _tile_dpbf16ps(1, 5, 6);
      add();
    }
  }
}

/// Sums of a block are added to the total while the next one is multiplied. kTwo: more than sixteen
/// rows; kWide: columns. Tiles 0 and 1 are the sums of the first sixteen columns, 2 and 3 those of
/// the others; 4 and 5 are of A, 6 and 7 of B.
template <bool kTwo, bool kWide>
TOMBOLO_PIECES void run_tile(const Tile& t) {
  constexpr int64_t kTall = kTwo ? 32 : 16, kHalf = kRows * kLanes;
  alignas(64) float sums[2][kRows * kColumns];
  const int64_t stages = t.pieces * t.steps, each = (kTall + stages - 1) / stages;
  const std::byte *a = t.a, *b = t.b, *first = t.scales[0], *second = t.scales[1];
  __m512 left = _mm512_setzero_ps(), right = left;  // scales of the block before
  TOMBOLO_AMX_FENCE();
  for (int64_t at = 0; at < t.blocks; ++at) {
    float *const here = sums[at % 2], *const before = sums[(at + 1) % 2];
    int64_t added = at == 0 ? kTall : 0;
    const auto add_some = [&](int64_t half, __m512 scales) TOMBOLO_PIECES {
      const int64_t rows = std::min(each, kTall - added), from = half * kHalf + added * kLanes;
      if (rows <= 0) return;
      add_scaled(before + from, rows, scales, t.total + from);
      added += rows;
    };
    _tile_zero(0);
    if constexpr (kTwo) _tile_zero(1);
    multiply<kTwo, false>(t, a, b, [&]() TOMBOLO_PIECES { add_some(0, left); });
    left = _mm512_loadu_ps(first);
    first += t.scales_step;
    if constexpr (kWide) {
      _tile_zero(2);
      if constexpr (kTwo) _tile_zero(3);
      bool stored = false;
      added = at == 0 ? kTall : 0;
      multiply<kTwo, true>(t, a, b, [&]() TOMBOLO_PIECES {
        if (!stored) {  // what is multiplied meanwhile does not wait for it
          _tile_stored(0, here, 64);
          if constexpr (kTwo) _tile_stored(1, here + 256, 64);
          stored = true;
        }
        add_some(1, right);
      });
      _tile_stored(2, here + kHalf, 64);
      if constexpr (kTwo) _tile_stored(3, here + kHalf + 256, 64);
      right = _mm512_loadu_ps(second);
      second += t.scales_step;
    } else {
      _tile_stored(0, here, 64);
      if constexpr (kTwo) _tile_stored(1, here + 256, 64);
    }
    a += t.steps * kStepBytes;
    b += t.steps * kStepOfB;
  }
  TOMBOLO_AMX_FENCE();
  const float* const last = sums[(t.blocks + 1) % 2];
  add_scaled(last, kTall, left, t.total);
  if constexpr (kWide) add_scaled(last + kHalf, kTall, right, t.total + kHalf);
}

/// total[32][16] = y, or where that is null the bias, or nothing; rows that are not there are
/// zeros: what lies there may be denormal numbers, which take long.
TOMBOLO_PIECES void begin_total(const float* y, int64_t ldy, int64_t rows, int64_t columns,
                                const float* bias, float* total) {
  const __mmask16 lanes = first_lanes(columns);
  const __m512 all = bias != nullptr ? _mm512_maskz_loadu_ps(lanes, bias) : _mm512_setzero_ps();
  for (int64_t i = 0; i < rows; ++i)
    _mm512_store_ps(total + i * kLanes,
                    y != nullptr ? _mm512_maskz_loadu_ps(lanes, y + i * ldy) : all);
  for (int64_t i = rows; i < kRows; ++i) _mm512_store_ps(total + i * kLanes, _mm512_setzero_ps());
}
TOMBOLO_PIECES void end_total(const float* total, int64_t rows, int64_t columns, float* y,
                              int64_t ldy) {
  const __mmask16 lanes = first_lanes(columns);
  for (int64_t i = 0; i < rows; ++i)
    _mm512_mask_storeu_ps(y + i * ldy, lanes, _mm512_load_ps(total + i * kLanes));
}

/// Rows as pieces, by 32: [step][piece][32][32].
struct Rows {
  const std::byte* at;
  int64_t tile;  ///< bytes of 32 rows
  int64_t pieces;
};

/// Blocks of k of the panels of 32 columns.
class Product {
 public:
  Product(const NbitsShape& shape, const std::byte* packed, const Rows& rows)
      : s_(shape), packed_(packed), panel_bytes_(nbits_panel_bytes(shape)), rows_(rows) {}

  /// Rows [top, end) times blocks [from, to), added to y where `from` is not the first.
  void run(int64_t top, int64_t end, int64_t from, int64_t to, const float* bias, float* y) const {
    parallel((s_.n + kColumns - 1) / kColumns, 1, [&](int64_t begin, int64_t last) {
      auto* const room = reinterpret_cast<std::byte*>(
          thread_floats(1, static_cast<size_t>((to - from) * s_.block * kColumns / 2 + 16)));
      amx_begin(kStep);
      for (int64_t q = begin; q < last; ++q) columns(q, top, end, from, to, bias, y, room);
      amx_end();
    });
  }

 private:
  int64_t step() const {  ///< bytes of a block of a panel
    return kLanes * (s_.block * s_.bits() / 8 + 4 + (s_.has_zeros ? 1 : 0));
  }

  void widen(const std::byte* first, const std::byte* second, int64_t blocks,
             std::byte* room) const {
    if (s_.kind == NbitsKind::kFour) {
      widen_fours(s_, blocks, first, room);
      if (second != nullptr) widen_fours(s_, blocks, second, room + 64);
    } else {
      NbitsShape some = s_;
      some.k = blocks * s_.block;
      nbits_widen_bf16(some, first, second, room, false);
    }
  }

  void columns(int64_t q, int64_t top, int64_t end, int64_t from, int64_t to, const float* bias,
               float* y, std::byte* room) const {
    const int64_t column = q * kColumns, count = std::min(kColumns, s_.n - column);
    const std::byte* const first = packed_ + 2 * q * panel_bytes_ + from * step();
    const bool wide = count > kLanes;
    widen(first, wide ? first + panel_bytes_ : nullptr, to - from, room);
    alignas(64) float total[kRows * kColumns];
    const std::byte* const scales = first + kLanes * s_.block * s_.bits() / 8;
    Tile tile{.pieces = rows_.pieces,
              .b = room,
              .steps = s_.block * 2 / kStep,
              .blocks = to - from,
              .scales = {scales, scales + panel_bytes_},
              .scales_step = step(),
              .total = total};
    for (int64_t r = top; r < end; r += kRows) {
      const int64_t tall = std::min(kRows, end - r);
      for (int64_t i = 0; i * kLanes < count; ++i) {
        const int64_t at = column + i * kLanes;
        begin_total(from > 0 ? y + r * s_.n + at : nullptr, s_.n, tall, std::min(kLanes, s_.n - at),
                    bias != nullptr ? bias + at : nullptr, total + i * kRows * kLanes);
      }
      tile.a = rows_.at + r / kRows * rows_.tile + from * tile.steps * kStepBytes;
      if (tall > 16)
        wide ? run_tile<true, true>(tile) : run_tile<true, false>(tile);
      else
        wide ? run_tile<false, true>(tile) : run_tile<false, false>(tile);
      for (int64_t i = 0; i * kLanes < count; ++i) {
        const int64_t at = column + i * kLanes;
        end_total(total + i * kRows * kLanes, tall, std::min(kLanes, s_.n - at), y + r * s_.n + at,
                  s_.n);
      }
    }
  }

  const NbitsShape& s_;
  const std::byte* packed_;
  int64_t panel_bytes_;
  Rows rows_;
};

}  // namespace

bool nbits_pieces_fit(const NbitsShape& s, int64_t m) {
  // Of fewer rows vectors take less time than widening for them; codes of 2 and 8 bits take more of
  // that.
  const int64_t least = s.kind == NbitsKind::kFour ? 10 : 13;
  return m >= least && s.block % 32 == 0 && s.kind != NbitsKind::kTable && has_amx_bf16();
}

bool nbits_gemm_pieces(const NbitsShape& s, int64_t m, const float* a, const std::byte* packed,
                       const float* bias, float* y) {
  const int64_t blocks = s.blocks(), steps = blocks * s.block / 32;
  const int64_t tiles = (m + kRows - 1) / kRows, tile = steps * kStepBytes;
  auto* const rows =
      reinterpret_cast<std::byte*>(thread_floats(4, static_cast<size_t>(tiles * tile / 4)));
  std::atomic<unsigned> used = 0;
  std::atomic<bool> finite = true;
  parallel(m, std::max<int64_t>(1, 16384 / s.k), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Found found = split(a + i * s.k, s.k, steps, rows + i / kRows * tile + i % kRows * 64);
      used |= found.used;
      if (!found.finite) finite = false;
    }
  });
  if (!finite) return false;
  // Numbers of 16 bits have fewer pieces.
  const int64_t pieces = used >= 4 ? 3 : used >= 2 ? 2 : 1;
  const Product product(s, packed, {rows, tile, pieces});
  // What panels meet stays in the second cache.
  constexpr int64_t kMostRows = 512, kNear = 1 << 20;
  const int64_t parts = (m + kMostRows - 1) / kMostRows;
  for (int64_t i = 0; i < parts; ++i) {
    const int64_t top = tiles * i / parts * kRows;
    const int64_t end = std::min(m, tiles * (i + 1) / parts * kRows);
    const int64_t tall = (end - top + kRows - 1) / kRows;
    const int64_t fit = std::max<int64_t>(1, kNear / (tall * kStepBytes * s.block / 32));
    const int64_t turns = (blocks + fit - 1) / fit;
    for (int64_t t = 0; t < turns; ++t)
      product.run(top, end, blocks * t / turns, blocks * (t + 1) / turns, bias, y);
  }
  return true;
}

}  // namespace tombolo

#else

namespace tombolo {
bool nbits_pieces_fit(const NbitsShape&, int64_t) { return false; }
bool nbits_gemm_pieces(const NbitsShape&, int64_t, const float*, const std::byte*, const float*,
                       float*) {
  return false;
}
}  // namespace tombolo

#endif
