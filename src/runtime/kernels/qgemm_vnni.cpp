// The tile of byte products with AVX-512 VNNI, which Highway does not know yet. Functions carry
// their target; nothing else in this file uses it.

#include <utility>

#include "runtime/kernels/qgemm.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TOMBOLO_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))

namespace tombolo {
namespace {

template <int kR, bool kUnsignedRows>
TOMBOLO_VNNI void tile(const QTile& t) {
  __m512i acc[kR][2];
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) acc[r][0] = acc[r][1] = _mm512_setzero_si512();
  const int64_t lda = t.lda;
  for (int64_t s = 0; s < t.stretches; ++s) {
    const std::byte* a = t.a + (t.offsets != nullptr ? t.offsets[s] : 0);
    const std::byte* b = t.b + s * t.stretch_bytes;
    for (int64_t g = t.groups; g > 0; --g, a += 4, b += 128) {
      const __m512i b0 = _mm512_loadu_si512(b), b1 = _mm512_loadu_si512(b + 64);
#pragma GCC unroll 16
      for (int r = 0; r < kR; ++r) {
        int32_t group;
        __builtin_memcpy(&group, a + r * lda, 4);
        const __m512i av = _mm512_set1_epi32(group);
        if constexpr (kUnsignedRows) {
          acc[r][0] = _mm512_dpbusd_epi32(acc[r][0], av, b0);
          acc[r][1] = _mm512_dpbusd_epi32(acc[r][1], av, b1);
        } else {
          acc[r][0] = _mm512_dpbusd_epi32(acc[r][0], b0, av);
          acc[r][1] = _mm512_dpbusd_epi32(acc[r][1], b1, av);
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
    _mm512_storeu_si512(t.c + r * t.ldc, acc[r][0]);
    _mm512_storeu_si512(t.c + r * t.ldc + 16, acc[r][1]);
  }
}

/// The same of pairs of 16-bit numbers. Sums wrap.
template <int kR>
TOMBOLO_VNNI void pair_tile(const QTile& t) {
  __m512i acc[kR][2];
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
    acc[r][0] = t.add ? _mm512_loadu_si512(t.c + r * t.ldc) : _mm512_setzero_si512();
    acc[r][1] = t.add ? _mm512_loadu_si512(t.c + r * t.ldc + 16) : _mm512_setzero_si512();
  }
  const int64_t lda = t.lda;
  for (int64_t s = 0; s < t.stretches; ++s) {
    const std::byte* a = t.a + (t.offsets != nullptr ? t.offsets[s] : 0);
    const std::byte* b = t.b + s * t.stretch_bytes;
    for (int64_t g = t.groups; g > 0; --g, a += 4, b += 128) {
      const __m512i b0 = _mm512_loadu_si512(b), b1 = _mm512_loadu_si512(b + 64);
#pragma GCC unroll 16
      for (int r = 0; r < kR; ++r) {
        int32_t pair;
        __builtin_memcpy(&pair, a + r * lda, 4);
        const __m512i av = _mm512_set1_epi32(pair);
        acc[r][0] = _mm512_dpwssd_epi32(acc[r][0], av, b0);
        acc[r][1] = _mm512_dpwssd_epi32(acc[r][1], av, b1);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
    _mm512_storeu_si512(t.c + r * t.ldc, acc[r][0]);
    _mm512_storeu_si512(t.c + r * t.ldc + 16, acc[r][1]);
  }
}

constexpr int kRows = 14;

template <int... kR>
void fill(QTiles& tiles, std::integer_sequence<int, kR...>) {
  ((tiles.unsigned_rows[kR + 1] = &tile<kR + 1, true>), ...);
  ((tiles.signed_rows[kR + 1] = &tile<kR + 1, false>), ...);
}
template <int... kR>
void fill_pairs(QTiles& tiles, std::integer_sequence<int, kR...>) {
  ((tiles.unsigned_rows[kR + 1] = tiles.signed_rows[kR + 1] = &pair_tile<kR + 1>), ...);
}

}  // namespace

QTiles make_vnni_tiles() {
  QTiles tiles{.max_rows = kRows, .panel = 32, .group = 4, .element = 1, .name = "vnni"};
  fill(tiles, std::make_integer_sequence<int, kRows>());
  return tiles;
}

QTiles make_vnni_pair_tiles() {
  QTiles tiles{.max_rows = kRows, .panel = 32, .group = 2, .element = 2, .name = "vnni pairs"};
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
