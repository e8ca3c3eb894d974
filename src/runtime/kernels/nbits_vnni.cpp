// Weights of 4 bits times bytes with AVX-512 VNNI: codes are unsigned bytes as they come out of a
// word by masks, the even and the odd ones of eight, and the rows of A are stored in that order.

#include "runtime/kernels/nbits.h"

#if defined(__x86_64__)
#if !defined(__clang__)
// gcc 12 takes its own _mm512_undefined_* inside the intrinsics for a mistake (gcc bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <array>
#include <utility>

#define TOMBOLO_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))

namespace tombolo {
namespace {

/// Four bytes to all lanes, from memory: by way of a register it would take a port of the products.
TOMBOLO_VNNI inline __m512i broadcast(const int8_t* p) {
  float bits;
  __builtin_memcpy(&bits, p, 4);
  return _mm512_castps_si512(_mm512_set1_ps(bits));
}

template <int kR>
TOMBOLO_VNNI void tile(const NbitsTile& t) {
  const __m512i mask = _mm512_set1_epi32(0x0F0F0F0F);
  const __m512 origin = _mm512_set1_ps(8388608.0f);  // see nbits_pack: zero points lie above 2^23
  __m512 total[kR];
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r)
    total[r] = t.bias != nullptr ? _mm512_loadu_ps(t.bias) : _mm512_setzero_ps();
  const uint32_t* words = t.words;
  const int8_t* a = t.a;
  const int64_t lda = t.lda;
  for (int64_t b = 0; b < t.blocks; ++b) {
    __m512i sum[kR];
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) sum[r] = _mm512_setzero_si512();
    for (int64_t k = 0; k < t.block; k += 8, words += 16, a += 8) {
      const __m512i word = _mm512_loadu_si512(words);
      const __m512i even = _mm512_and_si512(word, mask);
      const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(word, 4), mask);
#pragma GCC unroll 16
      for (int r = 0; r < kR; ++r) {
        sum[r] = _mm512_dpbusd_epi32(sum[r], even, broadcast(a + r * lda));
        sum[r] = _mm512_dpbusd_epi32(sum[r], odd, broadcast(a + r * lda + 4));
      }
    }
    const __m512 scale = _mm512_loadu_ps(t.scales + b * 16);
    const __m512 zero = _mm512_sub_ps(_mm512_loadu_ps(t.zeros + b * 16), origin);
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
      const __m512 moved = _mm512_fnmadd_ps(zero, _mm512_set1_ps(t.sums[r * t.blocks + b]),
                                            _mm512_cvtepi32_ps(sum[r]));
      const __m512 both = _mm512_mul_ps(scale, _mm512_set1_ps(t.a_scales[r * t.blocks + b]));
      total[r] = _mm512_fmadd_ps(moved, both, total[r]);
    }
  }
  const __mmask16 some = static_cast<__mmask16>(t.cols >= 16 ? 0xFFFF : (1 << t.cols) - 1);
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) _mm512_mask_storeu_ps(t.y + r * t.ldy, some, total[r]);
}

using TileFn = void(const NbitsTile&);

template <int... kR>
constexpr std::array<TileFn*, sizeof...(kR)> make(std::integer_sequence<int, kR...>) {
  return {&tile<kR + 1>...};
}

}  // namespace

void nbits_vnni_tile(const NbitsTile& t, int rows) {
  static constexpr auto kTiles = make(std::make_integer_sequence<int, kNbitsRows>());
  kTiles[static_cast<size_t>(rows - 1)](t);
}

}  // namespace tombolo

#else

namespace tombolo {
void nbits_vnni_tile(const NbitsTile&, int) {}
}  // namespace tombolo

#endif
