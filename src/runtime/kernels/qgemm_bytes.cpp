// The tile of byte products with AVX2: vpmaddubsw makes twice as many products as vpmaddwd does for
// as many instructions, but adds two of them in 16 bits, where they may saturate. The packed side
// is therefore split so that they cannot (QTiles::splits). Functions carry their target.

#include <utility>

#include "runtime/kernels/qgemm.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TOMBOLO_AVX2 __attribute__((target("avx2")))
#define TOMBOLO_AVX2_INLINE inline __attribute__((always_inline, target("avx2")))

namespace tombolo {
namespace {

template <int kR>
TOMBOLO_AVX2_INLINE __m256i group_of(const std::byte* a, const std::byte* second, int64_t lda,
                                     int r) {
  int32_t group;
  __builtin_memcpy(&group, r < 3 ? a + r * lda : second + (r - 3) * lda, 4);
  return _mm256_set1_epi32(group);
}

/// acc += the four products of unsigned and signed bytes. Told so: gcc otherwise moves sums between
/// registers and the stack.
TOMBOLO_AVX2_INLINE void add_products(__m256i& acc, __m256i unsigned_bytes, __m256i signed_bytes,
                                      __m256i ones) {
  __m256i pairs;
  asm("vpmaddubsw %3, %2, %1\n\tvpmaddwd %4, %1, %1\n\tvpaddd %1, %0, %0"
      : "+x"(acc), "=&x"(pairs)
      : "x"(unsigned_bytes), "x"(signed_bytes), "x"(ones));
}

template <int kR>
TOMBOLO_AVX2_INLINE void unsigned_group(__m256i (&acc)[kR][2], const std::byte* a,
                                        const std::byte* second, int64_t lda, const std::byte* b,
                                        __m256i ones) {
  const __m256i b0 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b));
  const __m256i b1 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + 32));
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r) {
    const __m256i av = group_of<kR>(a, second, lda, r);
    add_products(acc[r][0], av, b0, ones);
    add_products(acc[r][1], av, b1, ones);
  }
}

template <int kR>
TOMBOLO_AVX2_INLINE void store(const __m256i (&acc)[kR][2], const QTile& t) {
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(t.c + r * t.ldc), acc[r][0]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(t.c + r * t.ldc + 8), acc[r][1]);
  }
}

/// The broadcast side is unsigned, the packed one signed and split.
template <int kR>
TOMBOLO_AVX2 void unsigned_tile(const QTile& t) {
  __m256i acc[kR][2];
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r) acc[r][0] = acc[r][1] = _mm256_setzero_si256();
  const __m256i ones = _mm256_set1_epi16(1);
  const int64_t lda = t.lda;
  for (int64_t s = 0; s < t.stretches; ++s) {
    const std::byte* a = t.a + (t.offsets != nullptr ? t.offsets[s] : 0);
    const std::byte* second = a + 3 * lda;
    const std::byte* b = t.b + s * t.stretch_bytes;
    int64_t g = t.groups;
    for (; g >= 2; g -= 2, a += 8, second += 8, b += 128) {
      unsigned_group(acc, a, second, lda, b, ones);
      unsigned_group(acc, a + 4, second + 4, lda, b + 64, ones);
    }
    if (g > 0) unsigned_group(acc, a, second, lda, b, ones);
  }
  const std::byte* rest = t.rests;
  for (int32_t i = 0; i < t.rest_count; ++i, rest += 64) {
    const QRest& at = t.rest_places[i];
    const std::byte* a =
        t.a + (t.offsets != nullptr ? t.offsets[at.stretch] : 0) + 4 * int64_t{at.group};
    unsigned_group(acc, a, a + 3 * lda, lda, rest, ones);
  }
  store(acc, t);
}

template <int... kR>
void fill(QTiles& tiles, std::integer_sequence<int, kR...>) {
  // Only unsigned rows: of images in panels (QLinearConv) the weights are the broadcast side.
  ((tiles.unsigned_rows[kR + 1] = &unsigned_tile<kR + 1>), ...);
}

}  // namespace

QTiles make_byte_tiles() {
  QTiles tiles{
      .max_rows = 5, .panel = 16, .group = 4, .element = 1, .splits = true, .name = "bytes"};
  fill(tiles, std::make_integer_sequence<int, 5>());
  return tiles;
}

}  // namespace tombolo

#else

namespace tombolo {
QTiles make_byte_tiles() { return {}; }
}  // namespace tombolo

#endif
