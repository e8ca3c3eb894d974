// The tile of byte products by pairs of 16-bit numbers, and what is done with the sums.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/quant/qgemm_tile.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/pair_products-inl.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/quant/nearest-inl.h"
#include "runtime/kernels/quant/qgemm.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using I32 = hn::ScalableTag<int32_t>;
using I16 = hn::ScalableTag<int16_t>;
using F = hn::ScalableTag<float>;
using VI = hn::Vec<I32>;

#if HWY_TARGET == HWY_AVX3
inline constexpr int kRows = 12;
#else
inline constexpr int kRows = 5;
#endif

template <int kR>
void pair_tile(const QTile& t) {
  const I32 d;
  const I16 h;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  VI acc[kR][2];
  if (t.add) {
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
      acc[r][0] = hn::LoadU(d, t.c + r * t.ldc);
      acc[r][1] = hn::LoadU(d, t.c + r * t.ldc + lanes);
    }
  } else {
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) acc[r][0] = acc[r][1] = hn::Zero(d);
  }
  const int64_t lda = t.lda;
  for (int64_t s = 0; s < t.stretches; ++s) {
    const std::byte* a = t.a + (t.offsets != nullptr ? t.offsets[s] : 0);
    const int16_t* b = reinterpret_cast<const int16_t*>(t.b + s * t.stretch_bytes);
    for (int64_t g = t.groups; g > 0; --g, a += 4, b += 4 * lanes) {
      const auto b0 = hn::LoadU(h, b), b1 = hn::LoadU(h, b + 2 * lanes);
#pragma GCC unroll 16
      for (int r = 0; r < kR; ++r) {
        int32_t group;
        __builtin_memcpy(&group, a + r * lda, 4);
        const auto av = hn::BitCast(h, hn::Set(d, group));
        acc[r][0] = hn::Add(acc[r][0], pair_products(av, b0));
        acc[r][1] = hn::Add(acc[r][1], pair_products(av, b1));
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
    hn::StoreU(acc[r][0], d, t.c + r * t.ldc);
    hn::StoreU(acc[r][1], d, t.c + r * t.ldc + lanes);
  }
}

template <int... kR>
void fill(QTiles& tiles, std::integer_sequence<int, kR...>) {
  ((tiles.unsigned_rows[kR + 1] = &pair_tile<kR + 1>), ...);
  ((tiles.signed_rows[kR + 1] = &pair_tile<kR + 1>), ...);
}

QTiles make_pair_tiles() {
  QTiles tiles{.max_rows = kRows,
               .panel = 2 * static_cast<int>(hn::Lanes(I32())),
               .group = 2,
               .element = 2,
               .name = "pairs"};
  fill(tiles, std::make_integer_sequence<int, kRows>());
#if HWY_TARGET == HWY_AVX2
  return with_ends(tiles);
#else
  return tiles;
#endif
}

/// Bytes of the low eight bits of each lane, which hold them already.
HWY_INLINE void store_bytes(VI v, std::byte* to, int64_t left) {
  const I32 d;
  const hn::Rebind<uint8_t, I32> bytes;
#if HWY_TARGET == HWY_AVX3
  store_n(hn::Vec<decltype(bytes)>{_mm512_cvtepi32_epi8(v.raw)}, bytes,
          reinterpret_cast<uint8_t*>(to), left);
#else
  store_n(hn::DemoteTo(bytes, hn::And(v, hn::Set(d, 255))), bytes, reinterpret_cast<uint8_t*>(to),
          left);
#endif
}

HWY_INLINE VI load_bytes(const std::byte* from, bool is_signed, int64_t left) {
  const I32 d;
  const hn::Rebind<uint8_t, I32> bytes;
  const hn::Rebind<int8_t, I32> signed_bytes;
  if (is_signed)
    return hn::PromoteTo(d, load_n(signed_bytes, reinterpret_cast<const int8_t*>(from), left));
  return hn::PromoteTo(d, load_n(bytes, reinterpret_cast<const uint8_t*>(from), left));
}

/// Limits first, so that what is rounded fits; no fused products, so that the instruction set makes
/// no difference.
HWY_INLINE VI round_between(hn::Vec<F> x, hn::Vec<F> lo, hn::Vec<F> hi) {
  return nearest(min_of(hi, max_of(lo, x)));
}

/// Results of bytes whose scales belong to columns: what layers with channels last are. Two vectors
/// of columns and two rows at a time; narrowing limits what 32 bits hold.
template <bool kRest, bool kRowSum>
void finish_columns(const QFinish& f, const int32_t* sums, int64_t ldc, int64_t row, int64_t rows,
                    int64_t column, int64_t columns) {
  const I32 d;
  const I16 h;
  const F ff;
  const hn::ScalableTag<uint8_t> u8;
  const hn::ScalableTag<int8_t> i8;
  const hn::Half<decltype(u8)> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int32_t origin = kRest ? f.zero_point2 : f.zero_point;
  const int32_t low = kRest ? f.least2 : f.least, high = kRest ? f.greatest2 : f.greatest;
  const bool is_signed = low < 0;
  const auto real = [&](int32_t x) HWY_ATTR { return hn::Set(ff, static_cast<float>(x)); };
  const auto hi = real(high - origin);
  // Not read again in the loop, which writes bytes that could be anything.
  const auto own_lo = real(f.least - f.zero_point), own_hi = real(f.greatest - f.zero_point);
  const auto own_scale = hn::Set(ff, f.own), rest_scale = hn::Set(ff, f.other);
  const VI rest_zero = hn::Set(d, f.rest_zero);
  const bool rest_signed = f.rest_signed;
  const int64_t ldo = f.ldo;
  const auto zero = hn::Set(h, static_cast<int16_t>(origin));
  const auto least = hn::Set(i8, static_cast<int8_t>(low));
  const auto greatest = hn::Set(i8, static_cast<int8_t>(high));
  for (int64_t c = 0; c < columns; c += 2 * lanes) {
    const int64_t left = columns - c, at = column + c;
    const auto adds = [&](int64_t i) HWY_ATTR {
      return f.column_add != nullptr ? load_n(d, f.column_add + at + i, left - i) : hn::Zero(d);
    };
    const auto scales = [&](int64_t i) HWY_ATTR {
      const auto scale = hn::Set(ff, f.scale);
      return f.column_scale != nullptr
                 ? hn::Mul(scale, load_n(ff, f.column_scale + at + i, left - i))
                 : scale;
    };
    const VI add0 = adds(0), add1 = adds(lanes);
    const auto zeros = [&](int64_t i) HWY_ATTR {
      return kRowSum ? load_n(d, f.zero + at + i, left - i) : hn::Zero(d);
    };
    const VI zero0 = zeros(0), zero1 = zeros(lanes);
    const auto scale0 = scales(0), scale1 = scales(lanes);
    const auto number = [&](const int32_t* from, int64_t at_row, VI add, VI times, hn::Vec<F> scale,
                            const std::byte* more, int64_t count) HWY_ATTR
        __attribute__((always_inline)) {
      VI sum = hn::Add(hn::LoadU(d, from), add);
      if constexpr (kRowSum)
        sum = hn::Sub(sum, hn::Mul(hn::Set(d, f.row_sum[row + at_row]), times));
      auto x = hn::Mul(hn::ConvertTo(ff, sum), scale);
      if constexpr (kRest) {
        const auto first = hn::Round(min_of(own_hi, max_of(own_lo, x)));
        const VI other = hn::Sub(load_bytes(more, rest_signed, count), rest_zero);
        x = hn::Add(hn::Mul(first, own_scale), hn::Mul(hn::ConvertTo(ff, other), rest_scale));
      }
      // What is below 32 bits becomes their least number.
      return nearest(min_of(hi, x));
    };
    const auto one = [&](const int32_t* from, int64_t r, const std::byte* more) HWY_ATTR
        __attribute__((always_inline)) {
      return number(from, r, add0, zero0, scale0, more, left);
    };
    const auto two = [&](const int32_t* from, int64_t r, const std::byte* more) HWY_ATTR
        __attribute__((always_inline)) {
      return number(from + lanes, r, add1, zero1, scale1, kRest ? more + lanes : nullptr,
                    left - lanes);
    };
    const auto offset = [&](auto v) HWY_ATTR { return hn::SaturatedAdd(v, zero); };
    const int32_t* from = sums + c;
    auto* to = static_cast<uint8_t*>(f.out) + row * ldo + at;
    const std::byte* rest = kRest ? f.rest + row * ldo + at : nullptr;
    for (int64_t r = 0; r < rows; r += 2, from += 2 * ldc, to += 2 * ldo) {
      const bool both = r + 1 < rows;
      const VI a = one(from, r, rest), b = two(from, r, rest);
      const std::byte* next = kRest && both ? rest + ldo : rest;
      const VI e = both ? one(from + ldc, r + 1, next) : a;
      const VI g = both ? two(from + ldc, r + 1, next) : b;
      auto bytes = hn::Zero(u8);
      if (is_signed) {
        const auto joined = join_bytes(i8, a, b, e, g, offset);
        bytes = hn::BitCast(u8, max_of(min_of(joined, greatest), least));
      } else {
        const auto joined = join_bytes(u8, a, b, e, g, offset);
        bytes = max_of(min_of(joined, hn::BitCast(u8, greatest)), hn::BitCast(u8, least));
      }
      store_n(hn::LowerHalf(half, bytes), half, to, left);
      if (both) store_n(hn::UpperHalf(half, bytes), half, to + ldo, left);
      if constexpr (kRest) rest += 2 * ldo;
    }
  }
}

/// Floats whose scales belong to columns: products of dynamic quantisation.
template <bool kRowSum>
HWY_INLINE void finish_floats(const QFinish& f, const int32_t* sums, int64_t ldc, int64_t row,
                              int64_t rows, int64_t column, int64_t columns) {
  const I32 d;
  const F ff;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t c = 0; c < columns; c += lanes) {
    const int64_t left = columns - c, at = column + c;
    const VI add = f.column_add != nullptr ? load_n(d, f.column_add + at, left) : hn::Zero(d);
    const VI zero = kRowSum ? load_n(d, f.zero + at, left) : hn::Zero(d);
    const auto scale = f.column_scale != nullptr
                           ? hn::Mul(hn::Set(ff, f.scale), load_n(ff, f.column_scale + at, left))
                           : hn::Set(ff, f.scale);
    const auto bias =
        f.column_bias != nullptr ? load_n(ff, f.column_bias + at, left) : hn::Zero(ff);
    const bool biased = f.column_bias != nullptr;  // -0 + 0 would be 0
    const int32_t* from = sums + c;
    float* to = static_cast<float*>(f.out) + row * f.ldo + at;
    for (int64_t r = 0; r < rows; ++r, from += ldc, to += f.ldo) {
      VI v = hn::Add(hn::LoadU(d, from), add);
      if constexpr (kRowSum) v = hn::Sub(v, hn::Mul(hn::Set(d, f.row_sum[row + r]), zero));
      auto x = hn::Mul(hn::ConvertTo(ff, v), scale);
      if (biased) x = hn::Add(x, bias);
      store_n(x, ff, to, left);
    }
  }
}

void finish(const QFinish& f, const int32_t* sums, int64_t ldc, int64_t row, int64_t rows,
            int64_t column, int64_t columns) {
  const I32 d;
  const F ff;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // Sums of tiles lie in whole vectors: more of them than columns may be read.
  if (f.kind == QFinish::Kind::kByte && f.row_add == nullptr && f.row_scale == nullptr) {
    const bool rest = f.rest != nullptr, row_sum = f.row_sum != nullptr;
    const auto columns_of = rest
                                ? row_sum ? finish_columns<true, true> : finish_columns<true, false>
                            : row_sum ? finish_columns<false, true>
                                      : finish_columns<false, false>;
    return columns_of(f, sums, ldc, row, rows, column, columns);
  }
  if (f.kind == QFinish::Kind::kFloat && f.row_add == nullptr && f.row_scale == nullptr)
    return f.row_sum != nullptr ? finish_floats<true>(f, sums, ldc, row, rows, column, columns)
                                : finish_floats<false>(f, sums, ldc, row, rows, column, columns);
  for (int64_t r = 0; r < rows; ++r) {
    const VI row_add = hn::Set(d, f.row_add != nullptr ? f.row_add[row + r] : 0);
    const VI row_sum = hn::Set(d, f.row_sum != nullptr ? f.row_sum[row + r] : 0);
    const auto scale =
        hn::Set(ff, f.scale * (f.row_scale != nullptr ? f.row_scale[row + r] : 1.0f));
    for (int64_t c = 0; c < columns; c += lanes) {
      const int64_t left = columns - c, at = column + c;
      VI v = hn::Add(load_n(d, sums + r * ldc + c, left), row_add);
      if (f.column_add != nullptr) v = hn::Add(v, load_n(d, f.column_add + at, left));
      if (f.row_sum != nullptr) v = hn::Sub(v, hn::Mul(row_sum, load_n(d, f.zero + at, left)));
      const int64_t to = (row + r) * f.ldo + at;
      if (f.kind == QFinish::Kind::kInt32) {
        store_n(v, d, static_cast<int32_t*>(f.out) + to, left);
        continue;
      }
      auto x = hn::Mul(hn::ConvertTo(ff, v), scale);
      if (f.column_scale != nullptr) x = hn::Mul(x, load_n(ff, f.column_scale + at, left));
      if (f.kind == QFinish::Kind::kFloat) {
        if (f.column_bias != nullptr) x = hn::Add(x, load_n(ff, f.column_bias + at, left));
        store_n(x, ff, static_cast<float*>(f.out) + to, left);
        continue;
      }
      const auto lo = hn::Set(ff, static_cast<float>(f.least - f.zero_point));
      const auto hi = hn::Set(ff, static_cast<float>(f.greatest - f.zero_point));
      const VI q = hn::Add(round_between(x, lo, hi), hn::Set(d, f.zero_point));
      store_bytes(q, static_cast<std::byte*>(f.out) + to, left);
    }
  }
}

/// The sum of n bytes, of which `mask` is turned first.
int64_t sum_bytes(const uint8_t* x, int64_t n, uint8_t mask) {
  const hn::ScalableTag<uint8_t> d;
  const hn::Repartition<uint64_t, decltype(d)> wide;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto turned = hn::Set(d, mask);
  auto sums = hn::Zero(wide);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    sums = hn::Add(sums, hn::SumsOf8(hn::Xor(hn::LoadU(d, x + i), turned)));
  auto sum = static_cast<int64_t>(hn::GetLane(hn::SumOfLanes(wide, sums)));
  for (; i < n; ++i) sum += static_cast<uint8_t>(x[i] ^ mask);
  return sum;
}

/// sums[i] = the sum of row i as sum_bytes gives it, less `less`.
void sum_rows(const uint8_t* x, int64_t ldx, int64_t m, int64_t k, uint8_t mask, int64_t less,
              int32_t* sums) {
  const hn::ScalableTag<uint8_t> d;
  const hn::Repartition<uint64_t, decltype(d)> wide;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = k / lanes * lanes;
  const auto turned = hn::Set(d, mask);
  for (int64_t r = 0; r < m; ++r, x += ldx) {
    auto sum = hn::Zero(wide);
    int64_t i = 0;
    for (; i < whole; i += lanes)
      sum = hn::Add(sum, hn::SumsOf8(hn::Xor(hn::LoadU(d, x + i), turned)));
    if (i < k) {
      const auto inside = hn::FirstN(d, static_cast<size_t>(k - i));
      const auto last = hn::Xor(load_n(d, x + i, k - i), turned);
      sum = hn::Add(sum, hn::SumsOf8(hn::IfThenElseZero(inside, last)));
    }
    sums[r] =
        static_cast<int32_t>(static_cast<int64_t>(hn::GetLane(hn::SumOfLanes(wide, sum))) - less);
  }
}

/// Sixteen columns of four rows of bytes to [column][4]. Gives pairs of rows, as they lie in there.
using ByteRow = hn::CappedTag<uint8_t, 16>;
struct RowPairs {
  hn::Vec<hn::RepartitionToWide<ByteRow>> low01, low23, high01, high23;
};
HWY_INLINE RowPairs store_words(hn::Vec<ByteRow> r0, hn::Vec<ByteRow> r1, hn::Vec<ByteRow> r2,
                                hn::Vec<ByteRow> r3, uint8_t* to) {
  const ByteRow d;
  const hn::RepartitionToWide<ByteRow> w;
  const RowPairs p{hn::BitCast(w, hn::InterleaveLower(d, r0, r1)),
                   hn::BitCast(w, hn::InterleaveLower(d, r2, r3)),
                   hn::BitCast(w, hn::InterleaveUpper(d, r0, r1)),
                   hn::BitCast(w, hn::InterleaveUpper(d, r2, r3))};
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(w, p.low01, p.low23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(w, p.low01, p.low23)), d, to + 16);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(w, p.high01, p.high23)), d, to + 32);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(w, p.high01, p.high23)), d, to + 48);
  return p;
}

/// As q_pack_words.
int64_t pack_words(const uint8_t* x, int64_t row, int64_t run, int64_t columns, int64_t width,
                   uint8_t mask, std::byte* out, int32_t* sums) {
  const ByteRow d;
  const hn::RepartitionToWide<decltype(d)> w;
  const hn::RepartitionToWide<decltype(w)> ww;
  using W = hn::Vec<decltype(w)>;
  constexpr int64_t kGroups = 64;  // of 4 bytes: their sum is a number of 16 bits
  const auto turned = hn::Set(d, mask);
  const auto sign = hn::Set(w, uint16_t{0x8080}), even = hn::Set(w, uint16_t{0xFF});
  const auto bytes_of_pairs = [&](W v) HWY_ATTR {
    v = hn::Xor(v, sign);
    return hn::Add(hn::And(v, even), hn::ShiftRight<8>(v));
  };
  uint8_t none[16];
  std::fill_n(none, 16, mask);
  const int64_t whole = columns / 16 * 16;
  for (int64_t c = 0; c < whole; c += 16) {
    auto* to = reinterpret_cast<uint8_t*>(out) + c * 4;
    for (int64_t first = 0; first < run; first += 4 * kGroups) {
      const int64_t last = std::min(run, first + 4 * kGroups);
      W low = hn::Zero(w), high = low;
      for (int64_t i = first; i < last; i += 4, to += width * 4) {
        const uint8_t* from = x + i * row + c;
        const auto load = [&](int64_t r) HWY_ATTR {
          return hn::Xor(hn::LoadU(d, i + r < last ? from + r * row : none), turned);
        };
        const RowPairs pairs = store_words(load(0), load(1), load(2), load(3), to);
        low = hn::Add(low, hn::Add(bytes_of_pairs(pairs.low01), bytes_of_pairs(pairs.low23)));
        high = hn::Add(high, hn::Add(bytes_of_pairs(pairs.high01), bytes_of_pairs(pairs.high23)));
      }
      // What each byte had more than its number.
      const auto more = hn::Set(ww, static_cast<uint32_t>((last - first + 3) / 4 * 4 * 128));
      const auto add = [&](auto v, int64_t at) HWY_ATTR {
        auto* sum = reinterpret_cast<uint32_t*>(sums) + c + at;
        hn::StoreU(hn::Add(hn::LoadU(ww, sum), hn::Sub(hn::PromoteTo(ww, v), more)), ww, sum);
      };
      const hn::Half<decltype(w)> half;
      add(hn::LowerHalf(half, low), 0);
      add(hn::UpperHalf(half, low), 4);
      add(hn::LowerHalf(half, high), 8);
      add(hn::UpperHalf(half, high), 12);
    }
  }
  return whole;
}

/// As q_pack_pairs.
void pack_pairs(const uint8_t* x, int64_t row, int64_t run, int64_t columns, int64_t width,
                uint8_t mask, std::byte* out, int32_t* sums) {
  const I32 d;
  const hn::Rebind<int8_t, I32> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto turned = hn::Set(bytes, static_cast<int8_t>(mask));
  for (int64_t c = 0; c < columns; c += lanes) {
    const int64_t left = columns - c;
    const auto load = [&](int64_t i) HWY_ATTR {
      const auto* const from = reinterpret_cast<const int8_t*>(x + i * row + c);
      return hn::PromoteTo(d, hn::Xor(load_n(bytes, from, left), turned));
    };
    VI sum = load_n(d, sums + c, left);
    auto* to = reinterpret_cast<int32_t*>(out) + c;
    for (int64_t i = 0; i < run; i += 2, to += width) {
      const VI first = load(i), second = i + 1 < run ? load(i + 1) : hn::Zero(d);
      sum = hn::Add(sum, hn::Add(first, second));
      store_n(hn::Or(hn::And(first, hn::Set(d, 0xFFFF)), hn::ShiftLeft<16>(second)), d, to, left);
    }
    store_n(sum, d, sums + c, left);
  }
}

/// Four rows of bytes to [column][4].
void interleave4(const uint8_t* rows, int64_t step, int64_t k, int64_t width, std::byte* out) {
  const ByteRow d;
  auto* to = reinterpret_cast<uint8_t*>(out);
  for (int64_t i = 0; i < k; i += 4)
    for (int64_t c = 0; c < width; c += 16, to += 64) {
      const uint8_t* from = rows + i * step + c;
      const auto zero = hn::Zero(d);
      const auto r0 = hn::LoadU(d, from);
      const auto r1 = i + 1 < k ? hn::LoadU(d, from + step) : zero;
      const auto r2 = i + 2 < k ? hn::LoadU(d, from + 2 * step) : zero;
      const auto r3 = i + 3 < k ? hn::LoadU(d, from + 3 * step) : zero;
      store_words(r0, r1, r2, r3, to);
    }
}

/// Two rows of bytes to [column][2] of 16 bits, unsigned.
void interleave2(const uint8_t* HWY_RESTRICT rows, int64_t step, int64_t k, int64_t width,
                 std::byte* out) {
  auto* HWY_RESTRICT to = reinterpret_cast<int16_t*>(out);
  for (int64_t i = 0; i < k; i += 2, to += 2 * width) {
    const uint8_t* r0 = rows + i * step;
    const uint8_t* r1 = i + 1 < k ? r0 + step : nullptr;
    for (int64_t c = 0; c < width; ++c) {
      to[2 * c] = r0[c];
      to[2 * c + 1] = r1 != nullptr ? r1[c] : 0;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

const QTiles& q_tiles() {
  if (has_avx_vnni()) {
    static const QTiles dots = make_avx_vnni_tiles();
    return dots;
  }
  if (has_arm_dot()) {
    static const QTiles dots = make_arm_dot_tiles();
    return dots;
  }
  if (!has_vnni()) return q_pair_tiles();
  static const QTiles vnni = make_vnni_tiles();
  return vnni;
}

const QTiles& q_pair_tiles() {
  if (has_vnni()) {
    static const QTiles vnni = make_vnni_pair_tiles();
    return vnni;
  }
  if (has_avx_vnni()) {
    static const QTiles dots = make_avx_vnni_pair_tiles();
    return dots;
  }
  static IsaTables<QTiles> pairs;
  return pairs.get(TOMBOLO_TARGET(QTiles(), make_pair_tiles));
}

void q_finish(const QFinish& f, const int32_t* sums, int64_t ldc, int64_t row, int64_t rows,
              int64_t column, int64_t columns) {
  using Fn = void(const QFinish&, const int32_t*, int64_t, int64_t, int64_t, int64_t, int64_t);
  TOMBOLO_TARGET(Fn, finish).get()(f, sums, ldc, row, rows, column, columns);
}

namespace {

/// Eight bytes at a time: for so few that the call of a vector function would cost more.
int64_t sum_few(const uint8_t* x, int64_t n, uint8_t mask) {
  constexpr uint64_t kEven = 0x00FF00FF00FF00FF, kOnes = 0x0001000100010001;
  const uint64_t turn = mask * uint64_t{0x0101010101010101};
  int64_t sum = 0, i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t word;
    std::memcpy(&word, x + i, 8);
    word ^= turn;
    sum += static_cast<int64_t>(((word & kEven) + (word >> 8 & kEven)) * kOnes >> 48);
  }
  for (; i < n; ++i) sum += static_cast<uint8_t>(x[i] ^ mask);
  return sum;
}

}  // namespace

int64_t q_sum_bytes(const uint8_t* x, int64_t n, uint8_t mask) {
  if (n < 128) return sum_few(x, n, mask);
  return TOMBOLO_TARGET(int64_t(const uint8_t*, int64_t, uint8_t), sum_bytes)(x, n, mask);
}

void q_row_sums(const uint8_t* x, int64_t ldx, int64_t m, int64_t k, bool flip, bool is_signed,
                int32_t* sums) {
  using Fn = void(const uint8_t*, int64_t, int64_t, int64_t, uint8_t, int64_t, int32_t*);
  const auto row = TOMBOLO_TARGET(Fn, sum_rows);
  // A signed byte is the unsigned one with its first bit turned, less 128.
  const uint8_t mask = flip != is_signed ? 0x80 : 0;
  const int64_t less = is_signed ? 128 * k : 0;
  parallel(m, std::max<int64_t>(1, 262144 / std::max<int64_t>(1, k)),
           [&](int64_t begin, int64_t end) {
             row.get()(x + begin * ldx, ldx, end - begin, k, mask, less, sums + begin);
           });
}

int64_t q_pack_words(const uint8_t* x, int64_t row, int64_t run, int64_t columns, int64_t width,
                     uint8_t mask, std::byte* out, int32_t* sums) {
  using Fn =
      int64_t(const uint8_t*, int64_t, int64_t, int64_t, int64_t, uint8_t, std::byte*, int32_t*);
  return TOMBOLO_TARGET(Fn, pack_words)(x, row, run, columns, width, mask, out, sums);
}

void q_pack_pairs(const uint8_t* x, int64_t row, int64_t run, int64_t columns, int64_t width,
                  uint8_t mask, std::byte* out, int32_t* sums) {
  using Fn =
      void(const uint8_t*, int64_t, int64_t, int64_t, int64_t, uint8_t, std::byte*, int32_t*);
  TOMBOLO_TARGET(Fn, pack_pairs)(x, row, run, columns, width, mask, out, sums);
}

void q_interleave(const uint8_t* rows, int64_t step, int64_t k, bool is_signed, std::byte* out) {
  using Fn = void(const uint8_t*, int64_t, int64_t, int64_t, std::byte*);
  const QTiles& tiles = q_tiles();
  (void)is_signed;  // only unsigned images are interleaved
  (tiles.element == 1 ? TOMBOLO_TARGET(Fn, interleave4) : TOMBOLO_TARGET(Fn, interleave2))
      .get()(rows, step, k, tiles.panel, out);
}

}  // namespace tombolo
#endif
