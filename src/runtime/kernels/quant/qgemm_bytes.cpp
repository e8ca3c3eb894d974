// The tile of byte products with AVX2: vpmaddubsw makes twice as many products as vpmaddwd does for
// as many instructions, but adds two of them in 16 bits, where they may saturate. Groups are sorted
// by what fits (QTiles::sorted), for each panel of 16 columns: with bytes from 0 to 255, positive
// and negative numbers may each add up to 128 in a sum of 16 bits. Where those of two groups do
// together, one step to 32 bits serves both. Where those of one do not, other bytes of it are put
// side by side, and where no order helps, its numbers are multiplied as 16-bit numbers, even and
// odd ones apart. And the tiles of AVX-VNNI, which need none of this. Functions carry their target.

#include <algorithm>
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
                                    const std::byte* b, __m256i ones) {
  __m256i pairs, more;
  const auto* from = reinterpret_cast<const __m256i*>(b);
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
      : "x"(b0), "m"(from[1]), "m"(from[2]), "m"(from[3]), "x"(ones));
}

/// The same for a group of 16-bit numbers: two even ones of each column, then two odd ones.
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

/// Takes the bytes of each group of four into the kind's order.
TOMBOLO_AVX2_INLINE __m256i order_of(QKind kind) {
  const int bytes = kind == kQCrossed ? 0x03010200 : kind == kQOuter ? 0x02010300 : 0x03020100;
  return _mm256_add_epi8(_mm256_set1_epi32(bytes),
                         _mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c, 0, 0x04040404,
                                           0x08080808, 0x0c0c0c0c));
}

constexpr int kLeastAsking = 3, kMostAsking = 4;
template <int kR>
TOMBOLO_AVX2_INLINE void ask(const std::byte* b, int64_t ahead, int lines) {
  if constexpr (kR >= kLeastAsking && kR <= kMostAsking)
    for (int i = 0; i < lines; ++i)
      _mm_prefetch(reinterpret_cast<const char*>(b) + ahead + 64 * i, _MM_HINT_T1);
}

template <int kR>
TOMBOLO_AVX2_INLINE void begin_sums(__m256i (&sum)[kR][2], __m256i from0, __m256i from1) {
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r) {
    sum[r][0] = from0;
    sum[r][1] = from1;
  }
}

/// Of row r, the fourth of which is at a3. RowPointers would be made anew for each group here: 2 %
/// of the time.
TOMBOLO_AVX2_INLINE __m256i group_of_row(const std::byte* a, const std::byte* a3, int64_t lda,
                                         int r) {
  return group_of(r < 3 ? a + r * lda : a3 + (r - 3) * lda);
}

/// The broadcast side is unsigned, the packed one signed and sorted.
template <int kR>
TOMBOLO_AVX2_INLINE void accumulate(const QTile& t, __m256i from0, __m256i from1,
                                    __m256i (&sum)[kR][2]) {
  begin_sums(sum, from0, from1);
  const int64_t lda = t.lda;
  const uint32_t* place = t.places;
  const std::byte* b = t.b;
  const __m256i ones = _mm256_set1_epi16(1);
  for (int32_t i = t.counts[kQDouble]; i > 0; --i, place += 2, b += 128) {
    const std::byte *a = t.a + place[0], *c = t.a + place[1];
    const std::byte *a3 = a + 3 * lda, *c3 = c + 3 * lda;
    const __m256i b0 = load(b);
    ask<kR>(b, t.ahead, 2);
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r)
      add_double(sum[r][0], sum[r][1], group_of_row(a, a3, lda, r), group_of_row(c, c3, lda, r), b0,
                 b, ones);
  }
  for (int32_t i = t.counts[kQSingle]; i > 0; --i, ++place, b += 64) {
    const std::byte *a = t.a + place[0], *a3 = a + 3 * lda;
    const __m256i b0 = load(b), b1 = load(b + 32);
    ask<kR>(b, t.ahead, 1);
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r) {
      const __m256i av = group_of_row(a, a3, lda, r);
      add_single(sum[r][0], av, b0, ones);
      add_single(sum[r][1], av, b1, ones);
    }
  }
  const auto add_ordered = [&](QKind kind) TOMBOLO_AVX2 __attribute__((always_inline)) {
    if (t.counts[kind] == 0) return;
    const __m256i order = order_of(kind);
    for (int32_t i = t.counts[kind]; i > 0; --i, ++place, b += 64) {
      const std::byte *a = t.a + place[0], *a3 = a + 3 * lda;
      const __m256i b0 = load(b), b1 = load(b + 32);
#pragma GCC unroll 8
      for (int r = 0; r < kR; ++r) {
        const __m256i av = _mm256_shuffle_epi8(group_of_row(a, a3, lda, r), order);
        add_single(sum[r][0], av, b0, ones);
        add_single(sum[r][1], av, b1, ones);
      }
    }
  };
  add_ordered(kQCrossed);
  add_ordered(kQOuter);
  const __m256i low = _mm256_set1_epi16(255);
  for (int32_t i = t.counts[kQWide]; i > 0; --i, ++place, b += 128) {
    const std::byte *a = t.a + place[0], *a3 = a + 3 * lda;
    const __m256i b0 = load(b), b1 = load(b + 32);
    ask<kR>(b, t.ahead, 2);
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r)
      add_wide(sum[r][0], sum[r][1], group_of_row(a, a3, lda, r), b0, b1, b, low);
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

template <int kR, bool kRest>
TOMBOLO_AVX2 void byte_tile(const QTile& t, const QEnds& e, int64_t row, int64_t /*columns*/) {
  __m256i sum[kR][2];
  const auto* add = reinterpret_cast<const __m256i*>(e.add);
  accumulate<kR>(t, _mm256_load_si256(add), _mm256_load_si256(add + 1), sum);
  store_bytes<kR, kRest>(e, sum, row);
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
constexpr int kDotLeastAsking = 2, kDotMostAsking = 4;

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
      if constexpr (kR >= kDotLeastAsking && kR <= kDotMostAsking)
        _mm_prefetch(reinterpret_cast<const char*>(b) + t.ahead, _MM_HINT_T1);
      if constexpr (kR > kDotMostAsking) {
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

template <int... kR>
void fill_dots(QTiles& tiles, std::integer_sequence<int, kR...>) {
  ((tiles.unsigned_rows[kR + 1] = &dot_tile<kR + 1, QDotKind::kUnsignedRows>), ...);
  ((tiles.signed_rows[kR + 1] = &dot_tile<kR + 1, QDotKind::kSignedRows>), ...);
  ((tiles.byte_rows[0][kR + 1] = &byte_dot_tile<kR + 1, false>), ...);
  ((tiles.byte_rows[1][kR + 1] = &byte_dot_tile<kR + 1, true>), ...);
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

/// Whether no sum is above 128.
TOMBOLO_AVX2_INLINE bool fits(__m256i above, __m256i below) {
  const __m256i over =
      _mm256_subs_epu8(_mm256_max_epu8(above, below), _mm256_set1_epi8(static_cast<char>(128)));
  return _mm256_testz_si256(over, over) != 0;
}

TOMBOLO_AVX2 void widen(const std::byte* group, std::byte* out) {
  for (int half = 0; half < 2; ++half) {
    const __m256i x = load(group + 32 * half);
    const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 32 * half), even);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 64 + 32 * half), _mm256_srai_epi16(x, 8));
  }
}

TOMBOLO_AVX2 uint8_t largest(const Range& range) {
  alignas(32) uint8_t sums[32];
  _mm256_store_si256(reinterpret_cast<__m256i*>(sums), _mm256_max_epu8(range.above, range.below));
  return *std::max_element(sums, sums + 32);
}

/// The least demanding kind of a group that stands alone.
TOMBOLO_AVX2 QKind kind_of(const std::byte* group) {
  for (const QKind kind : {kQSingle, kQCrossed, kQOuter}) {
    const Range range = range_of(group, kind);
    if (fits(range.above, range.below)) return kind;
  }
  return kQWide;
}

TOMBOLO_AVX2 void put_group(const std::byte* group, QKind kind, std::byte* out) {
  if (kind == kQWide) return widen(group, out);
  for (int half = 0; half < 64; half += 32)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + half),
                        _mm256_shuffle_epi8(load(group + half), order_of(kind)));
}

/// Finds pairs of groups that can be added in 16 bits: gives those of `single` that have one, two
/// neighbours each, and leaves the others.
TOMBOLO_AVX2 std::vector<int32_t> take_pairs(const std::byte* panel, std::vector<int32_t>& single) {
  constexpr int kTries = 24;
  struct Group {
    int32_t index;
    uint8_t largest;
  };
  std::vector<Group> groups;
  groups.reserve(single.size());
  for (const int32_t i : single) groups.push_back({i, largest(range_of(panel + int64_t{i} * 64))});
  // The largest are given the first partner that they find among the smallest.
  std::sort(groups.begin(), groups.end(), [](const Group& x, const Group& y) {
    return x.largest != y.largest ? x.largest > y.largest : x.index < y.index;
  });
  std::vector<bool> taken(groups.size());
  std::vector<int32_t> pairs;
  single.clear();
  size_t least = groups.size();
  for (size_t i = 0; i < groups.size(); ++i) {
    if (taken[i]) continue;
    const Range own = range_of(panel + int64_t{groups[i].index} * 64);
    while (least > 0 && taken[least - 1]) --least;
    size_t partner = 0;
    int tries = 0;
    for (size_t j = least; j-- > i + 1 && tries < kTries && partner == 0;) {
      if (taken[j]) continue;
      ++tries;
      const Range other = range_of(panel + int64_t{groups[j].index} * 64);
      if (fits(_mm256_adds_epu8(own.above, other.above), _mm256_adds_epu8(own.below, other.below)))
        partner = j;
    }
    if (partner == 0) {
      single.push_back(groups[i].index);
      continue;
    }
    taken[partner] = true;
    pairs.push_back(groups[i].index);
    pairs.push_back(groups[partner].index);
  }
  std::sort(single.begin(), single.end());
  return pairs;
}

}  // namespace

void q_sort_groups(const std::byte* panel, int64_t stretches, int64_t groups,
                   const QSorted& sorted) {
  std::vector<int32_t> kinds[kQKinds];
  for (int64_t i = 0; i < stretches * groups; ++i)
    kinds[kind_of(panel + i * 64)].push_back(static_cast<int32_t>(i));
  kinds[kQDouble] = take_pairs(panel, kinds[kQSingle]);
  std::byte* out = sorted.bytes;
  uint32_t* order = sorted.order;
  for (int k = 0; k < kQKinds; ++k) {
    sorted.counts[k] = static_cast<int32_t>(kinds[k].size() / (k == kQDouble ? 2 : 1));
    for (const int32_t i : kinds[k]) {
      *order++ = static_cast<uint32_t>(stretches == 1 ? 4 * i : i);
      put_group(panel + int64_t{i} * 64, static_cast<QKind>(k), out);
      out += k == kQWide ? 128 : 64;
    }
  }
}

QTiles make_byte_tiles() {
  QTiles tiles{
      .max_rows = 5, .panel = 16, .group = 4, .element = 1, .sorted = true, .name = "bytes"};
  tiles.least_columns = tiles.panel;
  tiles.least_asking = kLeastAsking;
  tiles.most_asking = kMostAsking;
  fill(tiles, std::make_integer_sequence<int, 5>());
  return tiles;
}

QTiles make_avx_vnni_tiles() {
  QTiles tiles{.max_rows = kDotRows, .panel = 16, .group = 4, .element = 1, .name = "avx vnni"};
  tiles.least_columns = tiles.panel;
  tiles.least_asking = kDotLeastAsking;
  tiles.most_asking = kDotMostAsking;
  tiles.shares = true;
  fill_dots(tiles, std::make_integer_sequence<int, kDotRows>());
  return tiles;
}

QTiles make_avx_vnni_pair_tiles() {
  QTiles tiles{
      .max_rows = kDotRows, .panel = 16, .group = 2, .element = 2, .name = "avx vnni pairs"};
  tiles.least_asking = kDotLeastAsking;
  tiles.most_asking = kDotMostAsking;
  tiles.shares = true;
  fill_pairs(tiles, std::make_integer_sequence<int, kDotRows>());
  return tiles;
}

}  // namespace tombolo

#else

namespace tombolo {
QTiles make_byte_tiles() { return {}; }
QTiles make_avx_vnni_tiles() { return {}; }
QTiles make_avx_vnni_pair_tiles() { return {}; }
void q_sort_groups(const std::byte*, int64_t, int64_t, const QSorted&) {}
}  // namespace tombolo

#endif
