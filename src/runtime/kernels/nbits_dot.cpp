// Weights of 4 bits times bytes with AVX-512 VNNI (others: nbits.cpp): codes are unsigned bytes as
// they come out of a word by masks, the even and the odd ones of eight, and the rows of A are
// stored in that order. And the weights as bf16, for AMX.

#include "runtime/kernels/isa.h"
#include "runtime/kernels/nbits.h"

#if defined(__x86_64__)
#if !defined(__clang__)
// gcc 12 takes its own _mm512_undefined_* inside the intrinsics for a mistake
// (gcc bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <array>
#include <utility>

#define TOMBOLO_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define TOMBOLO_BF16 \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx512bf16")))

namespace tombolo {
namespace {

constexpr int64_t kAhead = 2048;  ///< bytes that are asked for early

inline int32_t word_at(const std::byte* p) {
  int32_t word;
  __builtin_memcpy(&word, p, 4);
  return word;
}
inline float float_at(const std::byte* p) {
  float number;
  __builtin_memcpy(&number, p, 4);
  return number;
}

template <int kR>
TOMBOLO_VNNI void vnni_tile(const NbitsTile& t) {
  const __m512i mask = _mm512_set1_epi32(0x0F0F0F0F);
  __m512 total[kR];
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r)
    total[r] = t.bias != nullptr ? _mm512_loadu_ps(t.bias) : _mm512_setzero_ps();
  const std::byte *at = t.panel, *a = t.a;
  for (int64_t b = 0; b < t.blocks; ++b) {
    __m512i zero = _mm512_set1_epi32(8);
    if (t.has_zeros) {
      __m128i bytes;
      __builtin_memcpy(&bytes, at + 8 * t.block + 64, 16);
      zero = _mm512_cvtepu8_epi32(bytes);
    }
    // Few rows have few sums: two of each are in flight.
    __m512i sum[kR], more[kR];
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
      const __m512i start = _mm512_set1_epi32(word_at(a + 4 * r));
      sum[r] = t.has_zeros ? _mm512_mullo_epi32(start, zero) : _mm512_slli_epi32(start, 3);
      more[r] = _mm512_setzero_si512();
    }
    const std::byte* const scales = a + 4 * kR;
    a += 8 * kR;
    for (int64_t k = 0; k < t.block; k += 8, at += 64, a += 8 * kR) {
      _mm_prefetch(reinterpret_cast<const char*>(at + kAhead), _MM_HINT_T0);
      const __m512i word = _mm512_loadu_si512(at);
      const __m512i even = _mm512_and_si512(word, mask);
      const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(word, 4), mask);
#pragma GCC unroll 16
      for (int r = 0; r < kR; ++r)
        sum[r] = _mm512_dpbusd_epi32(sum[r], even, _mm512_set1_epi32(word_at(a + 8 * r)));
#pragma GCC unroll 16
      for (int r = 0; r < kR; ++r) {
        __m512i& to = kR <= 4 ? more[r] : sum[r];
        to = _mm512_dpbusd_epi32(to, odd, _mm512_set1_epi32(word_at(a + 8 * r + 4)));
      }
    }
    const __m512 scale = _mm512_loadu_ps(at);
    at += t.has_zeros ? 80 : 64;
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
      if constexpr (kR <= 4) sum[r] = _mm512_add_epi32(sum[r], more[r]);
      const __m512 scaled = _mm512_mul_ps(scale, _mm512_cvtepi32_ps(sum[r]));
      total[r] = _mm512_fmadd_ps(scaled, _mm512_set1_ps(float_at(scales + 4 * r)), total[r]);
    }
  }
  const __mmask16 some = static_cast<__mmask16>(t.cols >= 16 ? 0xFFFF : (1 << t.cols) - 1);
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) _mm512_mask_storeu_ps(t.y + r * t.ldy, some, total[r]);
}

using TileFn = void(const NbitsTile&);

template <int... kR>
constexpr std::array<TileFn*, sizeof...(kR)> vnni_tiles(std::integer_sequence<int, kR...>) {
  return {&vnni_tile<kR + 1>...};
}

void run_vnni(const NbitsTile& t, int rows) {
  static constexpr auto kTiles = vnni_tiles(std::make_integer_sequence<int, kNbitsRows>());
  kTiles[static_cast<size_t>(rows - 1)](t);
}

/// The code in the lowest bits, less the zero point above 2^23, times the
/// scale.
TOMBOLO_BF16 inline __m512 weight(__m512i word, __m512 zero, __m512 scale) {
  const __m512i bits =
      _mm512_or_si512(_mm512_and_si512(word, _mm512_set1_epi32(15)), _mm512_set1_epi32(0x4B000000));
  return _mm512_mul_ps(_mm512_sub_ps(_mm512_castsi512_ps(bits), zero), scale);
}

TOMBOLO_BF16 void widen(const std::byte* at, bool has_zeros, int64_t blocks, int64_t block,
                        std::byte* out) {
  // Odd ones above even ones, column by column.
  alignas(64) uint16_t order[32];
  for (int i = 0; i < 16; ++i) {
    order[2 * i] = static_cast<uint16_t>(i);
    order[2 * i + 1] = static_cast<uint16_t>(16 + i);
  }
  const __m512i turns = _mm512_load_si512(order);
  for (int64_t b = 0; b < blocks; ++b) {
    const std::byte* tail = at + 8 * block;
    const __m512 scale = _mm512_loadu_ps(tail);
    __m512i number = _mm512_set1_epi32(8);
    if (has_zeros) {
      __m128i bytes;
      __builtin_memcpy(&bytes, tail + 64, 16);
      number = _mm512_cvtepu8_epi32(bytes);
    }
    const __m512 zero = _mm512_castsi512_ps(_mm512_or_si512(number, _mm512_set1_epi32(0x4B000000)));
    for (int64_t k = 0; k < block; k += 8, at += 64) {
      __m512i word = _mm512_loadu_si512(at);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j, out += 128) {
        const __m512 even = weight(word, zero, scale);
        const __m512 odd = weight(_mm512_srli_epi32(word, 4), zero, scale);
        word = _mm512_srli_epi32(word, 8);
        const auto both = _mm512_cvtne2ps_pbh(odd, even);
        _mm512_storeu_si512(out, _mm512_permutexvar_epi16(turns, (__m512i)both));
      }
    }
    at = tail + 64 + (has_zeros ? 16 : 0);
  }
}

}  // namespace

NbitsTileFn* nbits_vnni_tile() { return has_vnni() ? &run_vnni : nullptr; }

void nbits_widen_bf16(const std::byte* first, const std::byte* second, bool has_zeros,
                      int64_t blocks, int64_t block, std::byte* out) {
  widen(first, has_zeros, blocks, block, out);
  if (second != nullptr) widen(second, has_zeros, blocks, block, out + 64);
}

}  // namespace tombolo

#else

namespace tombolo {
NbitsTileFn* nbits_vnni_tile() { return nullptr; }
void nbits_widen_bf16(const std::byte*, const std::byte*, bool, int64_t, int64_t, std::byte*) {}
}  // namespace tombolo

#endif
