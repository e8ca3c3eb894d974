// The tile of byte products with AVX2: vpmaddubsw makes twice as many products as vpmaddwd does for
// as many instructions, but adds two of them in 16 bits, where they may saturate. Groups of four
// bytes of k are sorted by what fits (QTiles::sorted), for each panel of 16 columns and for each
// cap, above which the numbers of the other side are not (kQCaps). Where sums of four groups or two
// fit, one step to 32 bits serves them all. Where those of one do not, other bytes of it are put
// side by side, and where no order helps, its numbers are multiplied as 16-bit numbers, even and
// odd ones apart. And the tiles of AVX-VNNI, which need none of this. Functions carry their target.

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "runtime/kernels/quant/qgemm.h"
#include "runtime/kernels/row_pointers.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TOMBOLO_AVX2 __attribute__((target("avx2")))
#define TOMBOLO_AVX2_INLINE inline __attribute__((always_inline, target("avx2")))
#define TOMBOLO_AVX_VNNI __attribute__((target("avx2,avxvnni")))
#define TOMBOLO_AVX_VNNI_INLINE inline __attribute__((always_inline, target("avx2,avxvnni")))

namespace tombolo {
namespace {

TOMBOLO_AVX2_INLINE __m256i group_of(const std::byte* a) {
  int32_t group;
  __builtin_memcpy(&group, a, 4);
  return _mm256_set1_epi32(group);
}

TOMBOLO_AVX2_INLINE __m256i load(const std::byte* b) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b));
}

// Sums of the tile and what they need fill the sixteen registers. Told so: gcc otherwise moves sums
// between registers and the stack.

/// sum += the four products of unsigned and signed bytes.
TOMBOLO_AVX2_INLINE void add_single(__m256i& sum, __m256i a, __m256i b, __m256i ones) {
  __m256i pairs;
  asm("vpmaddubsw %3, %2, %1\n\tvpmaddwd %4, %1, %1\n\tvpaddd %1, %0, %0"
      : "+x"(sum), "=&x"(pairs)
      : "x"(a), "x"(b), "x"(ones));
}

/// The same for the groups a and c of one row, with both halves of the columns.
TOMBOLO_AVX2_INLINE void add_double(__m256i& left, __m256i& right, __m256i a, __m256i c, __m256i b0,
                                    const std::byte* b, const std::byte* d, __m256i ones) {
  __m256i pairs, more;
  const auto* from = reinterpret_cast<const __m256i*>(b);
  const auto* then = reinterpret_cast<const __m256i*>(d);
  asm("vpmaddubsw %6, %4, %2\n\t"
      "vpmaddubsw %8, %5, %3\n\t"
      "vpaddw %3, %2, %2\n\t"
      "vpmaddwd %10, %2, %2\n\t"
      "vpaddd %2, %0, %0\n\t"
      "vpmaddubsw %7, %4, %4\n\t"
      "vpmaddubsw %9, %5, %5\n\t"
      "vpaddw %5, %4, %4\n\t"
      "vpmaddwd %10, %4, %4\n\t"
      "vpaddd %4, %1, %1"
      : "+x"(left), "+x"(right), "=&x"(pairs), "=&x"(more), "+x"(a), "+x"(c)
      : "x"(b0), "m"(from[1]), "m"(then[0]), "m"(then[1]), "x"(ones));
}

/// The same for a group of 16-bit numbers (q_widen_group).
TOMBOLO_AVX2_INLINE void add_wide(__m256i& left, __m256i& right, __m256i a, __m256i b0, __m256i b1,
                                  const std::byte* b, __m256i low) {
  __m256i even, product;
  const auto* from = reinterpret_cast<const __m256i*>(b);
  asm("vpand %9, %4, %2\n\t"
      "vpsrlw $8, %4, %4\n\t"
      "vpmaddwd %5, %2, %3\n\t"
      "vpaddd %3, %0, %0\n\t"
      "vpmaddwd %6, %2, %2\n\t"
      "vpaddd %2, %1, %1\n\t"
      "vpmaddwd %7, %4, %3\n\t"
      "vpaddd %3, %0, %0\n\t"
      "vpmaddwd %8, %4, %4\n\t"
      "vpaddd %4, %1, %1"
      : "+x"(left), "+x"(right), "=&x"(even), "=&x"(product), "+x"(a)
      : "x"(b0), "x"(b1), "m"(from[2]), "m"(from[3]), "x"(low));
}

/// sum += the two products of 16-bit numbers.
TOMBOLO_AVX2_INLINE void add_pairs(__m256i& sum, __m256i a, const std::byte* b) {
  asm("vpmaddwd %2, %1, %1\n\tvpaddd %1, %0, %0"
      : "+x"(sum), "+x"(a)
      : "m"(*reinterpret_cast<const __m256i*>(b)));
}

constexpr int kLeastAsking = 2, kMostAsking = 4;
constexpr int kLeastSoon = 3;

template <int kR>
TOMBOLO_AVX2_INLINE void begin_sums(__m256i (&sum)[kR][2], __m256i from0, __m256i from1) {
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r) {
    sum[r][0] = from0;
    sum[r][1] = from1;
  }
}

/// Takes the bytes of each group of four into the order of a kind.
TOMBOLO_AVX2_INLINE __m256i order_of(QKind kind) {
  const int bytes = kind == kQCrossed ? 0x03010200 : kind == kQOuter ? 0x02010300 : 0x03020100;
  return _mm256_add_epi8(_mm256_set1_epi32(bytes),
                         _mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c, 0, 0x04040404,
                                           0x08080808, 0x0c0c0c0c));
}

TOMBOLO_AVX2_INLINE void widen_group(const std::byte* group, std::byte* out) {
  for (int half = 0; half < 64; half += 32) {
    const __m256i x = load(group + half);
    const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + half), even);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 64 + half), _mm256_srai_epi16(x, 8));
  }
}

/// The first of four groups of one row, of both halves of the columns: `a` becomes those of the
/// right.
TOMBOLO_AVX2_INLINE __m256i begin_four(__m256i& a, const std::byte* b) {
  __m256i left;
  const auto* from = reinterpret_cast<const __m256i*>(b);
  asm("vpmaddubsw %2, %1, %0\n\tvpmaddubsw %3, %1, %1"
      : "=&x"(left), "+x"(a)
      : "m"(from[0]), "m"(from[1]));
  return left;
}
TOMBOLO_AVX2_INLINE void next_of_four(__m256i& left, __m256i& right, __m256i a,
                                      const std::byte* b) {
  __m256i product;
  const auto* from = reinterpret_cast<const __m256i*>(b);
  asm("vpmaddubsw %4, %2, %3\n\t"
      "vpaddw %3, %0, %0\n\t"
      "vpmaddubsw %5, %2, %2\n\t"
      "vpaddw %2, %1, %1"
      : "+x"(left), "+x"(right), "+x"(a), "=&x"(product)
      : "m"(from[0]), "m"(from[1]));
}
TOMBOLO_AVX2_INLINE void end_four(__m256i& sum, __m256i products, __m256i ones) {
  asm("vpmaddwd %2, %1, %1\n\tvpaddd %1, %0, %0" : "+x"(sum), "+x"(products) : "x"(ones));
}

/// Of so few rows that the panels take as long to come as to be multiplied: as 16-bit numbers,
/// group by group.
template <int kR>
TOMBOLO_AVX2_INLINE void accumulate_wide(const QTile& t, __m256i from0, __m256i from1,
                                         __m256i (&sum)[kR][2]) {
  begin_sums(sum, from0, from1);
  const __m256i low = _mm256_set1_epi16(255);
  const std::byte* next = t.next != nullptr ? t.next : t.b;
  for (int64_t s = 0; s < t.stretches; ++s) {
    RowPointers<std::byte, kR> a(t.a + (t.offsets != nullptr ? t.offsets[s] : 0), t.lda);
    const std::byte* b = t.b + s * t.stretch_bytes;
    for (int64_t g = t.groups; g > 0; --g, a.advance(4), b += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T1);
      next += t.next_step;
      alignas(32) std::byte wide[128];
      widen_group(b, wide);
      const __m256i b0 = load(wide), b1 = load(wide + 32);
#pragma GCC unroll 2
      for (int r = 0; r < kR; ++r)
        add_wide(sum[r][0], sum[r][1], group_of(a.at(r)), b0, b1, wide, low);
    }
  }
}

/// The broadcast side is unsigned, the packed one signed and sorted.
template <int kR>
TOMBOLO_AVX2_INLINE void accumulate(const QTile& t, __m256i from0, __m256i from1,
                                    __m256i (&sum)[kR][2]) {
  if constexpr (kR <= kQUnsortedRows) return accumulate_wide<kR>(t, from0, from1, sum);
  const QSorted& q = *t.sorted;
  if (q.less != 0) {
    const __m256i less = _mm256_set1_epi32(q.less);
    const auto* columns = reinterpret_cast<const std::byte*>(q.column_sums);
    from0 = _mm256_add_epi32(from0, _mm256_mullo_epi32(less, load(columns)));
    from1 = _mm256_add_epi32(from1, _mm256_mullo_epi32(less, load(columns + 32)));
  }
  begin_sums(sum, from0, from1);
  // A register for each row: what a group adds to it, an address can.
  const std::byte* rows[kR];
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r) rows[r] = t.a + r * t.lda;
  const QGroup* at = q.groups;
  const std::byte* const panel = t.b;
  const __m256i ones = _mm256_set1_epi16(1);
  [[maybe_unused]] const std::byte* next = t.next != nullptr ? t.next : t.b;
  const auto ask = [&](const std::byte* b, int lines) TOMBOLO_AVX2 __attribute__((always_inline)) {
    if constexpr (kR >= kLeastAsking && kR <= kMostAsking)
      for (int i = 0; i < lines; ++i)
        _mm_prefetch(reinterpret_cast<const char*>(b) + t.ahead + 64 * i, _MM_HINT_T1);
  };
  const auto share = [&](int64_t bytes) TOMBOLO_AVX2 __attribute__((always_inline)) {
    if constexpr (kR > kMostAsking) {
      _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T1);
      next += bytes;
    }
  };
  // Panels of long rows are beyond the first cache, in an order that no prefetcher sees through.
  const auto soon = [&](const QGroup* group, int lines) TOMBOLO_AVX2
      __attribute__((always_inline)) {
    if constexpr (kR >= kLeastSoon)
      for (int i = 0; i < lines; ++i)
        _mm_prefetch(reinterpret_cast<const char*>(panel) + group->panel + 64 * i, _MM_HINT_T0);
  };
  const int64_t step2 = 2 * t.next_step, step4 = 4 * t.next_step;
  for (const QGroup* end = at + 2 * q.counts[kQFour]; at < end; at += 2) {
    const int64_t x = at[0].row, y = at[1].row;
    const std::byte *b = panel + at[0].panel, *d = panel + at[1].panel;
    ask(b, 2);
    ask(d, 2);
    share(step4);
    soon(at + 6, 2);
    soon(at + 7, 2);
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r) {
      __m256i right = group_of(rows[r] + x);
      __m256i left = begin_four(right, b);
      next_of_four(left, right, group_of(rows[r] + x + 4), b + 64);
      next_of_four(left, right, group_of(rows[r] + y), d);
      next_of_four(left, right, group_of(rows[r] + y + 4), d + 64);
      end_four(sum[r][0], left, ones);
      end_four(sum[r][1], right, ones);
    }
  }
  for (const QGroup* end = at + 2 * q.counts[kQDouble]; at < end; at += 2) {
    const int64_t x = at[0].row, y = at[1].row;
    const std::byte *b = panel + at[0].panel, *d = panel + at[1].panel;
    const __m256i b0 = load(b);
    ask(b, 1);
    ask(d, 1);
    share(step2);
    soon(at + 8, 1);
    soon(at + 9, 1);
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r)
      add_double(sum[r][0], sum[r][1], group_of(rows[r] + x), group_of(rows[r] + y), b0, b, d,
                 ones);
  }
  for (const QGroup* end = at + q.counts[kQSingle]; at < end; ++at) {
    const int64_t x = at->row;
    const std::byte* b = panel + at->panel;
    const __m256i b0 = load(b), b1 = load(b + 32);
    ask(b, 1);
    share(t.next_step);
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r) {
      const __m256i av = group_of(rows[r] + x);
      add_single(sum[r][0], av, b0, ones);
      add_single(sum[r][1], av, b1, ones);
    }
  }
  const auto add_ordered = [&](QKind kind) TOMBOLO_AVX2 __attribute__((always_inline)) {
    if (q.counts[kind] == 0) return;
    const __m256i by = order_of(kind);
    for (const QGroup* end = at + q.counts[kind]; at < end; ++at) {
      const int64_t x = at->row;
      const std::byte* b = panel + at->panel;
      const __m256i b0 = _mm256_shuffle_epi8(load(b), by);
      const __m256i b1 = _mm256_shuffle_epi8(load(b + 32), by);
#pragma GCC unroll 8
      for (int r = 0; r < kR; ++r) {
        const __m256i av = _mm256_shuffle_epi8(group_of(rows[r] + x), by);
        add_single(sum[r][0], av, b0, ones);
        add_single(sum[r][1], av, b1, ones);
      }
    }
  };
  add_ordered(kQCrossed);
  add_ordered(kQOuter);
  const __m256i low = _mm256_set1_epi16(255);
  const std::byte* wide = q.wide;
  for (const QGroup* end = at + q.counts[kQWide]; at < end; ++at, wide += 128) {
    const int64_t x = at->row;
    const __m256i b0 = load(wide), b1 = load(wide + 32);
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r)
      add_wide(sum[r][0], sum[r][1], group_of(rows[r] + x), b0, b1, wide, low);
  }
  const int16_t* rare = q.rare;
  for (int32_t i = 0; i < q.rares; ++i, rare += 4 * kQRareRows) {
    alignas(32) std::byte group[128];
    widen_group(panel + int64_t{q.rare_groups[i]} * 64, group);
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r) {
      const auto* row = reinterpret_cast<const std::byte*>(rare + 4 * r);
      const __m256i even = group_of(row), odd = group_of(row + 4);
      for (int half = 0; half < 2; ++half) {
        add_pairs(sum[r][half], even, group + 32 * half);
        add_pairs(sum[r][half], odd, group + 64 + 32 * half);
      }
    }
  }
}

template <int kR>
TOMBOLO_AVX2 void sum_tile(const QTile& t) {
  __m256i sum[kR][2];
  const __m256i zero = _mm256_setzero_si256();
  accumulate<kR>(t, zero, zero, sum);
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(t.c + r * t.ldc), sum[r][0]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(t.c + r * t.ldc + 8), sum[r][1]);
  }
}

// What finish_columns (qgemm_tile.cpp) makes of sums, here where they are: layers of few inputs
// would spend as long on writing and reading them as on the products.

template <bool kRest>
TOMBOLO_AVX2_INLINE __m256i number(const QEnds& e, int i, __m256i sum, const std::byte* rest) {
  __m256 x = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_load_ps(e.scale + 8 * i));
  if constexpr (kRest) {
    const __m256 first = _mm256_round_ps(
        _mm256_min_ps(_mm256_set1_ps(e.own_high), _mm256_max_ps(_mm256_set1_ps(e.own_low), x)),
        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(rest + 8 * i));
    const __m256i wide = e.rest_signed ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
    const __m256 other = _mm256_cvtepi32_ps(_mm256_sub_epi32(wide, _mm256_set1_epi32(e.rest_zero)));
    x = _mm256_add_ps(_mm256_mul_ps(first, _mm256_set1_ps(e.own)),
                      _mm256_mul_ps(other, _mm256_set1_ps(e.other)));
  }
  return _mm256_cvtps_epi32(_mm256_min_ps(_mm256_set1_ps(e.high), x));
}

template <bool kRest>
TOMBOLO_AVX2_INLINE __m256i row_of(const QEnds& e, const __m256i (&sums)[2],
                                   const std::byte* rest) {
  return _mm256_adds_epi16(
      _mm256_packs_epi32(number<kRest>(e, 0, sums[0], rest), number<kRest>(e, 1, sums[1], rest)),
      _mm256_set1_epi16(e.zero));
}

template <int kR, bool kRest>
TOMBOLO_AVX2_INLINE void store_bytes(const QEnds& e, const __m256i (&sum)[kR][2], int64_t row) {
  const int64_t ldo = e.ldo;
  std::byte* to = e.out + row * ldo;
  const std::byte* rest = kRest ? e.rest + row * ldo : nullptr;
#pragma GCC unroll 8
  for (int r = 0; r < kR; r += 2, to += 2 * ldo) {
    const int next = r + 1 < kR ? r + 1 : r;
    const __m256i first = row_of<kRest>(e, sum[r], rest);
    const __m256i second =
        next == r ? first : row_of<kRest>(e, sum[next], kRest ? rest + ldo : nullptr);
    __m256i bytes = _mm256_packs_epi16(first, second);
    bytes = _mm256_max_epi8(_mm256_min_epi8(bytes, _mm256_set1_epi8(e.greatest)),
                            _mm256_set1_epi8(e.least));
    bytes = _mm256_xor_si256(bytes, _mm256_set1_epi8(e.middle));
    // Narrowing leaves fours of columns: of both vectors of the first row, then of the second.
    bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(bytes));
    if (next != r)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + ldo), _mm256_extracti128_si256(bytes, 1));
    if constexpr (kRest) rest += 2 * ldo;
  }
}

/// Sums of whole panels as floats.
template <int kR>
TOMBOLO_AVX2_INLINE void store_floats(const QEnds& e, const __m256i (&sum)[kR][2], int64_t row) {
  float* to = reinterpret_cast<float*>(e.out) + row * e.ldo;
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r, to += e.ldo)
    for (int i = 0; i < 2; ++i) {
      __m256 x = _mm256_mul_ps(_mm256_cvtepi32_ps(sum[r][i]), _mm256_load_ps(e.scale + 8 * i));
      if (e.biased) x = _mm256_add_ps(x, _mm256_load_ps(e.bias + 8 * i));  // -0 + 0 would be 0
      _mm256_storeu_ps(to + 8 * i, x);
    }
}

template <int kR, bool kRest>
TOMBOLO_AVX2 void byte_tile(const QTile& t, const QEnds& e, int64_t row, int64_t /*columns*/) {
  __m256i sum[kR][2];
  const auto* add = reinterpret_cast<const __m256i*>(e.add);
  accumulate<kR>(t, _mm256_load_si256(add), _mm256_load_si256(add + 1), sum);
  store_bytes<kR, kRest>(e, sum, row);
}

template <int kR>
TOMBOLO_AVX2 void float_tile(const QTile& t, const QEnds& e, int64_t row, int64_t /*columns*/) {
  __m256i sum[kR][2];
  const auto* add = reinterpret_cast<const __m256i*>(e.add);
  accumulate<kR>(t, _mm256_load_si256(add), _mm256_load_si256(add + 1), sum);
  store_floats<kR>(e, sum, row);
}

/// Pairs of 16-bit numbers on both sides (pair_tile in qgemm_tile.cpp).
template <int kR>
TOMBOLO_AVX2_INLINE void accumulate_pairs(const QTile& t, const QEnds& e, __m256i (&sum)[kR][2]) {
  const auto* add = reinterpret_cast<const __m256i*>(e.add);
  begin_sums(sum, _mm256_load_si256(add), _mm256_load_si256(add + 1));
  for (int64_t s = 0; s < t.stretches; ++s) {
    RowPointers<std::byte, kR> a(t.a + (t.offsets != nullptr ? t.offsets[s] : 0), t.lda);
    const std::byte* b = t.b + s * t.stretch_bytes;
    for (int64_t g = t.groups; g > 0; --g, a.advance(4), b += 64) {
      const __m256i b0 = load(b), b1 = load(b + 32);
#pragma GCC unroll 8
      for (int r = 0; r < kR; ++r) {
        __m256i left, right = group_of(a.at(r));
        asm("vpmaddwd %4, %3, %2\n\tvpaddd %2, %0, %0\n\t"
            "vpmaddwd %5, %3, %3\n\tvpaddd %3, %1, %1"
            : "+x"(sum[r][0]), "+x"(sum[r][1]), "=&x"(left), "+x"(right)
            : "x"(b0), "x"(b1));
      }
    }
  }
}

template <int kR, bool kRest>
TOMBOLO_AVX2 void byte_pair_tile(const QTile& t, const QEnds& e, int64_t row, int64_t /*columns*/) {
  __m256i sum[kR][2];
  accumulate_pairs<kR>(t, e, sum);
  store_bytes<kR, kRest>(e, sum, row);
}

template <int kR>
TOMBOLO_AVX2 void float_pair_tile(const QTile& t, const QEnds& e, int64_t row,
                                  int64_t /*columns*/) {
  __m256i sum[kR][2];
  accumulate_pairs<kR>(t, e, sum);
  store_floats<kR>(e, sum, row);
}

// With AVX-VNNI, which processors without AVX-512 have: four products an instruction, exact.

/// In assembly: gcc otherwise keeps the sums on the stack, too.
template <QDotKind kKind>
TOMBOLO_AVX_VNNI_INLINE void add_dot(__m256i& sum, __m256i a, __m256i b) {
  if constexpr (kKind == QDotKind::kUnsignedRows)
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
  if constexpr (kKind == QDotKind::kSignedRows)
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(b), "x"(a));
  if constexpr (kKind == QDotKind::kPairs)
    asm("%{vex%} vpdpwssd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
}

constexpr int kDotRows = 6;

template <int kR, QDotKind kKind>
TOMBOLO_AVX_VNNI_INLINE void accumulate_dots(const QTile& t, __m256i from0, __m256i from1,
                                             __m256i (&sum)[kR][2]) {
  begin_sums(sum, from0, from1);
  [[maybe_unused]] const std::byte* next = t.next != nullptr ? t.next : t.b;
  for (int64_t s = 0; s < t.stretches; ++s) {
    RowPointers<std::byte, kR> a(t.a + (t.offsets != nullptr ? t.offsets[s] : 0), t.lda);
    const std::byte* b = t.b + s * t.stretch_bytes;
    for (int64_t g = t.groups; g > 0; --g, a.advance(4), b += 64) {
      const __m256i b0 = load(b), b1 = load(b + 32);
      if constexpr (kR >= kLeastAsking && kR <= kMostAsking)
        _mm_prefetch(reinterpret_cast<const char*>(b) + t.ahead, _MM_HINT_T1);
      if constexpr (kR > kMostAsking) {
        _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T1);
        next += t.next_step;
      }
#pragma GCC unroll 8
      for (int r = 0; r < kR; ++r) {
        const __m256i av = group_of(a.at(r));
        add_dot<kKind>(sum[r][0], av, b0);
        add_dot<kKind>(sum[r][1], av, b1);
      }
    }
  }
}

template <int kR, QDotKind kKind>
TOMBOLO_AVX_VNNI void dot_tile(const QTile& t) {
  __m256i sum[kR][2];
  accumulate_dots<kR, kKind>(t, _mm256_setzero_si256(), _mm256_setzero_si256(), sum);
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r)
    for (int i = 0; i < 2; ++i) {
      auto* to = reinterpret_cast<__m256i*>(t.c + r * t.ldc + 8 * i);
      if (kKind == QDotKind::kPairs && t.add)
        sum[r][i] = _mm256_add_epi32(sum[r][i], _mm256_loadu_si256(to));
      _mm256_storeu_si256(to, sum[r][i]);
    }
}

template <int kR, bool kRest>
TOMBOLO_AVX_VNNI void byte_dot_tile(const QTile& t, const QEnds& e, int64_t row,
                                    int64_t /*columns*/) {
  __m256i sum[kR][2];
  const auto* add = reinterpret_cast<const __m256i*>(e.add);
  accumulate_dots<kR, QDotKind::kUnsignedRows>(t, _mm256_load_si256(add),
                                               _mm256_load_si256(add + 1), sum);
  store_bytes<kR, kRest>(e, sum, row);
}

template <int kR>
TOMBOLO_AVX_VNNI void float_dot_tile(const QTile& t, const QEnds& e, int64_t row,
                                     int64_t /*columns*/) {
  __m256i sum[kR][2];
  const auto* add = reinterpret_cast<const __m256i*>(e.add);
  accumulate_dots<kR, QDotKind::kUnsignedRows>(t, _mm256_load_si256(add),
                                               _mm256_load_si256(add + 1), sum);
  store_floats<kR>(e, sum, row);
}

template <int... kR>
void fill_dots(QTiles& tiles, std::integer_sequence<int, kR...>) {
  ((tiles.unsigned_rows[kR + 1] = &dot_tile<kR + 1, QDotKind::kUnsignedRows>), ...);
  ((tiles.signed_rows[kR + 1] = &dot_tile<kR + 1, QDotKind::kSignedRows>), ...);
  ((tiles.byte_rows[0][kR + 1] = &byte_dot_tile<kR + 1, false>), ...);
  ((tiles.byte_rows[1][kR + 1] = &byte_dot_tile<kR + 1, true>), ...);
  ((tiles.float_rows[kR + 1] = &float_dot_tile<kR + 1>), ...);
}
template <int... kR>
void fill_pairs(QTiles& tiles, std::integer_sequence<int, kR...>) {
  ((tiles.unsigned_rows[kR + 1] = tiles.signed_rows[kR + 1] = &dot_tile<kR + 1, QDotKind::kPairs>),
   ...);
}

template <int... kR>
void fill(QTiles& tiles, std::integer_sequence<int, kR...>) {
  // Only unsigned rows: of images in panels (QLinearConv) the weights are the broadcast side.
  ((tiles.unsigned_rows[kR + 1] = &sum_tile<kR + 1>), ...);
  ((tiles.byte_rows[0][kR + 1] = &byte_tile<kR + 1, false>), ...);
  ((tiles.byte_rows[1][kR + 1] = &byte_tile<kR + 1, true>), ...);
  ((tiles.float_rows[kR + 1] = &float_tile<kR + 1>), ...);
}
template <int... kR>
void fill_ends(QTiles& tiles, std::integer_sequence<int, kR...>) {
  ((tiles.byte_rows[0][kR + 1] = &byte_pair_tile<kR + 1, false>), ...);
  ((tiles.byte_rows[1][kR + 1] = &byte_pair_tile<kR + 1, true>), ...);
  ((tiles.float_rows[kR + 1] = &float_pair_tile<kR + 1>), ...);
}

/// What the positive and what the negative numbers of each two neighbours add up to, 255 at most.
struct Range {
  __m256i above, below;
};

TOMBOLO_AVX2_INLINE __m256i two_sums(__m256i x, __m256i y) {
  const __m256i ones = _mm256_set1_epi8(1);
  return _mm256_packus_epi16(_mm256_maddubs_epi16(x, ones), _mm256_maddubs_epi16(y, ones));
}

TOMBOLO_AVX2_INLINE Range range_of(const std::byte* group, QKind kind = kQSingle) {
  const __m256i zero = _mm256_setzero_si256(), order = order_of(kind);
  const __m256i x = _mm256_shuffle_epi8(load(group), order);
  const __m256i y = _mm256_shuffle_epi8(load(group + 32), order);
  return {two_sums(_mm256_max_epi8(x, zero), _mm256_max_epi8(y, zero)),
          two_sums(_mm256_sub_epi8(zero, _mm256_min_epi8(x, zero)),
                   _mm256_sub_epi8(zero, _mm256_min_epi8(y, zero)))};
}

TOMBOLO_AVX2 uint8_t largest(const Range& range) {
  alignas(32) uint8_t sums[32];
  _mm256_store_si256(reinterpret_cast<__m256i*>(sums), _mm256_max_epu8(range.above, range.below));
  return *std::max_element(sums, sums + 32);
}

/// Sorts the groups of one panel by what fits sums of 16 bits.
class Sorter {
 public:
  TOMBOLO_AVX2 Sorter(const std::byte* panel, int64_t stretches, int64_t groups) : panel_(panel) {
    for (int64_t i = 0; i < stretches * groups; ++i)
      units_.push_back(unit_of(static_cast<uint16_t>(i), range_of(panel + i * 64)));
    // Two neighbours of one stretch: they are neighbours in a row, too.
    for (size_t i = 0; i + 1 < units_.size(); ++i)
      if (const size_t at = i % static_cast<size_t>(groups);
          at % 2 == 0 && at + 1 < static_cast<size_t>(groups))
        twos_.push_back(unit_of(static_cast<uint16_t>(i), sums_of(units_[i], units_[i + 1])));
    sort(twos_);
  }

  /// For numbers up to `cap`: counts of each kind and their groups, in that order.
  TOMBOLO_AVX2 void sort_for(int cap, int32_t* counts, uint16_t* order) const {
    // Sums of 255 may be more.
    const auto most = static_cast<uint8_t>(std::min(254, 32767 / cap));
    std::vector<bool> done(units_.size());
    uint16_t* to = order;
    const auto fours = pairs_of(twos_, most);
    for (const uint16_t i : fours) {
      *to++ = i;
      done[i] = done[i + 1u] = true;
    }
    std::vector<uint16_t> kinds[kQKinds];
    std::vector<Unit> single;
    for (const Unit& unit : units_) {
      if (done[unit.index]) continue;
      const QKind kind = kind_of(unit, most);
      if (kind == kQSingle)
        single.push_back(unit);
      else
        kinds[kind].push_back(unit.index);
    }
    sort(single);
    kinds[kQDouble] = pairs_of(single, most);
    for (const uint16_t i : kinds[kQDouble]) done[i] = true;
    for (const Unit& unit : single)
      if (!done[unit.index]) kinds[kQSingle].push_back(unit.index);
    counts[kQFour] = static_cast<int32_t>(fours.size() / 2);
    for (int k = kQDouble; k < kQKinds; ++k) {
      counts[k] = static_cast<int32_t>(kinds[k].size() / (k == kQDouble ? 2 : 1));
      to = std::copy(kinds[k].begin(), kinds[k].end(), to);
    }
  }

 private:
  /// A group, or two neighbours, and what they add up to (a Range).
  struct Unit {
    std::byte range[64];
    uint16_t index;
    uint8_t largest;
  };

  TOMBOLO_AVX2 static Unit unit_of(uint16_t index, const Range& range) {
    Unit unit;
    unit.index = index;
    unit.largest = tombolo::largest(range);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(unit.range), range.above);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(unit.range + 32), range.below);
    return unit;
  }
  TOMBOLO_AVX2_INLINE static Range sums_of(const Unit& x, const Unit& y) {
    return {_mm256_adds_epu8(load(x.range), load(y.range)),
            _mm256_adds_epu8(load(x.range + 32), load(y.range + 32))};
  }
  static void sort(std::vector<Unit>& units) {
    std::sort(units.begin(), units.end(), [](const Unit& x, const Unit& y) {
      return x.largest != y.largest ? x.largest > y.largest : x.index < y.index;
    });
  }

  /// Finds pairs of sorted units that fit together, two neighbours each: the largest are given the
  /// first partner that they find among the smallest.
  TOMBOLO_AVX2 static std::vector<uint16_t> pairs_of(const std::vector<Unit>& units, uint8_t most) {
    constexpr int kTries = 24;
    std::vector<bool> taken(units.size());
    std::vector<uint16_t> pairs;
    const __m256i limit = _mm256_set1_epi8(static_cast<char>(most));
    size_t least = units.size();
    for (size_t i = 0; i < units.size(); ++i) {
      if (taken[i] || units[i].largest > most) continue;
      while (least > 0 && taken[least - 1]) --least;
      int tries = 0;
      for (size_t j = least; j-- > i + 1 && tries < kTries;) {
        if (taken[j]) continue;
        ++tries;
        const Range sums = sums_of(units[i], units[j]);
        const __m256i over = _mm256_subs_epu8(_mm256_max_epu8(sums.above, sums.below), limit);
        if (_mm256_testz_si256(over, over) == 0) continue;
        taken[j] = true;
        pairs.push_back(units[i].index);
        pairs.push_back(units[j].index);
        break;
      }
    }
    return pairs;
  }

  /// The least demanding kind of a group that stands alone.
  TOMBOLO_AVX2 QKind kind_of(const Unit& unit, uint8_t most) const {
    if (unit.largest <= most) return kQSingle;
    for (const QKind kind : {kQCrossed, kQOuter})
      if (largest(range_of(panel_ + int64_t{unit.index} * 64, kind)) <= most) return kind;
    return kQWide;
  }

  const std::byte* panel_;
  std::vector<Unit> units_, twos_;
};

/// Eight bytes in the lower half of a register.
TOMBOLO_AVX2_INLINE __m128i load_eight(const std::byte* at) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
}

/// `count` bytes, at most eight, at the end of a row of `run`.
inline uint64_t last_bytes(const std::byte* at, int64_t count, int64_t run) {
  uint64_t word = 0;
  if (run >= 8) {
    __builtin_memcpy(&word, at + count - 8, 8);
    return word >> 8 * (8 - count);
  }
  for (int64_t i = 0; i < count; ++i) word |= static_cast<uint64_t>(at[i]) << 8 * i;
  return word;
}

/// The largest byte of each four, eight of them in the lower half.
TOMBOLO_AVX2_INLINE __m128i most_of_fours(__m256i x) {
  x = _mm256_max_epu8(x, _mm256_srli_epi32(x, 16));
  x = _mm256_max_epu8(x, _mm256_srli_epi32(x, 8));
  x = _mm256_shuffle_epi8(x, _mm256_set1_epi32(0x0c080400));
  return _mm_unpacklo_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
}
/// The smallest: what is least is most of what is left of 255.
TOMBOLO_AVX2_INLINE __m128i least_of_fours(__m256i x) {
  return _mm_xor_si128(most_of_fours(_mm256_xor_si256(x, _mm256_set1_epi8(-1))), _mm_set1_epi8(-1));
}

}  // namespace

TOMBOLO_AVX2 void q_sort_groups(const std::byte* panel, int64_t stretches, int64_t groups,
                                int32_t* counts, uint16_t* order) {
  const Sorter sorter(panel, stretches, groups);
  for (size_t i = 0; i < std::size(kQCaps); ++i, counts += kQKinds, order += stretches * groups)
    sorter.sort_for(kQCaps[i], counts, order);
}

TOMBOLO_AVX2 void q_widen_group(const std::byte* group, std::byte* out) { widen_group(group, out); }

TOMBOLO_AVX2 int64_t q_count_above(const uint8_t* x, int64_t n, uint8_t limit) {
  const __m256i most = _mm256_set1_epi8(static_cast<char>(limit));
  int64_t count = 0, i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m256i over = _mm256_subs_epu8(load(reinterpret_cast<const std::byte*>(x + i)), most);
    count += 32 - __builtin_popcount(static_cast<uint32_t>(
                      _mm256_movemask_epi8(_mm256_cmpeq_epi8(over, _mm256_setzero_si256()))));
  }
  for (; i < n; ++i) count += x[i] > limit;
  return count;
}

TOMBOLO_AVX2 void q_range_of_groups(const std::byte* a, int64_t lda, int32_t rows, int64_t run,
                                    uint8_t* most, uint8_t* least) {
  int64_t i = 0;
  for (; i + 32 <= run; i += 32, a += 32, most += 8, least += 8) {
    __m256i x = load(a), y = x;
    for (int32_t r = 1; r < rows; ++r) {
      const __m256i row = load(a + r * lda);
      x = _mm256_max_epu8(x, row);
      y = _mm256_min_epu8(y, row);
    }
    _mm_storel_epi64(reinterpret_cast<__m128i*>(most), most_of_fours(x));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(least), least_of_fours(y));
  }
  for (; i < run; i += 8, a += 8, most += 2, least += 2) {
    const int64_t left = std::min<int64_t>(8, run - i);
    // Of fewer than eight, zeros are above those that count, and are none of the smallest.
    const uint64_t beyond = left < 8 ? ~uint64_t{0} << 8 * left : 0;
    __m128i x = _mm_setzero_si128(), y = _mm_set1_epi8(-1);
    for (int32_t r = 0; r < rows; ++r) {
      const uint64_t word = last_bytes(a + r * lda, left, run);
      x = _mm_max_epu8(x, _mm_cvtsi64_si128(static_cast<int64_t>(word)));
      y = _mm_min_epu8(y, _mm_cvtsi64_si128(static_cast<int64_t>(word | beyond)));
    }
    const int high = _mm_extract_epi16(most_of_fours(_mm256_castsi128_si256(x)), 0);
    const int low = _mm_extract_epi16(least_of_fours(_mm256_castsi128_si256(y)), 0);
    most[0] = static_cast<uint8_t>(high);
    least[0] = static_cast<uint8_t>(low);
    if (left <= 4) continue;
    most[1] = static_cast<uint8_t>(high >> 8);
    least[1] = static_cast<uint8_t>(low >> 8);
  }
}

TOMBOLO_AVX2 void q_copy_less(const std::byte* from, int64_t step, int32_t rows, int64_t run,
                              uint8_t less, std::byte* to, int64_t to_step) {
  const __m256i x = _mm256_set1_epi8(static_cast<char>(less));
  const __m128i half = _mm256_castsi256_si128(x);
  const auto copy_eight = [&](int64_t i) TOMBOLO_AVX2 {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + i), _mm_sub_epi8(load_eight(from + i), half));
  };
  for (int32_t r = 0; r < rows; ++r, from += step, to += to_step) {
    int64_t i = 0;
    for (; i + 32 <= run; i += 32)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), _mm256_sub_epi8(load(from + i), x));
    for (; i + 8 <= run; i += 8) copy_eight(i);
    if (i == run) continue;
    if (run >= 8) {
      copy_eight(run - 8);
    } else {
      for (; i < run; ++i) to[i] = static_cast<std::byte>(static_cast<uint8_t>(from[i]) - less);
    }
  }
}

QTiles make_byte_tiles() {
  QTiles tiles{
      .max_rows = 5, .panel = 16, .group = 4, .element = 1, .sorted = true, .name = "bytes"};
  tiles.least_columns = tiles.panel;
  tiles.least_asking = kLeastAsking;
  tiles.most_asking = kMostAsking;
  tiles.shares = true;
  fill(tiles, std::make_integer_sequence<int, 5>());
  return tiles;
}

QTiles with_ends(QTiles pairs) {
  pairs.least_columns = pairs.panel;
  fill_ends(pairs, std::make_integer_sequence<int, 5>());
  return pairs;
}

QTiles make_avx_vnni_tiles() {
  QTiles tiles{.max_rows = kDotRows, .panel = 16, .group = 4, .element = 1, .name = "avx vnni"};
  tiles.least_columns = tiles.panel;
  tiles.least_asking = kLeastAsking;
  tiles.most_asking = kMostAsking;
  tiles.shares = true;
  fill_dots(tiles, std::make_integer_sequence<int, kDotRows>());
  return tiles;
}

QTiles make_avx_vnni_pair_tiles() {
  QTiles tiles{
      .max_rows = kDotRows, .panel = 16, .group = 2, .element = 2, .name = "avx vnni pairs"};
  tiles.least_asking = kLeastAsking;
  tiles.most_asking = kMostAsking;
  tiles.shares = true;
  fill_pairs(tiles, std::make_integer_sequence<int, kDotRows>());
  return tiles;
}

}  // namespace tombolo

#else

namespace tombolo {
QTiles make_byte_tiles() { return {}; }
QTiles with_ends(QTiles pairs) { return pairs; }
QTiles make_avx_vnni_tiles() { return {}; }
QTiles make_avx_vnni_pair_tiles() { return {}; }
void q_sort_groups(const std::byte*, int64_t, int64_t, int32_t*, uint16_t*) {}
void q_widen_group(const std::byte*, std::byte*) {}
int64_t q_count_above(const uint8_t*, int64_t, uint8_t) { return 0; }
void q_range_of_groups(const std::byte*, int64_t, int32_t, int64_t, uint8_t*, uint8_t*) {}
void q_copy_less(const std::byte*, int64_t, int32_t, int64_t, uint8_t, std::byte*, int64_t) {}
}  // namespace tombolo

#endif
