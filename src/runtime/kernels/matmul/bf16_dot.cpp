// What of bf16 products takes AVX512_BF16: rounding, packing, dot products, results.

#include "runtime/kernels/matmul/bf16.h"

#if defined(__x86_64__)
#include <array>
#include <cmath>
#include <utility>

#include "runtime/kernels/bf16_target.h"

namespace tombolo {
namespace {

/// A pair of A to all lanes, from memory: by way of a register it would take a port of the
/// products.
TOMBOLO_BF16 inline __m512bh broadcast(const std::byte* p) {
  float bits;
  __builtin_memcpy(&bits, p, 4);
  return (__m512bh)_mm512_set1_ps(bits);
}

template <int kR>
TOMBOLO_BF16 inline __attribute__((always_inline)) void add_up(const Bf16Dot& t,
                                                               __m512 (&sum)[kR][2]) {
  constexpr int64_t kAhead = 4096;
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) sum[r][0] = sum[r][1] = _mm512_setzero_ps();
  const std::byte* b = t.b;
  const int64_t lda = t.lda;
  for (int64_t s = 0; s < t.stretches; ++s) {
    const std::byte* a = t.a + t.offsets[s];
    for (int64_t i = 0; i < t.pairs; ++i, a += 4, b += 128) {
      _mm_prefetch(reinterpret_cast<const char*>(b + kAhead), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(b + kAhead + 64), _MM_HINT_T0);
      const auto left = (__m512bh)_mm512_loadu_si512(b);
      const auto right = (__m512bh)_mm512_loadu_si512(b + 64);
#pragma GCC unroll 16
      for (int r = 0; r < kR; ++r) {
        const __m512bh x = broadcast(a + r * lda);
        sum[r][0] = _mm512_dpbf16_ps(sum[r][0], x, left);
        sum[r][1] = _mm512_dpbf16_ps(sum[r][1], x, right);
      }
    }
  }
}

template <int kR>
TOMBOLO_BF16 void dot_rows(const Bf16Dot& t) {
  __m512 sum[kR][2];
  add_up<kR>(t, sum);
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
    _mm512_storeu_ps(t.sums + r * kBf16Panel, sum[r][0]);
    _mm512_storeu_ps(t.sums + r * kBf16Panel + 16, sum[r][1]);
  }
}

template <int kR, bool kResidual>
TOMBOLO_BF16 inline __attribute__((always_inline)) void store_block(const __m512 (&sum)[kR][2],
                                                                    int i, const Bf16Blocks& b,
                                                                    int64_t row, int64_t column) {
  const Activation& act = b.e.activation;
  const bool clamp = act.kind == Activation::Kind::kClamp;
  const __m512 low = _mm512_set1_ps(clamp ? act.alpha : -INFINITY);
  const __m512 high = _mm512_set1_ps(clamp ? act.beta : INFINITY);
  // -0 changes nothing.
  const float* const added = b.e.bias;
  const __m512 bias = added != nullptr ? _mm512_loadu_ps(added + column) : _mm512_set1_ps(-0.0f);
  const int64_t at = column / 16 * b.plane + row * 16;
  float* y = b.y + at;
  const float* residual = kResidual ? b.residual + at : nullptr;
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
    __m512 x = _mm512_add_ps(sum[r][i], bias);
    if constexpr (kResidual) x = _mm512_add_ps(x, _mm512_loadu_ps(residual + r * 16));
    // In this order a NaN stays.
    _mm512_storeu_ps(y + r * 16, _mm512_min_ps(high, _mm512_max_ps(low, x)));
  }
}

template <int kR>
TOMBOLO_BF16 void dot_blocks(const Bf16Dot& t, const Bf16Blocks& b, int64_t row, int64_t column,
                             int64_t columns) {
  __m512 sum[kR][2];
  add_up<kR>(t, sum);
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    if (16 * i >= columns) return;
    if (b.residual != nullptr)
      store_block<kR, true>(sum, i, b, row, column + 16 * i);
    else
      store_block<kR, false>(sum, i, b, row, column + 16 * i);
  }
}

template <int... kR>
constexpr auto all_rows(std::integer_sequence<int, kR...>) {
  return std::array<void (*)(const Bf16Dot&), sizeof...(kR)>{&dot_rows<kR + 1>...};
}
template <int... kR>
constexpr auto all_blocks(std::integer_sequence<int, kR...>) {
  using Fn = void(const Bf16Dot&, const Bf16Blocks&, int64_t, int64_t, int64_t);
  return std::array<Fn*, sizeof...(kR)>{&dot_blocks<kR + 1>...};
}

}  // namespace

void bf16_dot(const Bf16Dot& dot, int rows) {
  static constexpr auto kRows = all_rows(std::make_integer_sequence<int, kBf16DotRows>());
  kRows[static_cast<size_t>(rows - 1)](dot);
}

void bf16_dot_blocks(const Bf16Dot& dot, int rows, const Bf16Blocks& blocks, int64_t row,
                     int64_t column, int64_t columns) {
  static constexpr auto kRows = all_blocks(std::make_integer_sequence<int, kBf16DotRows>());
  kRows[static_cast<size_t>(rows - 1)](dot, blocks, row, column, columns);
}

TOMBOLO_BF16 void round_bf16(const float* x, int64_t n, std::byte* out) {
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const auto both = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + i + 16), _mm512_loadu_ps(x + i));
    _mm512_storeu_si512(out + 2 * i, (__m512i)both);
  }
  for (; i < n; i += 16) {
    const __mmask16 some = first_lanes(n - i);
    const auto half = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(some, x + i));
    _mm256_mask_storeu_epi16(out + 2 * i, some, (__m256i)half);
  }
}

TOMBOLO_BF16 void bf16_pair_rows(const float* rows, int64_t k, std::byte* out) {
  // Odd ones above even ones, column by column.
  alignas(64) uint16_t order[32];
  for (int i = 0; i < 16; ++i) {
    order[2 * i] = static_cast<uint16_t>(i);
    order[2 * i + 1] = static_cast<uint16_t>(16 + i);
  }
  const __m512i turns = _mm512_load_si512(order);
  for (int64_t i = 0; i < k; i += 2)
    for (int half = 0; half < 2; ++half, out += 64) {
      const float* even = rows + i * kBf16Panel + half * 16;
      const __m512 odd = i + 1 < k ? _mm512_loadu_ps(even + kBf16Panel) : _mm512_setzero_ps();
      const auto both = _mm512_cvtne2ps_pbh(odd, _mm512_loadu_ps(even));
      _mm512_storeu_si512(out, _mm512_permutexvar_epi16(turns, (__m512i)both));
    }
}

TOMBOLO_BF16 void bf16_pixels(const float* x, int64_t x_step, int64_t pixels, int64_t channels,
                              int64_t width, std::byte* out, int64_t step) {
  const __mmask16 some = first_lanes(channels), all = first_lanes(width);
  for (int64_t i = 0; i < pixels; ++i, x += x_step, out += step) {
    const auto half = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(some, x));
    _mm256_mask_storeu_epi16(out, all, (__m256i)half);
  }
}

TOMBOLO_BF16 void bf16_pixels_and_rest(const float* x, int64_t x_step, int64_t pixels,
                                       int64_t channels, int64_t width, std::byte* out,
                                       std::byte* rest, int64_t step) {
  const __mmask16 some = first_lanes(channels), all = first_lanes(width);
  const __m512 infinity = _mm512_set1_ps(INFINITY);
  for (int64_t i = 0; i < pixels; ++i, x += x_step, out += step, rest += step) {
    const __m512 number = _mm512_maskz_loadu_ps(some, x);
    const auto half = (__m256i)_mm512_cvtneps_pbh(number);
    const __m512 wide = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
    const __mmask16 finite = _mm512_cmp_ps_mask(_mm512_abs_ps(wide), infinity, _CMP_LT_OQ);
    const auto left = _mm512_cvtneps_pbh(_mm512_maskz_sub_ps(finite, number, wide));
    _mm256_mask_storeu_epi16(out, all, half);
    _mm256_mask_storeu_epi16(rest, all, (__m256i)left);
  }
}

TOMBOLO_BF16 void bf16_store(const GemmEpilogue& e, const float* sums, int64_t row, int64_t rows,
                             int64_t column, int64_t columns, float* c, int64_t ldc) {
  const __m512 lo = _mm512_set1_ps(e.lo), hi = _mm512_set1_ps(e.hi);
  for (int64_t at = 0; at < columns; at += 16) {
    const int64_t left = columns - at;
    const __mmask16 some = first_lanes(left);
    const __m512 bias = e.col_bias != nullptr
                            ? _mm512_maskz_loadu_ps(some, e.col_bias + column + at)
                            : _mm512_setzero_ps();
    for (int64_t r = 0; r < rows; ++r) {
      __m512 x = _mm512_load_ps(sums + r * kBf16Panel + at);
      if (e.row_bias != nullptr) x = _mm512_add_ps(x, _mm512_set1_ps(e.row_bias[row + r]));
      if (e.col_bias != nullptr) x = _mm512_add_ps(x, bias);
      if (e.init != nullptr)
        x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(some, e.init + (row + r) * e.ldi + column + at));
      // In this order a NaN stays.
      if (e.clamp) x = _mm512_min_ps(hi, _mm512_max_ps(lo, x));
      _mm512_mask_storeu_ps(c + r * ldc + at, some, x);
    }
  }
}

TOMBOLO_BF16 void bf16_store_block(const float* sums, int64_t rows, const float* bias,
                                   const float* residual, const Activation& activation, float* y) {
  const bool clamp = activation.kind == Activation::Kind::kClamp;
  const __m512 lo = _mm512_set1_ps(activation.alpha), hi = _mm512_set1_ps(activation.beta);
  const __m512 added = bias != nullptr ? _mm512_loadu_ps(bias) : _mm512_setzero_ps();
  for (int64_t r = 0; r < rows; ++r) {
    __m512 x = _mm512_load_ps(sums + r * kBf16Panel);
    if (bias != nullptr) x = _mm512_add_ps(x, added);
    if (residual != nullptr) x = _mm512_add_ps(x, _mm512_loadu_ps(residual + r * 16));
    if (clamp) x = _mm512_min_ps(hi, _mm512_max_ps(lo, x));
    _mm512_storeu_ps(y + r * 16, x);
  }
  if (!activation.tiled()) apply_activation(activation, y, rows * 16);
}

}  // namespace tombolo

#else

namespace tombolo {
void bf16_dot(const Bf16Dot&, int) {}
void bf16_dot_blocks(const Bf16Dot&, int, const Bf16Blocks&, int64_t, int64_t, int64_t) {}
void round_bf16(const float*, int64_t, std::byte*) {}
void bf16_pair_rows(const float*, int64_t, std::byte*) {}
void bf16_pixels(const float*, int64_t, int64_t, int64_t, int64_t, std::byte*, int64_t) {}
void bf16_pixels_and_rest(const float*, int64_t, int64_t, int64_t, int64_t, std::byte*, std::byte*,
                          int64_t) {}
void bf16_store(const GemmEpilogue&, const float*, int64_t, int64_t, int64_t, int64_t, float*,
                int64_t) {}
void bf16_store_block(const float*, int64_t, const float*, const float*, const Activation&,
                      float*) {}
}  // namespace tombolo

#endif
