// Depthwise products of bytes with channels last: two taps at a time, as pairs of 16-bit numbers
// whose products are added in 32 bits. Interleaving leaves channels in another order in each block
// of 128 bits; weights and what is done to sums have that order, and narrowing the results undoes
// it. AVX2 takes 32 channels at a time, whose bytes are interleaved before they are widened: within
// blocks of 128 bits, which costs a third of widening across them.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/quant/qconv_depthwise.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstring>
#include <vector>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/pair_products-inl.h"
#include "runtime/kernels/quant/nearest-inl.h"
#include "runtime/kernels/quant/qconv_last.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using I16 = hn::ScalableTag<int16_t>;
using I32 = hn::ScalableTag<int32_t>;
using F = hn::ScalableTag<float>;
using V16 = hn::Vec<I16>;
using V32 = hn::Vec<I32>;

int64_t lanes16() { return static_cast<int64_t>(hn::Lanes(I16())); }

/// Channels that one call takes; of the last ones, parts of lanes16().
#if HWY_TARGET == HWY_AVX2
constexpr bool kWhole = true;
int64_t block() { return 32; }
#else
constexpr bool kWhole = false;
int64_t block() { return lanes16(); }
#endif
/// Whether the channel is one of 32 that are interleaved as bytes.
bool in_whole(int64_t channel, int64_t channels) {
  return kWhole && channel / 32 * 32 + 32 <= channels;
}
int64_t whole_place(int64_t c) { return c % 16 / 4 * 8 + c / 16 * 4 + c % 4; }

/// Channel that element e of pair vector `half` belongs to.
int64_t channel_at(int half, int64_t e) {
  constexpr int64_t kInBlock = 8;  // 16-bit elements of 128 bits
  return e / kInBlock * kInBlock + half * (kInBlock / 2) + e % kInBlock / 2;
}

/// [block][pair of taps][half][element]: the taps of a channel side by side.
void pack(const int16_t* w, int64_t channels, int64_t taps, std::byte* packed) {
  const int64_t lanes = lanes16(), tap_pairs = (taps + 1) / 2;
  auto* to = reinterpret_cast<int16_t*>(packed);
  const auto weight = [&](int64_t channel, int64_t tap) {
    return channel < channels && tap < taps ? w[channel * taps + tap] : int16_t{0};
  };
  for (int64_t c = 0; c < channels;) {
    if (in_whole(c, channels)) {
      for (int64_t p = 0; p < tap_pairs; ++p, to += 64)
        for (int64_t i = 0; i < 32; ++i)
          for (int64_t e = 0; e < 2; ++e) to[whole_place(i) * 2 + e] = weight(c + i, 2 * p + e);
      c += 32;
      continue;
    }
    for (int64_t p = 0; p < tap_pairs; ++p)
      for (int half = 0; half < 2; ++half)
        for (int64_t e = 0; e < lanes; ++e) *to++ = weight(c + channel_at(half, e), 2 * p + e % 2);
    c += lanes;
  }
}

template <typename T>
HWY_INLINE V16 load(const uint8_t* p, int64_t left) {
  const hn::Rebind<T, I16> bytes;
  const auto* const from = reinterpret_cast<const T*>(p);
  if (HWY_TARGET <= HWY_AVX3 || left >= lanes16())
    return hn::PromoteTo(I16(), load_n(bytes, from, left));
  return hn::PromoteTo(I16(), load_few(bytes, from, left));
}

/// Sums to 16-bit results between the limits, in the order of their channels again.
HWY_INLINE V16 results(const QDepthwise& job, V32 low, V32 high, const V32* add,
                       const hn::Vec<F>* scale) {
  const F f;
  const I32 d;
  const auto lo = hn::Set(f, static_cast<float>(job.least - job.zero));
  const auto hi = hn::Set(f, static_cast<float>(job.greatest - job.zero));
  const V32 zero = hn::Set(d, job.zero);
  const auto one = [&](V32 sum, int half) {
    const auto v = hn::Mul(hn::ConvertTo(f, hn::Add(sum, add[half])), scale[half]);
    return hn::Add(nearest(min_of(hi, max_of(lo, v))), zero);
  };
  const V32 a = one(low, 0), b = one(high, 1);
#if HWY_TARGET == HWY_AVX3
  return V16{_mm512_packs_epi32(a.raw, b.raw)};
#elif HWY_TARGET == HWY_AVX2
  return V16{_mm256_packs_epi32(a.raw, b.raw)};
#elif HWY_TARGET == HWY_SSE4
  return V16{_mm_packs_epi32(a.raw, b.raw)};
#else
  const I16 h;
  HWY_ALIGN int32_t wide[2][HWY_LANES(int32_t)];
  HWY_ALIGN int16_t narrow[HWY_LANES(int16_t)];
  hn::Store(a, d, wide[0]);
  hn::Store(b, d, wide[1]);
  for (size_t i = 0; i < hn::Lanes(h); ++i)
    narrow[i] = static_cast<int16_t>(wide[i % 8 / 4][i / 8 * 4 + i % 4]);
  return hn::Load(h, narrow);
#endif
}

HWY_INLINE void store_bytes(V16 v, std::byte* to, int64_t left) {
  const I16 h;
  const hn::Rebind<uint8_t, I16> bytes;
  store_n(hn::DemoteTo(bytes, hn::And(v, hn::Set(h, 255))), bytes, reinterpret_cast<uint8_t*>(to),
          left);
}

/// kP neighbours at a time share the weights.
template <typename T, int kP>
HWY_INLINE void some_pixels(const QDepthwise& job, int64_t first, const int16_t* weights,
                            int64_t left, const V32* add, const hn::Vec<F>* scale) {
  const I16 h;
  const I32 d;
  const int64_t lanes = lanes16();
  V32 low[kP], high[kP];
#pragma GCC unroll 4
  for (int p = 0; p < kP; ++p) low[p] = high[p] = hn::Zero(d);
  int64_t t = 0;
  for (; t + 1 < job.tap_count; t += 2, weights += 2 * lanes) {
    const V16 w0 = hn::LoadU(h, weights), w1 = hn::LoadU(h, weights + lanes);
    const uint8_t* a = job.taps[t] + first * job.step;
    const uint8_t* b = job.taps[t + 1] + first * job.step;
#pragma GCC unroll 4
    for (int p = 0; p < kP; ++p) {
      const V16 x = load<T>(a + p * job.step, left), y = load<T>(b + p * job.step, left);
      low[p] = hn::Add(low[p], pair_products(hn::InterleaveLower(h, x, y), w0));
      high[p] = hn::Add(high[p], pair_products(hn::InterleaveUpper(h, x, y), w1));
    }
  }
  if (t < job.tap_count) {
    const V16 w0 = hn::LoadU(h, weights), w1 = hn::LoadU(h, weights + lanes);
    const uint8_t* a = job.taps[t] + first * job.step;
#pragma GCC unroll 4
    for (int p = 0; p < kP; ++p) {
      const V16 x = load<T>(a + p * job.step, left), y = hn::Zero(h);
      low[p] = hn::Add(low[p], pair_products(hn::InterleaveLower(h, x, y), w0));
      high[p] = hn::Add(high[p], pair_products(hn::InterleaveUpper(h, x, y), w1));
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < kP; ++p)
    store_bytes(results(job, low[p], high[p], add, scale), job.out + (first + p) * job.ldo, left);
}

template <typename T>
void pixels(const QDepthwise& job) {
  const F f;
  const I32 d;
  const int64_t lanes = lanes16(), tap_pairs = (job.tap_count + 1) / 2;
  const auto* weights = reinterpret_cast<const int16_t*>(job.weights) + job.channel * tap_pairs * 2;
  const int64_t left = job.channels - job.channel;
  const int32_t* from = job.add + job.channel;
  const float* by = job.scale + job.channel;
  const V32 add[2] = {hn::LoadU(d, from), hn::LoadU(d, from + lanes / 2)};
  const hn::Vec<F> scale[2] = {hn::LoadU(f, by), hn::LoadU(f, by + lanes / 2)};
  int64_t p = 0;
  for (; p + 4 <= job.pixels; p += 4) some_pixels<T, 4>(job, p, weights, left, add, scale);
  for (; p < job.pixels; ++p) some_pixels<T, 1>(job, p, weights, left, add, scale);
}

#if HWY_TARGET == HWY_AVX2
/// One pair of taps of 32 channels as 16-bit numbers; signed bytes in the upper halves.
template <bool kSigned>
HWY_INLINE void interleave(const uint8_t* a, const uint8_t* b, __m256i (&x)[4]) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a));
  const __m256i second =
      b != nullptr ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b)) : zero;
  const __m256i low = _mm256_unpacklo_epi8(first, second);
  const __m256i high = _mm256_unpackhi_epi8(first, second);
  x[0] = kSigned ? _mm256_unpacklo_epi8(zero, low) : _mm256_unpacklo_epi8(low, zero);
  x[1] = kSigned ? _mm256_unpackhi_epi8(zero, low) : _mm256_unpackhi_epi8(low, zero);
  x[2] = kSigned ? _mm256_unpacklo_epi8(zero, high) : _mm256_unpacklo_epi8(high, zero);
  x[3] = kSigned ? _mm256_unpackhi_epi8(zero, high) : _mm256_unpackhi_epi8(high, zero);
}

/// 32 channels of one pixel: the sums of two would leave the registers. Sums of signed bytes are
/// 256 times what they should be, which 256 taps of nine bits leave room for.
template <bool kSigned>
HWY_INLINE void whole_pixel(const QDepthwise& job, int64_t pixel, const int16_t* weights) {
  __m256i sum[4];
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) sum[v] = _mm256_setzero_si256();
  const auto add_pair = [&](const uint8_t* a, const uint8_t* b) HWY_ATTR
      __attribute__((always_inline)) {
    __m256i x[4];
    interleave<kSigned>(a, b, x);
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v)
      sum[v] = _mm256_add_epi32(
          sum[v], _mm256_madd_epi16(x[v], _mm256_loadu_si256(
                                              reinterpret_cast<const __m256i*>(weights + 16 * v))));
  };
  const int64_t at = pixel * job.step;
  int64_t t = 0;
  for (; t + 1 < job.tap_count; t += 2, weights += 64)
    add_pair(job.taps[t] + at, job.taps[t + 1] + at);
  if (t < job.tap_count) add_pair(job.taps[t] + at, nullptr);
  const __m256 high = _mm256_set1_ps(static_cast<float>(job.greatest - job.zero));
  const __m256i zero = _mm256_set1_epi16(static_cast<int16_t>(job.zero));
  const __m256i least = _mm256_set1_epi8(static_cast<char>(job.least));
  const __m256i greatest = _mm256_set1_epi8(static_cast<char>(job.greatest));
  __m256i q[4];
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) {
    const int64_t channel = job.channel + 8 * v;
    const __m256i total = kSigned ? _mm256_srai_epi32(sum[v], 8) : sum[v];
    const __m256 x = _mm256_cvtepi32_ps(_mm256_add_epi32(
        total, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(job.add + channel))));
    q[v] = _mm256_cvtps_epi32(
        _mm256_min_ps(_mm256_mul_ps(x, _mm256_loadu_ps(job.scale + channel)), high));
  }
  const __m256i left = _mm256_adds_epi16(_mm256_packs_epi32(q[0], q[1]), zero);
  const __m256i right = _mm256_adds_epi16(_mm256_packs_epi32(q[2], q[3]), zero);
  const __m256i bytes =
      job.least < 0
          ? _mm256_max_epi8(_mm256_min_epi8(_mm256_packs_epi16(left, right), greatest), least)
          : _mm256_max_epu8(_mm256_min_epu8(_mm256_packus_epi16(left, right), greatest), least);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(job.out + pixel * job.ldo), bytes);
}

template <bool kSigned>
void whole(const QDepthwise& job) {
  const int64_t tap_pairs = (job.tap_count + 1) / 2;
  const auto* weights = reinterpret_cast<const int16_t*>(job.weights) + job.channel * tap_pairs * 2;
  for (int64_t p = 0; p < job.pixels; ++p) whole_pixel<kSigned>(job, p, weights);
}
#endif

/// The inverse of channel_at: halves lie one after the other, pairs of elements are a channel.
int64_t place(int64_t channel, int64_t channels) {
  if (in_whole(channel, channels)) return channel / 32 * 32 + whole_place(channel % 32);
  const int64_t lanes = lanes16(), base = channel / lanes * lanes, c = channel - base;
  const int64_t half = c % 8 / 4, at = c / 8 * 4 + c % 4;
  return base + half * (lanes / 2) + at;
}

void depthwise(const QDepthwise& job) {
#if HWY_TARGET == HWY_AVX2
  if (in_whole(job.channel, job.channels))
    return job.x_signed ? whole<true>(job) : whole<false>(job);
#endif
  QDepthwise part = job;
  const uint8_t* taps[256];
  for (int64_t c = 0; c < block() && job.channel + c < job.channels; c += lanes16()) {
    if (c > 0) {
      for (int64_t t = 0; t < job.tap_count; ++t) taps[t] = job.taps[t] + c;
      part.taps = taps;
    }
    part.channel = job.channel + c;
    part.out = job.out + c;
    job.x_signed ? pixels<int8_t>(part) : pixels<uint8_t>(part);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

int64_t q_depthwise_place(int64_t channel, int64_t channels, bool wide) {
  if (has_vnni() && !wide) return q_depthwise_vnni_place(channel, channels);
  return TOMBOLO_TARGET(int64_t(int64_t, int64_t), place)(channel, channels);
}

int64_t q_depthwise_block(bool wide) {
  if (has_vnni() && !wide) return q_depthwise_vnni_block();
  return TOMBOLO_TARGET(int64_t(), block)();
}

size_t q_depthwise_bytes(int64_t channels, int64_t taps, bool wide) {
  if (has_vnni() && !wide) return q_depthwise_vnni_bytes(channels, taps);
  const int64_t lanes = q_depthwise_block(wide);
  return static_cast<size_t>((channels + lanes - 1) / lanes * ((taps + 1) / 2) * 2 * lanes * 2);
}

void q_depthwise_pack(const int16_t* w, int64_t channels, int64_t taps, bool wide,
                      std::byte* packed) {
  if (has_vnni() && !wide) {
    const std::vector<int8_t> bytes(w, w + channels * taps);
    return q_depthwise_vnni_pack(bytes.data(), channels, taps, packed);
  }
  TOMBOLO_TARGET(void(const int16_t*, int64_t, int64_t, std::byte*), pack)
  (w, channels, taps, packed);
}

void q_depthwise(const QDepthwise& job, bool wide) {
  if (has_vnni() && !wide) return q_depthwise_vnni(job);
  TOMBOLO_TARGET(void(const QDepthwise&), depthwise).get()(job);
}

}  // namespace tombolo
#endif
