// Weights of 2, 4 or 8 bits times bytes with AVX-512 VNNI (others: nbits.cpp): codes are unsigned
// bytes as they come out of a word by masks, the even and the odd ones of eight, and the rows of A
// are stored in that order. And the weights as bf16, for AMX.

#include "runtime/kernels/isa.h"
#include "runtime/kernels/matmul/nbits.h"

#if defined(__x86_64__)
#include <array>
#include <utility>

#include "runtime/kernels/vnni.h"

#define TOMBOLO_BF16 \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx512bf16")))

namespace tombolo {
namespace {

/// Of one panel.
template <NbitsKind kKind>
struct Packed {
  static constexpr int kBits = nbits_of(kKind);
  static constexpr int64_t kStep = nbits_step(kKind);
  static constexpr int64_t kBytes = kStep * 2 * kBits;  ///< of so many k
  static constexpr int64_t codes(int64_t block) { return block * 2 * kBits; }
};

constexpr int64_t kAhead = 2048;  ///< bytes that are asked for early, of two panels

/// Four bytes of a row for all columns; told to stay in a register where two panels read them.
template <bool kStays>
TOMBOLO_VNNI inline __m512i bytes_of_row(const std::byte* p) {
  __m512i bytes = _mm512_set1_epi32(word_at(p));
  if constexpr (kStays) asm("" : "+v"(bytes));
  return bytes;
}

template <NbitsKind kKind, int kR, int kPanels>
TOMBOLO_VNNI void vnni_tile(const NbitsTile& t) {
  using P = Packed<kKind>;
  constexpr bool kEight = kKind == NbitsKind::kEight;
  constexpr bool kPair = kPanels == 2;
  constexpr int64_t kSoon = !kPair && kR <= kNbitsFewRows ? kNbitsAhead : kAhead;
  const __m512i mask = _mm512_set1_epi32(kKind == NbitsKind::kTwo ? 0x03030303 : 0x0F0F0F0F);
  __m512 total[kPanels][kR];
#pragma GCC unroll 2
  for (int p = 0; p < kPanels; ++p)
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r)
      total[p][r] = t.bias != nullptr ? _mm512_loadu_ps(t.bias + 16 * p) : _mm512_setzero_ps();
  const std::byte *at = t.panel, *a = t.a, *next = t.next;
  const int64_t step = t.panel_step;
  for (int64_t b = 0; b < t.blocks; ++b) {
    // Few rows have few sums: two of each are in flight.
    __m512i sum[kPanels][kR], more[kPanels][kR];
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) {
      __m512i zero = _mm512_setzero_si512();
      if (t.has_zeros) {
        __m128i bytes;
        __builtin_memcpy(&bytes, at + p * step + P::codes(t.block) + 64, 16);
        zero = _mm512_cvtepu8_epi32(bytes);
      }
#pragma GCC unroll 16
      for (int r = 0; r < kR; ++r) {
        const __m512i start = _mm512_set1_epi32(word_at(a + 4 * r));
        sum[p][r] =
            t.has_zeros ? _mm512_mullo_epi32(start, zero) : _mm512_slli_epi32(start, P::kBits - 1);
        more[p][r] = _mm512_setzero_si512();
      }
    }
    const std::byte* const scales = a + 4 * kR;
    a += 8 * kR;
    for (int64_t k = 0; k < t.block; k += P::kStep, at += P::kBytes) {
      if constexpr (!kPair) {
        _mm_prefetch(reinterpret_cast<const char*>(at + kSoon), _MM_HINT_T0);
        if constexpr (kEight)
          _mm_prefetch(reinterpret_cast<const char*>(at + kSoon + 64), _MM_HINT_T0);
      }
#pragma GCC unroll 2
      for (int eight = 0; eight < P::kStep / 8; ++eight, a += 8 * kR) {
        __m512i codes[kPanels];  // even ones, then odd ones
        const std::byte* from = at;
        if constexpr (kPair) {
          _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T0);
          _mm_prefetch(reinterpret_cast<const char*>(next + t.next_also), _MM_HINT_T0);
          next += t.next_step;
        }
#pragma GCC unroll 2
        for (int p = 0; p < kPanels; ++p) {
          codes[p] = _mm512_loadu_si512(from + p * step);
          if (eight > 0) codes[p] = _mm512_srli_epi32(codes[p], 2);
          if constexpr (!kEight) codes[p] = _mm512_and_si512(codes[p], mask);
        }
#pragma GCC unroll 16
        for (int r = 0; r < kR; ++r) {
          const __m512i bytes = bytes_of_row<kPair>(a + 8 * r);
#pragma GCC unroll 2
          for (int p = 0; p < kPanels; ++p) add_byte_products(sum[p][r], codes[p], bytes);
        }
        asm("" : "+r"(from));  // read once more: all registers hold sums
#pragma GCC unroll 2
        for (int p = 0; p < kPanels; ++p) {
          codes[p] = _mm512_loadu_si512(from + p * step + (kEight ? 64 : 0));
          if constexpr (!kEight)
            codes[p] = _mm512_and_si512(_mm512_srli_epi32(codes[p], eight > 0 ? 6 : 4), mask);
        }
#pragma GCC unroll 16
        for (int r = 0; r < kR; ++r) {
          const __m512i bytes = bytes_of_row<kPair>(a + 8 * r + 4);
#pragma GCC unroll 2
          for (int p = 0; p < kPanels; ++p) {
            __m512i& to = kR <= kNbitsFewRows ? more[p][r] : sum[p][r];
            add_byte_products(to, codes[p], bytes);
          }
        }
      }
    }
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) {
      const __m512 scale = _mm512_loadu_ps(at + p * step);
#pragma GCC unroll 16
      for (int r = 0; r < kR; ++r) {
        if constexpr (kR <= kNbitsFewRows) sum[p][r] = _mm512_add_epi32(sum[p][r], more[p][r]);
        const __m512 scaled = _mm512_mul_ps(scale, _mm512_cvtepi32_ps(sum[p][r]));
        total[p][r] =
            _mm512_fmadd_ps(scaled, _mm512_set1_ps(float_at(scales + 4 * r)), total[p][r]);
      }
    }
    at += t.has_zeros ? 80 : 64;
  }
#pragma GCC unroll 2
  for (int p = 0; p < kPanels; ++p) {
    const __mmask16 some = first_lanes(t.cols - 16 * p);
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) _mm512_mask_storeu_ps(t.y + r * t.ldy + 16 * p, some, total[p][r]);
  }
}

using TileFn = void(const NbitsTile&);

template <NbitsKind kKind, int kPanels, int... kR>
constexpr std::array<TileFn*, sizeof...(kR)> vnni_tiles(std::integer_sequence<int, kR...>) {
  return {&vnni_tile<kKind, kR + 1, kPanels>...};
}

template <NbitsKind kKind>
void run_vnni_of(const NbitsTile& t, int rows) {
  static constexpr auto kOne = vnni_tiles<kKind, 1>(std::make_integer_sequence<int, kNbitsRows>());
  static constexpr auto kPairs =
      vnni_tiles<kKind, 2>(std::make_integer_sequence<int, kNbitsPairRows>());
  const auto row = static_cast<size_t>(rows - 1);
  if (t.panel_step != 0) return kPairs[row](t);
  kOne[row](t);
}

void run_vnni(const NbitsTile& t, int rows) {
  if (t.kind == NbitsKind::kTwo) return run_vnni_of<NbitsKind::kTwo>(t, rows);
  if (t.kind == NbitsKind::kEight) return run_vnni_of<NbitsKind::kEight>(t, rows);
  run_vnni_of<NbitsKind::kFour>(t, rows);
}

/// The code in the lowest bits, less the zero point above 2^23, times the
/// scale.
template <int kBits>
TOMBOLO_BF16 inline __m512 weight(__m512i word, __m512 zero, __m512 scale) {
  const __m512i code = _mm512_and_si512(word, _mm512_set1_epi32((1 << kBits) - 1));
  const __m512i bits = _mm512_or_si512(code, _mm512_set1_epi32(0x4B000000));
  return _mm512_mul_ps(_mm512_sub_ps(_mm512_castsi512_ps(bits), zero), scale);
}

template <NbitsKind kKind>
TOMBOLO_BF16 void widen(const NbitsShape& s, bool scaled, const std::byte* at, std::byte* out) {
  // Odd ones above even ones, column by column.
  alignas(64) uint16_t order[32];
  for (int i = 0; i < 16; ++i) {
    order[2 * i] = static_cast<uint16_t>(i);
    order[2 * i + 1] = static_cast<uint16_t>(16 + i);
  }
  using P = Packed<kKind>;
  constexpr bool kEight = kKind == NbitsKind::kEight;
  const __m512i turns = _mm512_load_si512(order);
  const int64_t blocks = s.blocks();
  for (int64_t b = 0; b < blocks; ++b) {
    const std::byte* tail = at + P::codes(s.block);
    const __m512 scale = scaled ? _mm512_loadu_ps(tail) : _mm512_set1_ps(1);
    __m512i number = _mm512_set1_epi32(1 << (P::kBits - 1));
    if (s.has_zeros) {
      __m128i bytes;
      __builtin_memcpy(&bytes, tail + 64, 16);
      number = _mm512_cvtepu8_epi32(bytes);
    }
    const __m512 zero = _mm512_castsi512_ps(_mm512_or_si512(number, _mm512_set1_epi32(0x4B000000)));
    for (int64_t k = 0; k < s.block; k += P::kStep, at += P::kBytes) {
#pragma GCC unroll 2
      for (int eight = 0; eight < P::kStep / 8; ++eight) {
        __m512i first = _mm512_loadu_si512(at);
        if (eight > 0) first = _mm512_srli_epi32(first, 2);
        __m512i second = kEight ? _mm512_loadu_si512(at + 64) : _mm512_srli_epi32(first, 4);
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j, out += 128) {
          const __m512 even = weight<P::kBits>(first, zero, scale);
          const __m512 odd = weight<P::kBits>(second, zero, scale);
          first = _mm512_srli_epi32(first, 8);
          second = _mm512_srli_epi32(second, 8);
          const auto both = _mm512_cvtne2ps_pbh(odd, even);
          _mm512_storeu_si512(out, _mm512_permutexvar_epi16(turns, (__m512i)both));
        }
      }
    }
    at = tail + 64 + (s.has_zeros ? 16 : 0);
  }
}

}  // namespace

NbitsTileFn* nbits_vnni_tile() { return has_vnni() ? &run_vnni : nullptr; }

void nbits_widen_bf16(const NbitsShape& shape, const std::byte* first, const std::byte* second,
                      std::byte* out, bool scaled) {
  auto* const fn = shape.kind == NbitsKind::kEight ? &widen<NbitsKind::kEight>
                   : shape.kind == NbitsKind::kTwo ? &widen<NbitsKind::kTwo>
                                                   : &widen<NbitsKind::kFour>;
  fn(shape, scaled, first, out);
  if (second != nullptr) fn(shape, scaled, second, out + 64);
}

}  // namespace tombolo

#else

namespace tombolo {
NbitsTileFn* nbits_vnni_tile() { return nullptr; }
void nbits_widen_bf16(const NbitsShape&, const std::byte*, const std::byte*, std::byte*, bool) {}
}  // namespace tombolo

#endif
