// The tile of byte products with AVX-512 VNNI, which Highway does not know yet. Functions carry
// their target; nothing else in this file uses it.

#include <algorithm>
#include <utility>

#include "runtime/kernels/quant/qgemm.h"
#include "runtime/kernels/row_pointers.h"

#if defined(__x86_64__)
#include "runtime/kernels/vnni.h"

namespace tombolo {
namespace {

/// Pairs in assembly as bytes are (vnni.h).
template <QDotKind kKind>
TOMBOLO_VNNI_INLINE void add_product(__m512i& sum, __m512i a, __m512i b) {
  if constexpr (kKind == QDotKind::kUnsignedRows) add_byte_products(sum, a, b);
  if constexpr (kKind == QDotKind::kSignedRows) add_byte_products(sum, b, a);
  if constexpr (kKind == QDotKind::kPairs) asm("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
}

constexpr int kLeastAsking = 2, kMostAsking = 8;

constexpr int kGroups = 4;  ///< at a time: what counts them takes turns from the products

/// Products of the group `at` bytes on in each row with 32 columns.
template <int kR, QDotKind kKind>
TOMBOLO_VNNI_INLINE void add_columns(const RowPointers<std::byte, kR>& a, int at,
                                     const std::byte* b, __m512i (&acc)[kR][2]) {
  const __m512i b0 = _mm512_loadu_si512(b), b1 = _mm512_loadu_si512(b + 64);
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
    const __m512i av = _mm512_set1_epi32(word_at(a.at(r) + at));
    add_product<kKind>(acc[r][0], av, b0);
    add_product<kKind>(acc[r][1], av, b1);
  }
}

template <int kR, QDotKind kKind>
TOMBOLO_VNNI_INLINE void add_group(const QTile& t, const RowPointers<std::byte, kR>& a, int at,
                                   const std::byte* b, const std::byte*& next,
                                   __m512i (&acc)[kR][2]) {
  if constexpr (kR >= kLeastAsking && kR <= kMostAsking) {
    _mm_prefetch(b + t.ahead, _MM_HINT_T1);
    _mm_prefetch(b + t.ahead + 64, _MM_HINT_T1);
  }
  if constexpr (kR > kMostAsking) {
    _mm_prefetch(next, _MM_HINT_T1);
    next += t.next_step;
  }
  add_columns<kR, kKind>(a, at, b, acc);
}

/// On top of `from`.
template <int kR, QDotKind kKind, int... kTurn>
TOMBOLO_VNNI_INLINE void accumulate(const QTile& t, __m512i from0, __m512i from1,
                                    __m512i (&acc)[kR][2], std::integer_sequence<int, kTurn...>) {
  constexpr int kCount = sizeof...(kTurn), kTimes = kGroups / kCount;
  __m512i sums[kCount][kR][2];
  const __m512i zero = _mm512_setzero_si512();
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
    ((sums[kTurn][r][0] = kTurn == 0 ? from0 : zero), ...);
    ((sums[kTurn][r][1] = kTurn == 0 ? from1 : zero), ...);
  }
  [[maybe_unused]] const std::byte* next = t.next != nullptr ? t.next : t.b;
  for (int64_t s = 0; s < t.stretches; ++s) {
    RowPointers<std::byte, kR> a(t.a + (t.offsets != nullptr ? t.offsets[s] : 0), t.lda);
    const std::byte* b = t.b + s * t.stretch_bytes;
    int64_t g = t.groups;
    for (; g >= kGroups; g -= kGroups, a.advance(4 * kGroups), b += 128 * kGroups)
#pragma GCC unroll 4
      for (int i = 0; i < kTimes; ++i)
        (add_group<kR, kKind>(t, a, 4 * (i * kCount + kTurn), b + 128 * (i * kCount + kTurn), next,
                              sums[kTurn]),
         ...);
    for (; g > 0; --g, a.advance(4), b += 128) add_group<kR, kKind>(t, a, 0, b, next, sums[0]);
  }
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r)
    for (int i = 0; i < 2; ++i) {
      acc[r][i] = sums[0][r][i];
      ((kTurn == 0 ? void() : void(acc[r][i] = _mm512_add_epi32(acc[r][i], sums[kTurn][r][i]))),
       ...);
    }
}

template <int kR, QDotKind kKind>
TOMBOLO_VNNI_INLINE void accumulate(const QTile& t, __m512i from0, __m512i from1,
                                    __m512i (&acc)[kR][2]) {
  accumulate<kR, kKind>(t, from0, from1, acc, std::make_integer_sequence<int, q_turns(kR)>());
}

constexpr int kLeastNarrow = 4;  ///< rows; fewer would wait for their own sums

/// Of up to 16 columns, whose sums are half as many.
template <int kR>
TOMBOLO_VNNI_INLINE void accumulate_narrow(const QTile& t, __m512i from, __m512i (&acc)[kR]) {
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) acc[r] = from;
  const std::byte* next = t.next != nullptr ? t.next : t.b;
  for (int64_t s = 0; s < t.stretches; ++s) {
    RowPointers<std::byte, kR> a(t.a + (t.offsets != nullptr ? t.offsets[s] : 0), t.lda);
    const std::byte* b = t.b + s * t.stretch_bytes;
    for (int64_t g = t.groups; g > 0; --g, a.advance(4), b += 128) {
      if constexpr (kR > kMostAsking) {
        _mm_prefetch(next, _MM_HINT_T1);
        next += t.next_step;
      }
      const __m512i columns = _mm512_loadu_si512(b);
#pragma GCC unroll 16
      for (int r = 0; r < kR; ++r)
        add_byte_products(acc[r], _mm512_set1_epi32(word_at(a.at(r))), columns);
    }
  }
}

/// Not inlined, nor are those below: the compiler would keep the sums of wide tiles on the stack.
template <int kR>
TOMBOLO_VNNI __attribute__((noinline)) void narrow_tile(const QTile& t) {
  __m512i acc[kR];
  accumulate_narrow<kR>(t, _mm512_setzero_si512(), acc);
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) _mm512_storeu_si512(t.c + r * t.ldc, acc[r]);
}

template <int kR, QDotKind kKind>
TOMBOLO_VNNI void tile(const QTile& t) {
  if constexpr (kR >= kLeastNarrow && kKind == QDotKind::kUnsignedRows)
    if (t.columns <= 16) return narrow_tile<kR>(t);
  __m512i acc[kR][2];
  accumulate<kR, kKind>(t, _mm512_setzero_si512(), _mm512_setzero_si512(), acc);
  if constexpr (kKind == QDotKind::kPairs)
    if (t.add)
#pragma GCC unroll 16
      for (int r = 0; r < kR; ++r)
        for (int i = 0; i < 2; ++i)
          acc[r][i] = _mm512_add_epi32(acc[r][i], _mm512_loadu_si512(t.c + r * t.ldc + 16 * i));
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
    _mm512_storeu_si512(t.c + r * t.ldc, acc[r][0]);
    _mm512_storeu_si512(t.c + r * t.ldc + 16, acc[r][1]);
  }
}

/// What finish_columns (qgemm_tile.cpp) makes of sums, here where they are: layers of few inputs
/// would spend as long on writing and reading them as on the products.
struct Ends {
  __m512 scale[2], own_low, own_high, own, other;
  __m512i rest_zero, zero, least, greatest, flip, order;
  __m128i rest_flip;  ///< signed bytes become unsigned ones
};

TOMBOLO_VNNI_INLINE Ends ends_of(const QEnds& q) {
  Ends e;
  for (int i = 0; i < 2; ++i) e.scale[i] = _mm512_loadu_ps(q.scale + 16 * i);
  e.own_low = _mm512_set1_ps(q.own_low);
  e.own_high = _mm512_set1_ps(q.own_high);
  e.own = _mm512_set1_ps(q.own);
  e.other = _mm512_set1_ps(q.other);
  e.rest_zero = _mm512_set1_epi32(q.rest_zero + (q.rest_signed ? 128 : 0));
  e.zero = _mm512_set1_epi16(q.zero);
  e.least = _mm512_set1_epi8(q.least);
  e.greatest = _mm512_set1_epi8(q.greatest);
  e.flip = _mm512_set1_epi8(q.middle);
  // Narrowing leaves fours of columns: of both vectors of the first row, then of the second.
  e.order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  e.rest_flip = _mm_set1_epi8(q.rest_signed ? -128 : 0);
  return e;
}

template <bool kRest>
TOMBOLO_VNNI_INLINE __m512i number(const Ends& e, int i, __m512i sum, const std::byte* rest,
                                   __mmask16 some) {
  __m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), e.scale[i]);
  if constexpr (kRest) {
    const __m512 first =
        _mm512_roundscale_ps(_mm512_min_ps(e.own_high, _mm512_max_ps(e.own_low, x)),
                             _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m128i bytes = _mm_maskz_loadu_epi8(some, rest + 16 * i);
    const __m512i wide = _mm512_cvtepu8_epi32(_mm_xor_si128(bytes, e.rest_flip));
    const __m512 other = _mm512_cvtepi32_ps(_mm512_sub_epi32(wide, e.rest_zero));
    x = _mm512_add_ps(_mm512_mul_ps(first, e.own), _mm512_mul_ps(other, e.other));
  }
  return _mm512_cvtps_epi32(x);
}

template <bool kRest>
TOMBOLO_VNNI_INLINE __m512i row_of(const Ends& e, const __m512i (&sums)[2], const std::byte* rest,
                                   __mmask32 some) {
  return _mm512_adds_epi16(
      _mm512_packs_epi32(number<kRest>(e, 0, sums[0], rest, static_cast<__mmask16>(some)),
                         number<kRest>(e, 1, sums[1], rest, static_cast<__mmask16>(some >> 16))),
      e.zero);
}

/// Numbers of 16 bits as bytes of the result, in the order of the columns.
TOMBOLO_VNNI_INLINE __m512i bytes_of(const Ends& e, __m512i first, __m512i second) {
  __m512i bytes = _mm512_packs_epi16(first, second);
  bytes = _mm512_max_epi8(_mm512_min_epi8(bytes, e.greatest), e.least);
  return _mm512_permutexvar_epi32(e.order, _mm512_xor_si512(bytes, e.flip));
}

/// Two rows that row_of() made, or the first alone.
template <bool kWhole>
TOMBOLO_VNNI_INLINE void store_rows(const Ends& e, __m512i first, __m512i second, bool both,
                                    int64_t ldo, __mmask32 some, std::byte* to) {
  const __m512i bytes = bytes_of(e, first, second);
  const __m256i low = _mm512_castsi512_si256(bytes), high = _mm512_extracti64x4_epi64(bytes, 1);
  if constexpr (kWhole) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), low);
    if (both) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + ldo), high);
  } else {
    _mm256_mask_storeu_epi8(to, some, low);
    if (both) _mm256_mask_storeu_epi8(to + ldo, some, high);
  }
}

template <int kR, bool kRest, bool kWhole>
TOMBOLO_VNNI_INLINE void store_bytes(const QEnds& q, const __m512i (&acc)[kR][2], int64_t row,
                                     int64_t columns) {
  const Ends e = ends_of(q);
  const __mmask32 some = kWhole ? 0xFFFFFFFFu : (1u << columns) - 1;
  const int64_t ldo = q.ldo;
  std::byte* to = q.out + row * ldo;
  const std::byte* rest = kRest ? q.rest + row * ldo : nullptr;
#pragma GCC unroll 16
  for (int r = 0; r < kR; r += 2, to += 2 * ldo) {
    const int next = r + 1 < kR ? r + 1 : r;
    const __m512i first = row_of<kRest>(e, acc[r], rest, some);
    const __m512i second =
        row_of<kRest>(e, acc[next], kRest && next != r ? rest + ldo : rest, some);
    store_rows<kWhole>(e, first, second, next != r, ldo, some, to);
    if constexpr (kRest) rest += 2 * ldo;
  }
}

/// Up to 16 columns: four rows at a time, as store_rows() has two of 32.
template <int kR, bool kRest>
TOMBOLO_VNNI __attribute__((noinline)) void narrow_byte_tile(const QTile& t, const QEnds& q,
                                                             int64_t row, int64_t columns) {
  __m512i acc[kR];
  accumulate_narrow<kR>(t, _mm512_loadu_si512(q.add), acc);
  const Ends e = ends_of(q);
  const auto some = static_cast<__mmask16>((1u << columns) - 1);
  const int64_t ldo = q.ldo;
  std::byte* to = q.out + row * ldo;
  const std::byte* rest = kRest ? q.rest + row * ldo : nullptr;
  const auto pair = [&](int r, int at) TOMBOLO_VNNI __attribute__((always_inline)) {
    // Of a row that there is not, the one before.
    const int next = r + 1 < kR ? 1 : 0;
    const std::byte* const more = kRest ? rest + at * ldo : nullptr;
    return _mm512_adds_epi16(
        _mm512_packs_epi32(
            number<kRest>(e, 0, acc[r], more, some),
            number<kRest>(e, 0, acc[r + next], kRest ? more + next * ldo : nullptr, some)),
        e.zero);
  };
  const auto store = [&](int r, __m512i bytes) TOMBOLO_VNNI __attribute__((always_inline)) {
    _mm_mask_storeu_epi8(to, some, _mm512_castsi512_si128(bytes));
    if (r + 1 < kR) _mm_mask_storeu_epi8(to + ldo, some, _mm512_extracti32x4_epi32(bytes, 1));
    if (r + 2 < kR) _mm_mask_storeu_epi8(to + 2 * ldo, some, _mm512_extracti32x4_epi32(bytes, 2));
    if (r + 3 < kR) _mm_mask_storeu_epi8(to + 3 * ldo, some, _mm512_extracti32x4_epi32(bytes, 3));
  };
#pragma GCC unroll 16
  for (int r = 0; r < kR; r += 4) {
    const __m512i first = pair(r, 0);
    const __m512i second = r + 2 < kR ? pair(r + 2, 2) : first;
    store(r, bytes_of(e, first, second));
    to += 4 * ldo;
    if constexpr (kRest) rest += 4 * ldo;
  }
}

template <int kR, bool kRest>
TOMBOLO_VNNI void byte_tile(const QTile& t, const QEnds& ends, int64_t row, int64_t columns) {
  if constexpr (kR >= kLeastNarrow)
    if (columns <= 16) return narrow_byte_tile<kR, kRest>(t, ends, row, columns);
  __m512i acc[kR][2];
  accumulate<kR, QDotKind::kUnsignedRows>(t, _mm512_loadu_si512(ends.add),
                                          _mm512_loadu_si512(ends.add + 16), acc);
  if (columns >= 32)
    store_bytes<kR, kRest, true>(ends, acc, row, 32);
  else
    store_bytes<kR, kRest, false>(ends, acc, row, columns);
}

constexpr int kLine = 6;  ///< rows whose sums become bytes while the next ones are multiplied

/// Whole lines of `kLine` rows, one after the other.
template <bool kRest, bool kWhole>
TOMBOLO_VNNI_INLINE void lines(const QTile& t, const QEnds& q, int64_t row, int64_t count,
                               int64_t columns) {
  const Ends e = ends_of(q);
  const __mmask32 some = kWhole ? 0xFFFFFFFFu : (1u << columns) - 1;
  const int64_t ldo = q.ldo, lda = t.lda;
  int64_t parts[kLine];  // of the groups, after each row that is finished
  for (int r = 0; r < kLine; ++r) parts[r] = t.groups * (r + 1) / kLine - t.groups * r / kLine;
  std::byte* to = q.out + row * ldo;
  const std::byte* rest = kRest ? q.rest + row * ldo : nullptr;
  const std::byte* next = t.next != nullptr ? t.next : t.b;
  const std::byte* from = t.a;
  const __m512i from0 = _mm512_loadu_si512(q.add), from1 = _mm512_loadu_si512(q.add + 16);
  __m512i done[kLine][2];
  __m512i first;
  const auto store = [&](int r) TOMBOLO_VNNI __attribute__((always_inline)) {
    const __m512i numbers = row_of<kRest>(e, done[r], rest, some);
    if constexpr (kRest) rest += ldo;
    if (r % 2 == 0) {
      first = numbers;
      return;
    }
    store_rows<kWhole>(e, first, numbers, true, ldo, some, to);
    to += 2 * ldo;
  };
  for (int64_t line = 0; line < count; ++line, from += kLine * lda) {
    __m512i acc[kLine][2];
#pragma GCC unroll 16
    for (int r = 0; r < kLine; ++r) {
      acc[r][0] = from0;
      acc[r][1] = from1;
    }
    RowPointers<std::byte, kLine> a(from, lda);
    const std::byte* b = t.b;
#pragma GCC unroll 6
    for (int r = 0; r < kLine; ++r) {
      if (line > 0) store(r);
      for (int64_t g = parts[r]; g > 0; --g, a.advance(4), b += 128) {
        _mm_prefetch(next, _MM_HINT_T1);
        next += t.next_step;
        add_columns<kLine, QDotKind::kUnsignedRows>(a, 0, b, acc);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kLine; ++r) {
      done[r][0] = acc[r][0];
      done[r][1] = acc[r][1];
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kLine; ++r) store(r);
}

template <bool kRest>
TOMBOLO_VNNI void byte_lines(const QTile& t, const QEnds& ends, int64_t row, int64_t count,
                             int64_t columns) {
  if (columns >= 32)
    lines<kRest, true>(t, ends, row, count, 32);
  else
    lines<kRest, false>(t, ends, row, count, columns);
}

TOMBOLO_VNNI_INLINE void store_words(const QEnds& e, __m512i sum, int i, __mmask16 some,
                                     float* to) {
  if (e.integers) return _mm512_mask_storeu_epi32(to + 16 * i, some, sum);
  __m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_loadu_ps(e.scale + 16 * i));
  if (e.bias != nullptr)
    x = _mm512_add_ps(x, _mm512_loadu_ps(e.bias + 16 * i));  // -0 + 0 would be 0
  _mm512_mask_storeu_ps(to + 16 * i, some, x);
}
template <int kR, int... r>
TOMBOLO_VNNI_INLINE void store_words(const QEnds& e, const __m512i (&acc)[kR][2], int64_t row,
                                     int64_t columns, std::integer_sequence<int, r...>) {
  const int64_t ldo = e.ldo;
  const uint32_t some = columns >= 32 ? 0xFFFFFFFFu : (1u << columns) - 1;
  float* to = reinterpret_cast<float*>(e.out) + row * ldo;
  ((store_words(e, acc[r][0], 0, static_cast<__mmask16>(some), to + r * ldo),
    store_words(e, acc[r][1], 1, static_cast<__mmask16>(some >> 16), to + r * ldo)),
   ...);
}

template <int kR, int... r>
TOMBOLO_VNNI __attribute__((noinline)) void narrow_word_tile(const QTile& t, const QEnds& ends,
                                                             int64_t row, int64_t columns,
                                                             std::integer_sequence<int, r...>) {
  __m512i acc[kR];
  accumulate_narrow<kR>(t, _mm512_loadu_si512(ends.add), acc);
  float* to = reinterpret_cast<float*>(ends.out) + row * ends.ldo;
  (store_words(ends, acc[r], 0, static_cast<__mmask16>((1u << columns) - 1), to + r * ends.ldo),
   ...);
}

/// A tile whose sums become words of the result at once.
template <int kR>
TOMBOLO_VNNI void word_tile(const QTile& t, const QEnds& ends, int64_t row, int64_t columns) {
  if constexpr (kR >= kLeastNarrow)
    if (columns <= 16)
      return narrow_word_tile<kR>(t, ends, row, columns, std::make_integer_sequence<int, kR>());
  __m512i acc[kR][2];
  accumulate<kR, QDotKind::kUnsignedRows>(t, _mm512_loadu_si512(ends.add),
                                          _mm512_loadu_si512(ends.add + 16), acc);
  store_words(ends, acc, row, columns, std::make_integer_sequence<int, kR>());
}

/// Of pack_words(): column i / 2 of its half, pairs (0, 1) and (2, 3).
struct alignas(64) WordPlaces {
  uint16_t at[32] = {};
  constexpr WordPlaces() {
    for (int i = 0; i < 32; ++i)
      at[i] = static_cast<uint16_t>(i / 2 % 8 + i % 2 * 16 + i / 16 * 32);
  }
};
constexpr WordPlaces kWordPlaces;

/// Thirty-two columns of four rows at a time. Bytes of two rows beside one another are pairs, of
/// the first and the second two rows in the halves of a vector, whose columns 0 to 7 and 16 to 23
/// are in the lower ones.
TOMBOLO_VNNI void pack_words(const uint8_t* x, int64_t row, int64_t run, int64_t columns,
                             uint8_t mask, std::byte* out, int32_t* sums) {
  const __m512i turn = _mm512_set1_epi8(static_cast<char>(mask)), ones = _mm512_set1_epi8(1);
  const __m512i first = _mm512_load_si512(kWordPlaces.at);
  const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(8));
  __m512i sum0 = _mm512_loadu_si512(sums), sum1 = _mm512_loadu_si512(sums + 16);
  // Columns and rows that there are not are as zeros.
  const __mmask32 some = columns >= 32 ? 0xFFFFFFFFu : (1u << columns) - 1;
  const __m256i none = _mm512_castsi512_si256(turn);
  for (int64_t i = 0; i < run; i += 4, x += 4 * row, out += 128) {
    __m256i r[4];
    for (int64_t j = 0; j < 4; ++j)
      r[j] = _mm256_mask_loadu_epi8(none, i + j < run ? some : 0, x + j * row);
    const __m512i even = _mm512_inserti64x4(_mm512_castsi256_si512(r[0]), r[2], 1);
    const __m512i odd = _mm512_inserti64x4(_mm512_castsi256_si512(r[1]), r[3], 1);
    const __m512i low = _mm512_xor_si512(_mm512_unpacklo_epi8(even, odd), turn);
    const __m512i high = _mm512_xor_si512(_mm512_unpackhi_epi8(even, odd), turn);
    const __m512i words0 = _mm512_permutex2var_epi16(low, first, high);
    const __m512i words1 = _mm512_permutex2var_epi16(low, second, high);
    add_byte_products(sum0, ones, words0);
    add_byte_products(sum1, ones, words1);
    _mm512_storeu_si512(out, words0);
    _mm512_storeu_si512(out + 64, words1);
  }
  _mm512_storeu_si512(sums, sum0);
  _mm512_storeu_si512(sums + 16, sum1);
}

constexpr int kRows = 14;

template <int... kR>
void fill(QTiles& tiles, std::integer_sequence<int, kR...>) {
  ((tiles.unsigned_rows[kR + 1] = &tile<kR + 1, QDotKind::kUnsignedRows>), ...);
  ((tiles.signed_rows[kR + 1] = &tile<kR + 1, QDotKind::kSignedRows>), ...);
  ((tiles.byte_rows[0][kR + 1] = &byte_tile<kR + 1, false>), ...);
  ((tiles.byte_rows[1][kR + 1] = &byte_tile<kR + 1, true>), ...);
  ((tiles.word_rows[kR + 1] = &word_tile<kR + 1>), ...);
}
template <int... kR>
void fill_pairs(QTiles& tiles, std::integer_sequence<int, kR...>) {
  ((tiles.unsigned_rows[kR + 1] = tiles.signed_rows[kR + 1] = &tile<kR + 1, QDotKind::kPairs>),
   ...);
}

}  // namespace

QTiles make_vnni_tiles() {
  QTiles tiles{.max_rows = kRows, .panel = 32, .group = 4, .element = 1, .name = "vnni"};
  tiles.least_asking = kLeastAsking;
  tiles.most_asking = kMostAsking;
  tiles.shares = true;
  tiles.pack_words = &pack_words;
  tiles.line_rows = kLine;
  tiles.line_groups = 128;
  tiles.line_columns = 17;
  tiles.byte_lines[0] = &byte_lines<false>;
  tiles.byte_lines[1] = &byte_lines<true>;
  fill(tiles, std::make_integer_sequence<int, kRows>());
  return tiles;
}

QTiles make_vnni_pair_tiles() {
  QTiles tiles{.max_rows = kRows, .panel = 32, .group = 2, .element = 2, .name = "vnni pairs"};
  tiles.least_asking = kLeastAsking;
  tiles.most_asking = kMostAsking;
  tiles.shares = true;
  fill_pairs(tiles, std::make_integer_sequence<int, kRows>());
  return tiles;
}

}  // namespace tombolo

#else

namespace tombolo {
QTiles make_vnni_tiles() { return {}; }
QTiles make_vnni_pair_tiles() { return {}; }
}  // namespace tombolo

#endif
