#include "runtime/kernels/matmul/gemm_halves.h"

#include <algorithm>

#include "runtime/kernels/isa.h"

namespace tombolo {
namespace {

constexpr int64_t kGroup = 4;  ///< of k, whose bytes one product takes
/// Of a panel, bytes: high ones, then low ones.
constexpr int64_t kOfGroup = 2 * kHalvesWidth * kGroup;
/// Numbers of a row in a block: what both its sums begin with, and its scale.
constexpr int64_t kHeader = 3;

int64_t blocks_of(int64_t k) { return (k + kHalvesBlock - 1) / kHalvesBlock; }
int64_t groups_of(int64_t k) { return (k + kGroup - 1) / kGroup; }

/// Of a tile the bytes before its rows, and from row to row: whole vectors, and not all rows in one
/// set of the caches.
int64_t header_bytes(int64_t rows, int64_t k) {
  return (blocks_of(k) * kHeader * rows * 4 + 63) / 64 * 64;
}
int64_t row_bytes(int64_t k) {
  const int64_t bytes = (groups_of(k) * 2 * kGroup + 63) / 64 * 64;
  return bytes % 512 == 0 ? bytes + 64 : bytes;
}

}  // namespace

int64_t halves_tile_bytes(int64_t rows, int64_t k) {
  return header_bytes(rows, k) + rows * row_bytes(k);
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

#include "runtime/kernels/row_pointers.h"
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

/// The sum of pairs of lanes: of even ones in the lower half of the result, of odd ones above it.
TOMBOLO_VNNI_INLINE int64_t add_pairs(__m512i x) {
  const __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
  const __m128i pairs =
      _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  return _mm_cvtsi128_si64(_mm_add_epi32(pairs, _mm_unpackhi_epi64(pairs, pairs)));
}

/// Of one row 32 numbers times kPairs, in vectors `step` floats apart, those of a block: to every
/// four of k its high bytes, then its low ones.
template <int kPairs>
TOMBOLO_VNNI bool split_row(const float* x, int64_t step, int64_t k, float* header, int64_t rows,
                            std::byte* out) {
  __m512 v[2 * kPairs];
  const __m512i one = _mm512_set1_epi32(1);
  __m512i most = _mm512_setzero_si512(), any = most;
#pragma GCC unroll 8
  for (int i = 0; i < 2 * kPairs; ++i) {
    v[i] = _mm512_maskz_loadu_ps(first_lanes(k - 16 * i), x + i * step);
    most = _mm512_max_epu32(most, magnitude(v[i]));
    any = _mm512_add_epi32(any, _mm512_min_epu32(magnitude(v[i]), one));
  }
  const uint32_t bits = _mm512_reduce_max_epu32(most);
  if (!has_scale(bits)) return false;
  float largest;
  std::memcpy(&largest, &bits, sizeof largest);
  const __m512 inverse = _mm512_set1_ps(largest > 0 ? kMostRow / largest : 0);
  const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  const __m512i apart =
      _mm512_broadcast_i32x4(_mm_setr_epi8(1, 3, 5, 7, 0, 2, 4, 6, 9, 11, 13, 15, 8, 10, 12, 14));
  const __m512i flips = _mm512_set1_epi64(static_cast<int64_t>(0x8080808000000000));
  const __m512i least = _mm512_set1_epi16(kMostRow >> kSpread);
  __m512i sums = _mm512_setzero_si512();
  int64_t large = 0;
#pragma GCC unroll 4
  for (int i = 0; i < kPairs; ++i) {
    const __m512i q = _mm512_permutexvar_epi64(
        order, _mm512_packs_epi32(_mm512_cvtps_epi32(_mm512_mul_ps(v[2 * i], inverse)),
                                  _mm512_cvtps_epi32(_mm512_mul_ps(v[2 * i + 1], inverse))));
    large +=
        std::popcount(static_cast<uint32_t>(_mm512_cmpge_epi16_mask(_mm512_abs_epi16(q), least)));
    // 128 more: the high byte is that of the nearest, and the low one is above it by as much.
    const __m512i bytes = _mm512_xor_si512(
        _mm512_shuffle_epi8(_mm512_add_epi16(q, _mm512_set1_epi16(128)), apart), flips);
    add_byte_products(sums, _mm512_set1_epi8(1), bytes);
    _mm512_storeu_si512(out + 64 * i, bytes);
  }
  const int64_t of_all = add_pairs(any);
  if (((of_all & 0xFFFFFFFF) + (of_all >> 32)) > large << kShare) return false;
  // Weights are 32768 more than they should be, 128 in their high byte; the low ones, which do not
  // meet low bytes of the row, are 127.5 on average.
  const int64_t both = add_pairs(sums);
  const auto high_sum = static_cast<int32_t>(both), low_sum = static_cast<int32_t>(both >> 32);
  const int32_t first = -128 * high_sum, second = -((255 * low_sum) >> 1);
  const float scale = largest / kMostRow;
  std::memcpy(header, &first, 4);
  std::memcpy(header + rows, &second, 4);
  std::memcpy(header + 2 * rows, &scale, 4);
  return true;
}

/// Sixteen numbers of a panel, from element `at` on.
TOMBOLO_VNNI inline __m512 load_numbers(PanelFormat format, const void* from, int64_t at) {
  if (format == PanelFormat::kFloat32) return _mm512_loadu_ps(static_cast<const float*>(from) + at);
  const auto* const halves =
      reinterpret_cast<const __m256i*>(static_cast<const uint16_t*>(from) + at);
  const __m256i bits = _mm256_loadu_si256(halves);
  if (format == PanelFormat::kFloat16) return _mm512_cvtph_ps(bits);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

/// The largest magnitudes of k rows of a panel, whose bits are in order as the numbers are. False
/// where they are far from the others.
TOMBOLO_VNNI bool find_largest(const float* from, int64_t k, __m512 (&most)[2]) {
  const __m512i one = _mm512_set1_epi32(1);
  for (int v = 0; v < 2; ++v, from += 16) {
    const auto row = [&](int64_t i) TOMBOLO_VNNI {
      return magnitude(_mm512_loadu_ps(from + i * kHalvesWidth));
    };
    __m512i bits = _mm512_setzero_si512(), all = bits, large = bits;
    for (int64_t i = 0; i < k; ++i) {
      bits = _mm512_max_epu32(bits, row(i));
      all = _mm512_add_epi32(all, _mm512_min_epu32(row(i), one));
    }
    most[v] = _mm512_castsi512_ps(bits);
    const __m512i least =
        _mm512_castps_si512(_mm512_mul_ps(most[v], _mm512_set1_ps(1.0f / (1 << kSpread))));
    for (int64_t i = 0; i < k; ++i) {
      const __mmask16 as_large = _mm512_cmpge_epu32_mask(row(i), least);
      large = _mm512_mask_add_epi32(large, as_large, large, one);
    }
    if (_mm512_cmpgt_epi32_mask(all, _mm512_slli_epi32(large, kShare)) != 0) return false;
  }
  return true;
}

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
  for (int v = 0; v < 2; ++v) most[v] = load_numbers(format, halves, 16 * v);
  return true;
}

/// A block of a panel: every four k as high bytes, and 128 bytes behind those as low ones.
TOMBOLO_VNNI bool split_columns(PanelFormat format, const void* from, int64_t k, float* scales,
                                std::byte* out) {
  __m512 most[2], inverse[2];
  if (format == PanelFormat::kFloat32
          ? !find_largest(static_cast<const float*>(from), k, most)
          : !find_largest(format, static_cast<const uint16_t*>(from), k, most))
    return false;
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
            i + j < k ? _mm512_fmadd_ps(load_numbers(format, from, (i + j) * kHalvesWidth + 16 * v),
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
TOMBOLO_VNNI void multiply(const std::byte* tile, const std::byte* panel, int64_t k,
                           const std::byte* next, float* sums) {
  RowPointers<std::byte, kR> a(tile + header_bytes(kR, k), row_bytes(k));
  const std::byte* header = tile;
  const auto* scales = reinterpret_cast<const float*>(panel);
  const std::byte* b = panel + blocks_of(k) * kHalvesWidth * 4;
  for (int64_t k0 = 0; k0 < k; k0 += kHalvesBlock, scales += kHalvesWidth) {
    __m512i high[kR][2], cross[kR][2];
#pragma GCC unroll 6
    for (int r = 0; r < kR; ++r) {
      high[r][0] = high[r][1] = _mm512_set1_epi32(word_at(header + 4 * r));
      cross[r][0] = cross[r][1] = _mm512_set1_epi32(word_at(header + 4 * (kR + r)));
    }
    const int64_t groups = groups_of(std::min(kHalvesBlock, k - k0));
    for (int64_t g = 0; g < groups; ++g, a.advance(2 * kGroup), b += kOfGroup, next += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T0);
      const __m512i b0 = _mm512_loadu_si512(b), b1 = _mm512_loadu_si512(b + 64);
      const __m512i c0 = _mm512_loadu_si512(b + 128), c1 = _mm512_loadu_si512(b + 192);
#pragma GCC unroll 6
      for (int r = 0; r < kR; ++r) {
        const __m512i x = _mm512_set1_epi32(word_at(a.at(r)));
        const __m512i y = _mm512_set1_epi32(word_at(a.at(r) + kGroup));
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
      const __m512 row = _mm512_set1_ps(float_at(header + 4 * (2 * kR + r)));
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
    header += 4 * kHeader * kR;
  }
}

template <int... kR>
constexpr auto tiles_of(std::integer_sequence<int, kR...>) {
  using Fn = void(const std::byte*, const std::byte*, int64_t, const std::byte*, float*);
  return std::array<Fn*, sizeof...(kR)>{&multiply<kR + 1>...};
}

}  // namespace

bool halves_pay(int64_t m, int64_t n, int64_t k) {
  return m >= 48 && n >= 64 && k >= 64 && has_vnni() && reads_one_stream() &&
         gemm_tiles().panel() == kHalvesWidth;
}

bool halves_of_row(const float* x, int64_t step, int64_t k, int64_t row, int64_t rows,
                   std::byte* tile) {
  auto* header = reinterpret_cast<float*>(tile) + row;
  std::byte* out = tile + header_bytes(rows, k) + row * row_bytes(k);
  static constexpr decltype(&split_row<1>) kSplit[] = {&split_row<1>, &split_row<2>, &split_row<3>,
                                                       &split_row<4>};
  for (int64_t k0 = 0; k0 < k; k0 += kHalvesBlock) {
    const int64_t some = std::min(kHalvesBlock, k - k0);
    if (!kSplit[(some - 1) / 32](x + k0 / 16 * step, step, some, header, rows, out)) return false;
    header += kHeader * rows;
    out += 2 * kHalvesBlock;
  }
  return true;
}

bool halves_of_panel(PanelFormat format, const void* panel, int64_t k, std::byte* out) {
  const auto* from = static_cast<const std::byte*>(panel);
  const int64_t bytes = format == PanelFormat::kFloat32 ? 4 : 2;
  auto* scales = reinterpret_cast<float*>(out);
  out += blocks_of(k) * kHalvesWidth * 4;
  for (int64_t k0 = 0; k0 < k; k0 += kHalvesBlock, scales += kHalvesWidth) {
    const int64_t some = std::min(kHalvesBlock, k - k0);
    if (!split_columns(format, from + k0 * kHalvesWidth * bytes, some, scales, out)) return false;
    out += groups_of(some) * kOfGroup;
  }
  return true;
}

void floats_of_panel(const std::byte* panel, int64_t k, float* out) {
  const auto* scales = reinterpret_cast<const float*>(panel);
  panel += blocks_of(k) * kHalvesWidth * 4;
  for (int64_t i = 0; i < k; ++i) {
    const float* const own = scales + i / kHalvesBlock * kHalvesWidth;
    const std::byte* const from = panel + i / kGroup * kOfGroup + i % kGroup;
    for (int64_t c = 0; c < kHalvesWidth; ++c) {
      const auto high = static_cast<int32_t>(from[c * kGroup]);
      const auto low = static_cast<int32_t>(from[kOfGroup / 2 + c * kGroup]);
      out[i * kHalvesWidth + c] = static_cast<float>(high * 256 + low - 32768) * own[c] / 256;
    }
  }
}

void halves_product(const std::byte* tile, int64_t rows, const std::byte* panel, int64_t k,
                    const std::byte* next, float* sums) {
  static constexpr auto kTiles = tiles_of(std::make_integer_sequence<int, kHalvesRows>());
  kTiles[static_cast<size_t>(rows - 1)](tile, panel, k, next, sums);
}

}  // namespace tombolo

#else

namespace tombolo {
bool halves_pay(int64_t, int64_t, int64_t) { return false; }
bool halves_of_row(const float*, int64_t, int64_t, int64_t, int64_t, std::byte*) { return false; }
bool halves_of_panel(PanelFormat, const void*, int64_t, std::byte*) { return false; }
void floats_of_panel(const std::byte*, int64_t, float*) {}
void halves_product(const std::byte*, int64_t, const std::byte*, int64_t, const std::byte*,
                    float*) {}
}  // namespace tombolo

#endif
