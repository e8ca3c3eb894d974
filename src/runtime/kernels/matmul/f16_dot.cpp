// Products of scaled float16 (bf16.h) with AVX512_FP16: the places of elements are those of bf16.

#include "runtime/kernels/matmul/bf16.h"

#if defined(__x86_64__)
#include <algorithm>
#include <array>
#include <utility>

#include "runtime/kernels/intrinsics.h"

#define TOMBOLO_F16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512fp16")))
#define TOMBOLO_INLINE TOMBOLO_F16 inline __attribute__((always_inline))

namespace tombolo {
namespace {

/// A pair of A to all lanes, from memory.
TOMBOLO_INLINE __m512h broadcast(const std::byte* p) {
  float bits;
  __builtin_memcpy(&bits, p, 4);
  return _mm512_castps_ph(_mm512_set1_ps(bits));
}

/// Half of a vector of float16 as floats.
template <int kHalf>
TOMBOLO_INLINE __m512 widen(__m512i bits) {
  return _mm512_cvtxph_ps(_mm256_castsi256_ph(kHalf == 0 ? _mm512_castsi512_si256(bits)
                                                         : _mm512_extracti64x4_epi64(bits, 1)));
}

/// What float16 has summed up goes to floats: even and odd k together, columns of both vectors of
/// a row by turns.
template <int kR>
TOMBOLO_INLINE void flush(__m512h (&sum)[kR][2], float* totals, bool first, __m512 scale) {
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
    float* to = totals + r * kBf16Panel;
    const __m512i left = _mm512_castph_si512(sum[r][0]), right = _mm512_castph_si512(sum[r][1]);
    const __m512h low = _mm512_add_ph(sum[r][0], _mm512_castsi512_ph(_mm512_srli_epi32(left, 16)));
    const __m512h high =
        _mm512_add_ph(sum[r][1], _mm512_castsi512_ph(_mm512_slli_epi32(right, 16)));
    const __m512i both =
        _mm512_mask_blend_epi16(0xAAAAAAAA, _mm512_castph_si512(low), _mm512_castph_si512(high));
    const __m512 begin = widen<0>(both), end = widen<1>(both);
    _mm512_store_ps(to, first ? _mm512_mul_ps(begin, scale)
                              : _mm512_fmadd_ps(begin, scale, _mm512_load_ps(to)));
    _mm512_store_ps(to + 16, first ? _mm512_mul_ps(end, scale)
                                   : _mm512_fmadd_ps(end, scale, _mm512_load_ps(to + 16)));
    sum[r][0] = sum[r][1] = _mm512_setzero_ph();
  }
}

template <int kR>
TOMBOLO_F16 void dot_rows(const Bf16Dot& t) {
  constexpr int64_t kAhead = 4096;
  alignas(64) float totals[kR * kBf16Panel];
  const __m512 scale = _mm512_set1_ps(t.scale);
  __m512h sum[kR][2];
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) sum[r][0] = sum[r][1] = _mm512_setzero_ph();
  const std::byte* b = t.b;
  const std::byte* next = t.next != nullptr ? t.next : b + kAhead;
  const int64_t lda = t.lda, step = t.next != nullptr ? t.next_step : 128;
  bool first = true;
  int64_t summed = 0;
  for (int64_t s = 0; s < t.stretches; ++s) {
    const std::byte* a = t.a + t.offsets[s];
    for (int64_t left = t.pairs; left > 0;) {
      const int64_t part = std::min(left, t.summed - summed);
      for (int64_t i = 0; i < part; ++i, a += 4, b += 128, next += step) {
        _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T1);
        _mm_prefetch(reinterpret_cast<const char*>(b + 1024), _MM_HINT_T0);
        _mm_prefetch(reinterpret_cast<const char*>(b + 1088), _MM_HINT_T0);
        // A tile that is alone asks for all that it reads.
        if constexpr (kR <= 4) _mm_prefetch(reinterpret_cast<const char*>(next + 64), _MM_HINT_T1);
        const __m512h one = _mm512_loadu_ph(b), two = _mm512_loadu_ph(b + 64);
#pragma GCC unroll 16
        for (int r = 0; r < kR; ++r) {
          const __m512h x = broadcast(a + r * lda);
          sum[r][0] = _mm512_fmadd_ph(x, one, sum[r][0]);
          sum[r][1] = _mm512_fmadd_ph(x, two, sum[r][1]);
        }
      }
      left -= part;
      summed += part;
      if (summed == t.summed) {
        flush<kR>(sum, totals, first, scale);
        first = false;
        summed = 0;
      }
    }
  }
  if (summed > 0 || first) flush<kR>(sum, totals, first, scale);
  // The columns of one vector, then those of the other.
  alignas(64) static constexpr int32_t kEven[16] = {0,  2,  4,  6,  8,  10, 12, 14,
                                                    16, 18, 20, 22, 24, 26, 28, 30};
  const __m512i even = _mm512_load_si512(kEven);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  for (int r = 0; r < kR; ++r) {
    const float* from = totals + r * kBf16Panel;
    const __m512 begin = _mm512_load_ps(from), end = _mm512_load_ps(from + 16);
    _mm512_storeu_ps(t.sums + r * kBf16Panel, _mm512_permutex2var_ps(begin, even, end));
    _mm512_storeu_ps(t.sums + r * kBf16Panel + 16, _mm512_permutex2var_ps(begin, odd, end));
  }
}

template <int... kR>
constexpr auto all_rows(std::integer_sequence<int, kR...>) {
  return std::array<void (*)(const Bf16Dot&), sizeof...(kR)>{&dot_rows<kR + 1>...};
}

/// The largest of finite magnitudes, in four vectors that do not wait for one another.
class Largest {
 public:
  TOMBOLO_INLINE Largest() {
#pragma GCC unroll 4
    for (auto& m : most_) m = _mm512_setzero_ps();
  }
  TOMBOLO_INLINE void take(int j, __m512 x) {
    const __m512 infinity = _mm512_castsi512_ps(_mm512_set1_epi32(0x7F800000));
    const __m512 size = _mm512_abs_ps(x);
    most_[j] = _mm512_mask_max_ps(most_[j], _mm512_cmp_ps_mask(size, infinity, _CMP_LT_OQ),
                                  most_[j], size);
  }
  TOMBOLO_INLINE float get() const {
    return _mm512_reduce_max_ps(
        _mm512_max_ps(_mm512_max_ps(most_[0], most_[1]), _mm512_max_ps(most_[2], most_[3])));
  }

 private:
  __m512 most_[4];
};

/// Sixteen floats, as float16.
TOMBOLO_INLINE __m256i narrow(__m512 x, __m512 scale) {
  return _mm256_castph_si256(_mm512_cvtxps_ph(_mm512_mul_ps(x, scale)));
}

}  // namespace

void f16_dot(const Bf16Dot& dot, int rows) {
  static constexpr auto kRows = all_rows(std::make_integer_sequence<int, kBf16DotRows>());
  kRows[static_cast<size_t>(rows - 1)](dot);
}

TOMBOLO_F16 float largest_finite(const float* x, int64_t n) {
  Largest most;
  int64_t i = 0;
  for (; i + 64 <= n; i += 64)
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) most.take(j, _mm512_loadu_ps(x + i + 16 * j));
  for (; i < n; i += 16) most.take(0, _mm512_maskz_loadu_ps(first_lanes(n - i), x + i));
  return most.get();
}

TOMBOLO_F16 float largest_of_pixels(const float* x, int64_t x_step, int64_t pixels,
                                    int64_t channels, int64_t plane) {
  Largest most;
  for (int64_t c = 0; c < channels; c += 16, x += plane) {
    const __mmask16 some = first_lanes(channels - c);
    int64_t i = 0;
    for (; i + 4 <= pixels; i += 4)
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) most.take(j, _mm512_maskz_loadu_ps(some, x + (i + j) * x_step));
    for (; i < pixels; ++i) most.take(0, _mm512_maskz_loadu_ps(some, x + i * x_step));
  }
  return most.get();
}

TOMBOLO_F16 void round_f16(const float* x, int64_t n, float scale, std::byte* out) {
  const __m512 s = _mm512_set1_ps(scale);
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 some = first_lanes(n - i);
    _mm256_mask_storeu_epi16(out + 2 * i, some, narrow(_mm512_maskz_loadu_ps(some, x + i), s));
  }
}

TOMBOLO_F16 void f16_pair_rows(const float* rows, int64_t k, float scale, std::byte* out) {
  const __m512 s = _mm512_set1_ps(scale);
  for (int64_t i = 0; i < k; i += 2)
    for (int half = 0; half < 2; ++half, out += 64) {
      const float* even = rows + i * kBf16Panel + half * 16;
      const __m512 odd = i + 1 < k ? _mm512_loadu_ps(even + kBf16Panel) : _mm512_setzero_ps();
      const __m512i low = _mm512_cvtepu16_epi32(narrow(_mm512_loadu_ps(even), s));
      const __m512i high = _mm512_cvtepu16_epi32(narrow(odd, s));
      _mm512_storeu_si512(out, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
    }
}

TOMBOLO_F16 void f16_blocks(const float* x, int64_t plane, int64_t x_step, int64_t pixels,
                            int64_t channels, int64_t width, float scale, std::byte* out,
                            int64_t step) {
  const __m512 s = _mm512_set1_ps(scale);
  int64_t c = 0;
  // Two blocks make a line.
  for (; c + 32 <= channels; c += 32, x += 2 * plane) {
    std::byte* to = out + c * 2;
    for (int64_t i = 0; i < pixels; ++i, to += step) {
      const float* from = x + i * x_step;
      const __m256i low = narrow(_mm512_loadu_ps(from), s);
      const __m256i high = narrow(_mm512_loadu_ps(from + plane), s);
      _mm512_storeu_si512(to, _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
    }
  }
  for (; c < width; c += 16) {
    const __mmask16 some = first_lanes(std::max<int64_t>(channels - c, 0));
    const __mmask16 all = first_lanes(width - c);
    std::byte* to = out + c * 2;
    for (int64_t i = 0; i < pixels; ++i, to += step)
      _mm256_mask_storeu_epi16(to, all, narrow(_mm512_maskz_loadu_ps(some, x + i * x_step), s));
    // Behind the last channels there is nothing to read.
    if (c + 16 < channels) x += plane;
  }
}

}  // namespace tombolo

#else

namespace tombolo {
void f16_dot(const Bf16Dot&, int) {}
float largest_finite(const float*, int64_t) { return 0; }
float largest_of_pixels(const float*, int64_t, int64_t, int64_t, int64_t) { return 0; }
void round_f16(const float*, int64_t, float, std::byte*) {}
void f16_pair_rows(const float*, int64_t, float, std::byte*) {}
void f16_blocks(const float*, int64_t, int64_t, int64_t, int64_t, int64_t, float, std::byte*,
                int64_t) {}
}  // namespace tombolo

#endif
