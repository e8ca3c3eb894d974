#include "runtime/kernels/matmul/gemm_halves.h"

#include <algorithm>

#include "runtime/kernels/isa.h"

namespace tombolo {
namespace {

constexpr int64_t kGroup = 4;  ///< of k, whose bytes one product takes
/// Of a panel, bytes: high ones, then low ones.
constexpr int64_t kOfGroup = 2 * kHalvesWidth * kGroup;
/// Bytes of a row in a block: what both its sums begin with, and its scale.
constexpr int64_t kHeader = 3 * sizeof(float);

int64_t blocks_of(int64_t k) { return (k + kHalvesBlock - 1) / kHalvesBlock; }
int64_t groups_of(int64_t k) { return (k + kGroup - 1) / kGroup; }

}  // namespace

int64_t halves_tile_bytes(int64_t rows, int64_t k) {
  return rows * (blocks_of(k) * kHeader + groups_of(k) * 2 * kGroup);
}
int64_t halves_panel_bytes(int64_t k) {
  return blocks_of(k) * kHalvesWidth * 4 + groups_of(k) * kOfGroup;
}

}  // namespace tombolo

#if defined(__x86_64__)
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "runtime/kernels/vnni.h"

namespace tombolo {
namespace {

constexpr int32_t kMostHalf = 32767;     ///< of a weight, which is kept plus 32768
constexpr int32_t kMostRow = 127 * 256;  ///< of a number of A: two signed bytes
constexpr float kLeast = 1e-30f;

TOMBOLO_VNNI inline __m512i magnitude(__m512 x) {
  return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7FFFFFFF));
}

/// Of a block's numbers that are not zero, one of 2^kShare is to be large: at least a 2^kSpread-th
/// of the largest.
constexpr int kShare = 3, kSpread = 4;

/// Whether a scale can be made of the largest of a block, given as bits of its magnitude.
bool has_scale(uint32_t bits) {
  float most;
  std::memcpy(&most, &bits, sizeof most);
  return bits == 0 || (most >= kLeast && bits < 0x7F800000);
}

/// One row of a block: to every four of k its high bytes, then its low ones, `step` bytes apart.
TOMBOLO_VNNI bool split_row(const float* x, int64_t k, int64_t step, std::byte* header,
                            int64_t header_step, std::byte* out) {
  const auto some = [&](int64_t i) {
    return static_cast<__mmask16>(k - i >= 16 ? 0xFFFF : (1 << (k - i)) - 1);
  };
  __m512i most = _mm512_setzero_si512();
  for (int64_t i = 0; i < k; i += 16)
    most = _mm512_max_epu32(most, magnitude(_mm512_maskz_loadu_ps(some(i), x + i)));
  const uint32_t bits = _mm512_reduce_max_epu32(most);
  if (!has_scale(bits)) return false;
  float largest;
  std::memcpy(&largest, &bits, sizeof largest);
  const __m512i least = _mm512_castps_si512(_mm512_set1_ps(largest / (1 << kSpread)));
  int64_t large = 0, all = 0;
  for (int64_t i = 0; i < k; i += 16) {
    const __m512i x16 = magnitude(_mm512_maskz_loadu_ps(some(i), x + i));
    const __mmask16 any = _mm512_test_epi32_mask(x16, x16);
    all += std::popcount(static_cast<uint32_t>(any));
    large += std::popcount(static_cast<uint32_t>(_mm512_mask_cmpge_epu32_mask(any, x16, least)));
  }
  if (all > large << kShare) return false;
  const float scale = largest / kMostRow;
  const __m512 inverse = _mm512_set1_ps(largest > 0 ? kMostRow / largest : 0);
  __m512i highs = _mm512_setzero_si512(), lows = highs;
  for (int64_t i = 0; i < k; i += 16) {
    const __m512 v = _mm512_mul_ps(_mm512_maskz_loadu_ps(some(i), x + i), inverse);
    const __m512i q = _mm512_cvtps_epi32(v);
    const __m512i high = _mm512_srai_epi32(_mm512_add_epi32(q, _mm512_set1_epi32(128)), 8);
    const __m512i low = _mm512_sub_epi32(q, _mm512_slli_epi32(high, 8));
    highs = _mm512_add_epi32(highs, high);
    lows = _mm512_add_epi32(lows, low);
    alignas(16) std::byte bytes[2][16];
    _mm_store_si128(reinterpret_cast<__m128i*>(bytes[0]), _mm512_cvtepi32_epi8(high));
    _mm_store_si128(reinterpret_cast<__m128i*>(bytes[1]), _mm512_cvtepi32_epi8(low));
    for (int64_t j = 0; j < 16 && i + j < k; j += kGroup, out += step) {
      std::memcpy(out, bytes[0] + j, kGroup);
      std::memcpy(out + kGroup, bytes[1] + j, kGroup);
    }
  }
  // Weights are 32768 more than they should be, 128 in their high byte; the low ones, which do not
  // meet low bytes of the row, are 127.5 on average.
  const int32_t high_sum = _mm512_reduce_add_epi32(highs), low_sum = _mm512_reduce_add_epi32(lows);
  const int32_t first = -128 * high_sum, second = -((255 * low_sum) >> 1);
  std::memcpy(header, &first, 4);
  std::memcpy(header + header_step, &second, 4);
  std::memcpy(header + 2 * header_step, &scale, 4);
  return true;
}

TOMBOLO_VNNI inline __m512 load_half(PanelFormat format, const uint16_t* from) {
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  if (format == PanelFormat::kFloat16) return _mm512_cvtph_ps(halves);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

/// The largest magnitudes of k rows of a panel, whose bits are in order as the numbers are. False
/// where they are far from the others.
TOMBOLO_VNNI bool find_largest(PanelFormat format, const uint16_t* from, int64_t k,
                               __m512 (&most)[2]) {
  const auto row = [&](int64_t i) TOMBOLO_VNNI {
    return _mm512_and_si512(_mm512_loadu_si512(from + i * kHalvesWidth), _mm512_set1_epi16(0x7FFF));
  };
  const __m512i one = _mm512_set1_epi16(1);
  __m512i bits = _mm512_setzero_si512(), all = bits, large = bits;
  for (int64_t i = 0; i < k; ++i) {
    const __m512i x = row(i);
    bits = _mm512_max_epu16(bits, x);
    all = _mm512_add_epi16(all, _mm512_min_epu16(x, one));
  }
  const int digits = format == PanelFormat::kFloat16 ? 10 : 7;
  const auto below = static_cast<int16_t>((kSpread << digits) + 1);
  const __m512i less = _mm512_subs_epu16(bits, _mm512_set1_epi16(below));
  for (int64_t i = 0; i < k; ++i)
    large = _mm512_add_epi16(large, _mm512_min_epu16(_mm512_subs_epu16(row(i), less), one));
  if (_mm512_cmpgt_epi16_mask(all, _mm512_slli_epi16(large, kShare)) != 0) return false;
  alignas(64) uint16_t halves[kHalvesWidth];
  _mm512_store_si512(halves, bits);
  for (int v = 0; v < 2; ++v) most[v] = load_half(format, halves + 16 * v);
  return true;
}

/// A block of a panel: every four k as high bytes, and 128 bytes behind those as low ones.
TOMBOLO_VNNI bool split_columns(PanelFormat format, const uint16_t* from, int64_t k, float* scales,
                                std::byte* out) {
  __m512 most[2], inverse[2];
  if (!find_largest(format, from, k, most)) return false;
  for (int v = 0; v < 2; ++v) {
    const __m512i bits = _mm512_castps_si512(most[v]);
    const __mmask16 any = _mm512_test_epi32_mask(bits, bits);
    const __mmask16 small = _mm512_cmp_ps_mask(most[v], _mm512_set1_ps(kLeast), _CMP_LT_OQ);
    const __mmask16 odd = _mm512_cmpge_epu32_mask(bits, _mm512_set1_epi32(0x7F800000));
    if (((small & any) | odd) != 0) return false;
    inverse[v] = _mm512_maskz_div_ps(any, _mm512_set1_ps(kMostHalf), most[v]);
    // Of sums divided by 256.
    _mm512_storeu_ps(scales + 16 * v, _mm512_mul_ps(most[v], _mm512_set1_ps(256.0f / kMostHalf)));
  }
  const __m512i order =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15));
  // The sum's lowest 16 bits are the number plus 32768, to the nearest.
  const __m512 middle = _mm512_set1_ps(8388608.0f + 32768.0f);
  const __m512i lower = _mm512_set1_epi32(0xFFFF);
  for (int64_t i = 0; i < k; i += kGroup, out += kOfGroup)
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      __m512i q[kGroup];
#pragma GCC unroll 4
      for (int64_t j = 0; j < kGroup; ++j)
        q[j] = _mm512_castps_si512(
            i + j < k ? _mm512_fmadd_ps(load_half(format, from + (i + j) * kHalvesWidth + 16 * v),
                                        inverse[v], middle)
                      : middle);
      // Low, low, high, high of two k.
      const auto two = [&](__m512i first, __m512i second) TOMBOLO_VNNI {
        return _mm512_shuffle_epi8(
            _mm512_mask_blend_epi16(0xAAAAAAAA, first, _mm512_slli_epi32(second, 16)), order);
      };
      const __m512i first = two(q[0], q[1]), second = two(q[2], q[3]);
      _mm512_storeu_si512(out + 64 * v, _mm512_or_si512(_mm512_srli_epi32(first, 16),
                                                        _mm512_andnot_si512(lower, second)));
      _mm512_storeu_si512(
          out + kOfGroup / 2 + 64 * v,
          _mm512_or_si512(_mm512_and_si512(first, lower), _mm512_slli_epi32(second, 16)));
    }
  return true;
}

template <int kR>
TOMBOLO_VNNI void multiply(const std::byte* a, const std::byte* panel, int64_t k,
                           const std::byte* next, float* sums) {
  const auto* scales = reinterpret_cast<const float*>(panel);
  const std::byte* b = panel + blocks_of(k) * kHalvesWidth * 4;
  for (int64_t k0 = 0; k0 < k; k0 += kHalvesBlock, scales += kHalvesWidth) {
    __m512i high[kR][2], cross[kR][2];
#pragma GCC unroll 6
    for (int r = 0; r < kR; ++r) {
      high[r][0] = high[r][1] = _mm512_set1_epi32(word_at(a + 4 * r));
      cross[r][0] = cross[r][1] = _mm512_set1_epi32(word_at(a + 4 * (kR + r)));
    }
    const std::byte* const own = a + 4 * 2 * kR;
    a += kHeader * kR;
    const int64_t groups = groups_of(std::min(kHalvesBlock, k - k0));
    for (int64_t g = 0; g < groups; ++g, a += 2 * kGroup * kR, b += kOfGroup, next += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T0);
      const __m512i b0 = _mm512_loadu_si512(b), b1 = _mm512_loadu_si512(b + 64);
      const __m512i c0 = _mm512_loadu_si512(b + 128), c1 = _mm512_loadu_si512(b + 192);
#pragma GCC unroll 6
      for (int r = 0; r < kR; ++r) {
        const __m512i x = _mm512_set1_epi32(word_at(a + 2 * kGroup * r));
        const __m512i y = _mm512_set1_epi32(word_at(a + 2 * kGroup * r + kGroup));
        add_byte_products(high[r][0], b0, x);
        add_byte_products(high[r][1], b1, x);
        add_byte_products(cross[r][0], b0, y);
        add_byte_products(cross[r][1], b1, y);
        add_byte_products(cross[r][0], c0, x);
        add_byte_products(cross[r][1], c1, x);
      }
    }
#pragma GCC unroll 6
    for (int r = 0; r < kR; ++r) {
      const __m512 row = _mm512_set1_ps(float_at(own + 4 * r));
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        const __m512i sum = _mm512_add_epi32(_mm512_slli_epi32(high[r][v], 8), cross[r][v]);
        const __m512 scaled =
            _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_loadu_ps(scales + 16 * v));
        float* const to = sums + r * kHalvesWidth + 16 * v;
        const __m512 before = k0 == 0 ? _mm512_setzero_ps() : _mm512_loadu_ps(to);
        _mm512_storeu_ps(to, _mm512_fmadd_ps(scaled, row, before));
      }
    }
  }
}

template <int... kR>
constexpr auto tiles_of(std::integer_sequence<int, kR...>) {
  using Fn = void(const std::byte*, const std::byte*, int64_t, const std::byte*, float*);
  return std::array<Fn*, sizeof...(kR)>{&multiply<kR + 1>...};
}

}  // namespace

bool halves_fit(PanelFormat format, int64_t m, int64_t n, int64_t k) {
  const bool halves = format == PanelFormat::kFloat16 || format == PanelFormat::kBfloat16;
  return halves && m >= 48 && n >= 64 && k >= 64 && has_vnni() && reads_one_stream() &&
         gemm_tiles().panel() == kHalvesWidth;
}

bool halves_of_rows(const float* a, int64_t lda, int64_t rows, int64_t k, std::byte* out) {
  for (int64_t k0 = 0; k0 < k; k0 += kHalvesBlock) {
    const int64_t some = std::min(kHalvesBlock, k - k0);
    for (int64_t r = 0; r < rows; ++r)
      if (!split_row(a + r * lda + k0, some, 2 * kGroup * rows, out + 4 * r, 4 * rows,
                     out + kHeader * rows + 2 * kGroup * r))
        return false;
    out += rows * (kHeader + 2 * kGroup * groups_of(some));
  }
  return true;
}

bool halves_of_panel(PanelFormat format, const void* panel, int64_t k, std::byte* out) {
  const auto* from = static_cast<const uint16_t*>(panel);
  auto* scales = reinterpret_cast<float*>(out);
  out += blocks_of(k) * kHalvesWidth * 4;
  for (int64_t k0 = 0; k0 < k; k0 += kHalvesBlock, scales += kHalvesWidth) {
    const int64_t some = std::min(kHalvesBlock, k - k0);
    if (!split_columns(format, from + k0 * kHalvesWidth, some, scales, out)) return false;
    out += groups_of(some) * kOfGroup;
  }
  return true;
}

void halves_product(const std::byte* tile, int64_t rows, const std::byte* panel, int64_t k,
                    const std::byte* next, float* sums) {
  static constexpr auto kTiles = tiles_of(std::make_integer_sequence<int, kHalvesRows>());
  kTiles[static_cast<size_t>(rows - 1)](tile, panel, k, next, sums);
}

}  // namespace tombolo

#else

namespace tombolo {
bool halves_fit(PanelFormat, int64_t, int64_t, int64_t) { return false; }
bool halves_of_rows(const float*, int64_t, int64_t, int64_t, std::byte*) { return false; }
bool halves_of_panel(PanelFormat, const void*, int64_t, std::byte*) { return false; }
void halves_product(const std::byte*, int64_t, const std::byte*, int64_t, const std::byte*,
                    float*) {}
}  // namespace tombolo

#endif
