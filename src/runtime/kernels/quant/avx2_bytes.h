#pragma once

// Bytes of groups of four in registers of AVX2, for files of intrinsics. Functions carry their
// target.

#include <cstddef>

#include "runtime/kernels/intrinsics.h"
#include "runtime/kernels/quant/qgemm.h"

#define TOMBOLO_AVX2 __attribute__((target("avx2")))
#define TOMBOLO_AVX2_INLINE inline __attribute__((always_inline, target("avx2")))

namespace tombolo {

TOMBOLO_AVX2_INLINE __m256i load_bytes(const std::byte* b) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b));
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
    const __m256i x = load_bytes(group + half);
    const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + half), even);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 64 + half), _mm256_srai_epi16(x, 8));
  }
}

}  // namespace tombolo
