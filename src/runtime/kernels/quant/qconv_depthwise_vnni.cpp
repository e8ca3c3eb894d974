// Depthwise products of bytes with channels last and VNNI: four taps of a channel lie side by side
// after two rounds of interleaving, and one instruction sums them. What is left of 64 channels and
// fills half of them at most takes two pixels at a time.

#include "runtime/kernels/quant/qconv_last.h"

#if defined(__x86_64__)
#include <algorithm>

#include "runtime/kernels/vnni.h"

namespace tombolo {
namespace {

constexpr int64_t kWide = 64, kHalf = 32;

/// Interleaving leaves vector v, of four, the channels 4 v to 4 v + 3 of each sixteen.
int64_t place_in(int64_t channel, int64_t width) {
  return channel % 16 / 4 * (width / 4) + channel / 16 * 4 + channel % 4;
}
int64_t width_of(int64_t channels, int64_t block) {
  return channels - block <= kHalf ? kHalf : kWide;
}

TOMBOLO_VNNI inline __m512i load_ints(const void* p, bool half) {
  return half ? _mm512_broadcast_i64x4(_mm256_loadu_si256(static_cast<const __m256i*>(p)))
              : _mm512_loadu_si512(p);
}

/// What is the same for all pixels.
struct Block {
  __m512i add[4];
  __m512 scale[4];
  __mmask64 channels;  ///< of the loaded vector: in each half, where it holds two pixels
  int64_t rows;        ///< bytes of the weights of four taps
};

template <bool kHalves>
TOMBOLO_VNNI inline __m512i load(const uint8_t* p, int64_t step, const Block& b, bool second) {
  if constexpr (kHalves) {
    const auto some = static_cast<__mmask32>(b.channels);
    const __m256i one = _mm256_maskz_loadu_epi8(some, p);
    const __m256i two = second ? _mm256_maskz_loadu_epi8(some, p + step) : one;
    return _mm512_inserti64x4(_mm512_castsi256_si512(one), two, 1);
  } else {
    return _mm512_maskz_loadu_epi8(b.channels, p);
  }
}

/// Adds kTaps taps, four at most, of some pixels.
template <bool kHalves, int kP, int kTaps>
TOMBOLO_VNNI inline void add_taps(const QDepthwise& job, const Block& block, int64_t t,
                                  int64_t first, bool second, const std::byte* w,
                                  __m512i (&sum)[kP][4]) {
  constexpr int64_t kEach = kHalves ? 2 : 1;
  const int64_t step = job.step;
  const __m512i zero = _mm512_setzero_si512();
  const __m512i w0 = load_ints(w, kHalves), w1 = load_ints(w + block.rows / 4, kHalves),
                w2 = load_ints(w + block.rows / 2, kHalves),
                w3 = load_ints(w + block.rows / 4 * 3, kHalves);
#pragma GCC unroll 4
  for (int p = 0; p < kP; ++p) {
    const int64_t at = (first + p * kEach) * step;
    const bool both = second || p + 1 < kP;
    const auto tap = [&](int i)
        __attribute__((always_inline, target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni"))) {
      return i < kTaps ? load<kHalves>(job.taps[t + i] + at, step, block, both)
                       : _mm512_setzero_si512();
    };
    const __m512i a = tap(0), b = tap(1);
    const __m512i ab0 = _mm512_unpacklo_epi8(a, b), ab1 = _mm512_unpackhi_epi8(a, b);
    __m512i cd0 = zero, cd1 = zero;
    if constexpr (kTaps > 2) {
      const __m512i c = tap(2), d = tap(3);
      cd0 = _mm512_unpacklo_epi8(c, d);
      cd1 = _mm512_unpackhi_epi8(c, d);
    }
    sum[p][0] = _mm512_dpbusd_epi32(sum[p][0], _mm512_unpacklo_epi16(ab0, cd0), w0);
    sum[p][1] = _mm512_dpbusd_epi32(sum[p][1], _mm512_unpackhi_epi16(ab0, cd0), w1);
    sum[p][2] = _mm512_dpbusd_epi32(sum[p][2], _mm512_unpacklo_epi16(ab1, cd1), w2);
    sum[p][3] = _mm512_dpbusd_epi32(sum[p][3], _mm512_unpackhi_epi16(ab1, cd1), w3);
  }
}

/// Two vectors of results as numbers of 16 bits around the zero point.
TOMBOLO_VNNI inline __m512i narrow(__m512i a, __m512i b, __m512i origin, __m512i low) {
  return _mm512_max_epi16(_mm512_adds_epi16(_mm512_packs_epi32(a, b), origin), low);
}

/// Sums of some pixels (pairs of them with kHalves, of which the last may lack its second).
template <bool kHalves, int kP>
TOMBOLO_VNNI inline void some_pixels(const QDepthwise& job, const Block& block, int64_t first,
                                     bool second) {
  constexpr int64_t kEach = kHalves ? 2 : 1;
  const std::byte* w = job.weights;
  __m512i sum[kP][4];
#pragma GCC unroll 4
  for (int p = 0; p < kP; ++p)
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) sum[p][v] = block.add[v];
  int64_t t = 0;
  for (; t + 4 <= job.tap_count; t += 4, w += block.rows)
    add_taps<kHalves, kP, 4>(job, block, t, first, second, w, sum);
  if (job.tap_count - t == 1) add_taps<kHalves, kP, 1>(job, block, t, first, second, w, sum);
  if (job.tap_count - t == 2) add_taps<kHalves, kP, 2>(job, block, t, first, second, w, sum);
  if (job.tap_count - t == 3) add_taps<kHalves, kP, 3>(job, block, t, first, second, w, sum);
  // Limits before rounding where 32 bits would not hold the number, the rest in 16 bits.
  const __m512 high = _mm512_set1_ps(static_cast<float>(job.greatest - job.zero));
  const __m512i low = _mm512_set1_epi16(static_cast<int16_t>(job.least));
  const __m512i origin = _mm512_set1_epi16(static_cast<int16_t>(job.zero));
#pragma GCC unroll 4
  for (int p = 0; p < kP; ++p) {
    __m512i q[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      const __m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(sum[p][v]), block.scale[v]);
      q[v] = _mm512_cvtps_epi32(_mm512_min_ps(x, high));
    }
    const __m512i left = narrow(q[0], q[1], origin, low), right = narrow(q[2], q[3], origin, low);
    const __m512i bytes =
        job.least < 0 ? _mm512_packs_epi16(left, right) : _mm512_packus_epi16(left, right);
    std::byte* to = job.out + (first + p * kEach) * job.ldo;
    if constexpr (kHalves) {
      const auto some = static_cast<__mmask32>(block.channels);
      _mm256_mask_storeu_epi8(to, some, _mm512_castsi512_si256(bytes));
      if (second || p + 1 < kP)
        _mm256_mask_storeu_epi8(to + job.ldo, some, _mm512_extracti64x4_epi64(bytes, 1));
    } else {
      _mm512_mask_storeu_epi8(to, block.channels, bytes);
    }
  }
}

template <bool kHalves>
TOMBOLO_VNNI void pixels(QDepthwise job) {
  constexpr int64_t kEach = kHalves ? 2 : 1, kWidth = kHalves ? kHalf : kWide;
  const int64_t quads = (job.tap_count + 3) / 4, count = job.channels - job.channel;
  Block block;
  block.rows = kWidth * 4;
  job.weights += job.channel * quads * 4;
  for (int v = 0; v < 4; ++v) {
    const int64_t at = job.channel + v * (kWidth / 4);
    block.add[v] = load_ints(job.add + at, kHalves);
    block.scale[v] = _mm512_castsi512_ps(load_ints(job.scale + at, kHalves));
  }
  block.channels = count >= kWide ? ~__mmask64{0} : (__mmask64{1} << count) - 1;
  int64_t p = 0;
  for (; p + 4 * kEach <= job.pixels; p += 4 * kEach) some_pixels<kHalves, 4>(job, block, p, true);
  for (; p < job.pixels; p += kEach) some_pixels<kHalves, 1>(job, block, p, p + 1 < job.pixels);
}

}  // namespace

int64_t q_depthwise_vnni_place(int64_t channel, int64_t channels) {
  const int64_t block = channel / kWide * kWide;
  return block + place_in(channel - block, width_of(channels, block));
}

int64_t q_depthwise_vnni_block() { return kWide; }

size_t q_depthwise_vnni_bytes(int64_t channels, int64_t taps) {
  return static_cast<size_t>((channels + kWide - 1) / kWide * kWide * ((taps + 3) / 4) * 4);
}

/// [block][four taps][vector][channel of it][tap]
void q_depthwise_vnni_pack(const int8_t* w, int64_t channels, int64_t taps, std::byte* packed) {
  std::fill_n(packed, q_depthwise_vnni_bytes(channels, taps), std::byte{0});
  const int64_t quads = (taps + 3) / 4;
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t block = c / kWide * kWide, width = width_of(channels, block);
    for (int64_t t = 0; t < taps; ++t)
      packed[(block * quads + t / 4 * width + place_in(c - block, width)) * 4 + t % 4] =
          static_cast<std::byte>(w[c * taps + t]);
  }
}

void q_depthwise_vnni(const QDepthwise& job) {
  width_of(job.channels, job.channel) == kHalf ? pixels<true>(job) : pixels<false>(job);
}

}  // namespace tombolo

#else

namespace tombolo {
int64_t q_depthwise_vnni_place(int64_t channel, int64_t) { return channel; }
int64_t q_depthwise_vnni_block() { return 1; }
size_t q_depthwise_vnni_bytes(int64_t, int64_t) { return 0; }
void q_depthwise_vnni_pack(const int8_t*, int64_t, int64_t, std::byte*) {}
void q_depthwise_vnni(const QDepthwise&) {}
}  // namespace tombolo

#endif
