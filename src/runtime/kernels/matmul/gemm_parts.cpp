#include "runtime/kernels/matmul/gemm_parts.h"

#include "runtime/kernels/isa.h"

namespace tombolo {
bool parts_fit(PanelFormat format, int64_t m, int64_t n, int64_t k) {
  const bool halves = format == PanelFormat::kFloat16 || format == PanelFormat::kBfloat16;
  return halves && m >= 16 && n >= 64 && k >= 64 && has_amx_bf16();
}

}  // namespace tombolo

#if defined(__x86_64__)
#include "runtime/kernels/amx.h"
#include "runtime/kernels/intrinsics.h"

#define TOMBOLO_PARTS __attribute__((target("avx512f,avx512bw,amx-tile,amx-bf16")))

namespace tombolo {
namespace {

constexpr int64_t kTile = 1024;  // bytes: 16 rows of 32 bf16

/// A number as the sum of two of 8 bits, which leave the lower halves of their floats empty, and
/// what is less than half of the last bit.
struct Parts {
  __m512 first, second;
};
TOMBOLO_PARTS inline Parts split(__m512 x) {
  const __m512 factor = _mm512_set1_ps(65537);  // 2^16 + 1
  const __m512 c = _mm512_mul_ps(x, factor);
  const __m512 first = _mm512_sub_ps(c, _mm512_sub_ps(c, x));
  const __m512 rest = _mm512_sub_ps(x, first);
  const __m512 d = _mm512_mul_ps(rest, factor);
  return {first, _mm512_sub_ps(d, _mm512_sub_ps(d, rest))};
}

/// Bf16 in the upper halves of floats: those of `low` below those of `high`.
TOMBOLO_PARTS inline __m512i beside(__m512 low, __m512 high) {
  return _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(low), 16),
                         _mm512_castps_si512(high));
}

/// A float16, or what has no more bits, is the sum of two such numbers: as split, in half the
/// steps.
struct TwoParts {
  __m512i first;  ///< with what belongs to no bf16 in the lower half
  __m512 second;
};
TOMBOLO_PARTS inline TwoParts split_two(__m512 x) {
  const __m512i rounded = _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
  const __m512i first = _mm512_and_si512(rounded, _mm512_set1_epi32(static_cast<int>(0xFFFF0000)));
  return {rounded, _mm512_sub_ps(x, _mm512_castsi512_ps(first))};
}
/// The upper halves of `low` below those of `high`.
TOMBOLO_PARTS inline __m512i upper_halves(__m512i low, __m512i high) {
  constexpr int kSelect = 0xCA;  // of (mask, high, low): high where the mask is set
  return _mm512_ternarylogic_epi32(_mm512_set1_epi32(static_cast<int>(0xFFFF0000)), high,
                                   _mm512_srli_epi32(low, 16), kSelect);
}

/// 32 numbers as two lines of bf16, `step` bytes apart: number i lies beside number i + 16.
TOMBOLO_PARTS inline void split_pairs(__m512 low, __m512 high, std::byte* out, int64_t step) {
  const Parts even = split(low), odd = split(high);
  _mm512_store_si512(out, beside(even.first, odd.first));
  _mm512_store_si512(out + step, beside(even.second, odd.second));
}
/// The same of float16 as floats.
TOMBOLO_PARTS inline void split_short_pairs(__m512 low, __m512 high, std::byte* out, int64_t step) {
  const TwoParts even = split_two(low), odd = split_two(high);
  _mm512_store_si512(out, upper_halves(even.first, odd.first));
  _mm512_store_si512(
      out + step, upper_halves(_mm512_castps_si512(even.second), _mm512_castps_si512(odd.second)));
}

#define TOMBOLO_PARTS_A(part)                                              \
  do {                                                                     \
    _tile_loadd(4, a + (part)*kPartBytes, 64);                             \
    if constexpr (kTwo) _tile_loadd(5, a + (part)*kPartBytes + kTile, 64); \
  } while (false)
#define TOMBOLO_PARTS_B(part)                          \
  do {                                                 \
    _tile_loadd(6, b + (part)*kPartBytes, 64);         \
    _tile_loadd(7, b + (part)*kPartBytes + kTile, 64); \
  } while (false)
#define TOMBOLO_PARTS_PRODUCT()                  \
  do {                                           \
    _tile_dpbf16ps(0, 4, 6);                     \
    _tile_dpbf16ps(1, 4, 7);                     \
    if constexpr (kTwo) _tile_dpbf16ps(2, 5, 6); \
    if constexpr (kTwo) _tile_dpbf16ps(3, 5, 7); \
  } while (false)

/// 32 or 16 rows.
template <bool kTwo, PanelFormat kFormat>
TOMBOLO_PARTS void tile(const std::byte* a, const std::byte* b, int64_t blocks, float* sums,
                        bool accumulate, const std::byte* next, int64_t lines) {
  if (accumulate) {
    _tile_loadd(0, sums, 128);
    _tile_loadd(1, sums + 16, 128);
    if constexpr (kTwo) _tile_loadd(2, sums + 16 * kPartsWidth, 128);
    if constexpr (kTwo) _tile_loadd(3, sums + 16 * kPartsWidth + 16, 128);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (kTwo) _tile_zero(2);
    if constexpr (kTwo) _tile_zero(3);
  }
  for (int64_t i = 0; i < blocks; ++i, a += kPartsBytesA, b += parts_bytes_b(kFormat)) {
    for (int64_t line = 0; line < lines; ++line, next += 64) __builtin_prefetch(next, 0, 2);
    // The least products first; each tile is loaded as seldom as four registers allow.
    TOMBOLO_PARTS_A(1);
    TOMBOLO_PARTS_B(0);
    TOMBOLO_PARTS_PRODUCT();
    TOMBOLO_PARTS_A(0);
    TOMBOLO_PARTS_PRODUCT();
    if constexpr (kFormat == PanelFormat::kFloat16) {
      TOMBOLO_PARTS_B(1);
      TOMBOLO_PARTS_PRODUCT();
    }
  }
  _tile_stored(0, sums, 128);
  _tile_stored(1, sums + 16, 128);
  if constexpr (kTwo) _tile_stored(2, sums + 16 * kPartsWidth, 128);
  if constexpr (kTwo) _tile_stored(3, sums + 16 * kPartsWidth + 16, 128);
}

TOMBOLO_PARTS void split_part_rows(const float* a, int64_t lda, int64_t rows, int64_t k,
                                   std::byte* out) {
  constexpr int64_t kBytes = 2 * kPartBytes;
  const int64_t blocks = (k + kPartsDepth - 1) / kPartsDepth;
  for (int64_t row = 0; row < rows; row += 16) {
    std::byte* to = out + row / 32 * blocks * kBytes + row % 32 * 64;
    for (int64_t i = 0; i < k; i += kPartsDepth, to += kBytes) {
      const float* from = a + row * lda + i;
      const __mmask16 low = first_lanes(k - i), high = first_lanes(k - i - 16);
      for (int64_t r = 0; r < 16; ++r, from += lda) {
        const bool there = row + r < rows;
        split_pairs(_mm512_maskz_loadu_ps(there ? low : 0, from),
                    _mm512_maskz_loadu_ps(there ? high : 0, from + 16), to + r * 64, kPartBytes);
      }
    }
  }
}

/// Sixteen float16 of a row of B as floats.
TOMBOLO_PARTS inline __m512 wide_row(const uint16_t* b) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(b)));
}

TOMBOLO_PARTS void split_panel(const uint16_t* b, int64_t k, std::byte* out) {
  for (int64_t i = 0; i < k; i += kPartsDepth, out += 2 * kPartBytes)
    for (int64_t row = 0; row < 16; ++row)
      for (int64_t half = 0; half < 2; ++half) {
        const uint16_t* from = b + (i + row) * kPartsWidth + half * 16;
        const __m512 low = i + row < k ? wide_row(from) : _mm512_setzero_ps();
        const __m512 high =
            i + row + 16 < k ? wide_row(from + 16 * kPartsWidth) : _mm512_setzero_ps();
        split_short_pairs(low, high, out + half * kTile + row * 64, kPartBytes);
      }
}

/// Bf16 lie beside one another as they are.
TOMBOLO_PARTS void pair_panel(const uint16_t* b, int64_t k, std::byte* out) {
  for (int64_t i = 0; i < k; i += kPartsDepth, out += kPartBytes)
    for (int64_t row = 0; row < 16; ++row)
      for (int64_t half = 0; half < 2; ++half) {
        const uint16_t* from = b + (i + row) * kPartsWidth + half * 16;
        const auto words = [&](const uint16_t* x, bool there) TOMBOLO_PARTS {
          return there ? _mm512_cvtepu16_epi32(
                             _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)))
                       : _mm512_setzero_si512();
        };
        const __m512i low = words(from, i + row < k);
        const __m512i high = words(from + 16 * kPartsWidth, i + row + 16 < k);
        _mm512_store_si512(out + half * kTile + row * 64,
                           _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
      }
}

template <PanelFormat kFormat>
TOMBOLO_PARTS void multiply(const PartsProduct& p) {
  const int64_t turns = (p.rows + kPartsRows - 1) / kPartsRows;
  constexpr int64_t kLines = kPartsDepth * kPartsWidth * 2 / 64;  // of a block of B as it was
  const int64_t lines = p.next == nullptr ? 0 : (kLines + turns - 1) / turns;
  TOMBOLO_AMX_FENCE();
  for (int64_t i = 0; i < turns; ++i) {
    const auto* next = static_cast<const std::byte*>(p.next) + i * lines * p.blocks * 64;
    const auto* a = p.a + i * p.a_step;
    float* sums = p.sums + i * kPartsRows * kPartsWidth;
    if (p.rows - i * kPartsRows > 16)
      tile<true, kFormat>(a, p.b, p.blocks, sums, p.accumulate, next, lines);
    else
      tile<false, kFormat>(a, p.b, p.blocks, sums, p.accumulate, next, lines);
  }
  TOMBOLO_AMX_FENCE();
}

}  // namespace

void parts_of_rows(const float* a, int64_t lda, int64_t rows, int64_t k, std::byte* out) {
  split_part_rows(a, lda, rows, k, out);
}

void parts_of_panel(PanelFormat format, const void* b, int64_t k, std::byte* out) {
  const auto* halves = static_cast<const uint16_t*>(b);
  format == PanelFormat::kFloat16 ? split_panel(halves, k, out) : pair_panel(halves, k, out);
}

void parts_product(const PartsProduct& p) {
  p.format == PanelFormat::kFloat16 ? multiply<PanelFormat::kFloat16>(p)
                                    : multiply<PanelFormat::kBfloat16>(p);
}

TOMBOLO_PARTS void parts_add(const float* some, int64_t rows, float* sums) {
  for (int64_t i = 0; i < rows * kPartsWidth; i += 16)
    _mm512_store_ps(sums + i, _mm512_add_ps(_mm512_load_ps(sums + i), _mm512_load_ps(some + i)));
}

TOMBOLO_PARTS bool parts_finite(const float* sums, int64_t rows) {
  // Zero times a number that is not finite is NaN.
  __m512 seen = _mm512_setzero_ps();
  for (int64_t i = 0; i < rows * kPartsWidth; i += 16)
    seen = _mm512_fmadd_ps(_mm512_setzero_ps(), _mm512_load_ps(sums + i), seen);
  return _mm512_cmp_ps_mask(seen, seen, _CMP_UNORD_Q) == 0;
}

}  // namespace tombolo

#else

namespace tombolo {
void parts_of_rows(const float*, int64_t, int64_t, int64_t, std::byte*) {}
void parts_of_panel(PanelFormat, const void*, int64_t, std::byte*) {}
void parts_product(const PartsProduct&) {}
void parts_add(const float*, int64_t, float*) {}
bool parts_finite(const float*, int64_t) { return true; }
}  // namespace tombolo

#endif
