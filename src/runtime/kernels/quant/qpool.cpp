#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/quant/qpool.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/quant/nearest-inl.h"
#include "runtime/kernels/quant/qpool.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F>;

template <typename T>
void greatest(const uint8_t* const* rows, int64_t n, int64_t count, uint8_t* y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    auto most = hn::LoadU(d, reinterpret_cast<const T*>(rows[0] + i));
    auto most1 = hn::LoadU(d, reinterpret_cast<const T*>(rows[0] + i + lanes));
    for (int64_t r = 1; r < n; ++r) {
      most = max_of(most, hn::LoadU(d, reinterpret_cast<const T*>(rows[r] + i)));
      most1 = max_of(most1, hn::LoadU(d, reinterpret_cast<const T*>(rows[r] + i + lanes)));
    }
    hn::StoreU(most, d, reinterpret_cast<T*>(y + i));
    hn::StoreU(most1, d, reinterpret_cast<T*>(y + i + lanes));
  }
  for (; i + lanes <= count; i += lanes) {
    auto most = hn::LoadU(d, reinterpret_cast<const T*>(rows[0] + i));
    for (int64_t r = 1; r < n; ++r)
      most = max_of(most, hn::LoadU(d, reinterpret_cast<const T*>(rows[r] + i)));
    hn::StoreU(most, d, reinterpret_cast<T*>(y + i));
  }
  if (i < count) {
    auto most = load_n(d, reinterpret_cast<const T*>(rows[0] + i), count - i);
    for (int64_t r = 1; r < n; ++r)
      most = max_of(most, load_n(d, reinterpret_cast<const T*>(rows[r] + i), count - i));
    store_n(most, d, reinterpret_cast<T*>(y + i), count - i);
  }
}

template <typename T>
HWY_INLINE hn::Vec<I32> wide(const uint8_t* x, int64_t left) {
  const hn::Rebind<T, I32> bytes;
  return hn::PromoteTo(I32(), load_n(bytes, reinterpret_cast<const T*>(x), left));
}

/// Sums of up to 255 bytes fit in 16 bits.
template <typename T>
void add(const uint8_t* const* rows, int64_t n, int64_t count, int32_t* HWY_RESTRICT sums) {
  const hn::ScalableTag<std::conditional_t<(T(-1) < T(0)), int16_t, uint16_t>> d16;
  const hn::Rebind<T, decltype(d16)> bytes;
  const I32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d16)), half = lanes / 2;
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int64_t first = 0; first < n; first += 255) {
      auto sum = hn::Zero(d16);
      for (int64_t r = first; r < std::min(n, first + 255); ++r)
        sum = hn::Add(
            sum, hn::PromoteTo(d16, hn::LoadU(bytes, reinterpret_cast<const T*>(rows[r] + i))));
      const hn::Half<decltype(d16)> narrow;
      hn::StoreU(hn::Add(hn::LoadU(d, sums + i), hn::PromoteTo(d, hn::LowerHalf(narrow, sum))), d,
                 sums + i);
      hn::StoreU(
          hn::Add(hn::LoadU(d, sums + i + half), hn::PromoteTo(d, hn::UpperHalf(narrow, sum))), d,
          sums + i + half);
    }
  for (; i < count; i += half)
    for (int64_t r = 0; r < n; ++r)
      store_n(hn::Add(load_n(d, sums + i, count - i), wide<T>(rows[r] + i, count - i)), d, sums + i,
              count - i);
}

/// Rounds between the limits of T.
template <typename T>
HWY_INLINE void put(hn::Vec<F> v, int32_t zero, uint8_t* y, int64_t left) {
  const F f;
  const I32 d;
  const hn::Rebind<T, I32> bytes;
  constexpr int kLeast = T(-1) < T(0) ? -128 : 0;
  const auto lo = hn::Set(f, static_cast<float>(kLeast - zero));
  const auto hi = hn::Set(f, static_cast<float>(kLeast + 255 - zero));
  // In this order a NaN becomes the least.
  const auto q = hn::Add(nearest(min_of(max_of(v, lo), hi)), hn::Set(d, zero));
  store_n(bytes_inside(bytes, q), bytes, reinterpret_cast<T*>(y), left);
}

template <typename T>
void round_all(const int32_t* sums, int64_t count, int32_t zero, float scale, int32_t y_zero,
               uint8_t* y) {
  const F f;
  const I32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += lanes) {
    const auto v = hn::Sub(load_n(d, sums + i, count - i), hn::Set(d, zero));
    put<T>(hn::Mul(hn::ConvertTo(f, v), hn::Set(f, scale)), y_zero, y + i, count - i);
  }
}

int64_t total(const uint8_t* x, int64_t count, bool is_signed) {
  const hn::ScalableTag<uint8_t> bytes;
  const hn::ScalableTag<uint64_t> wide;
  const auto lanes = static_cast<int64_t>(hn::Lanes(bytes));
  // Signed bytes become unsigned ones, 128 more.
  const auto flip = hn::Set(bytes, is_signed ? 0x80 : 0);
  auto sums = hn::Zero(wide);
  int64_t i = 0, rest = 0;
  for (; i + lanes <= count; i += lanes)
    sums = hn::Add(sums, hn::SumsOf8(hn::Xor(hn::LoadU(bytes, x + i), flip)));
  for (; i < count; ++i) rest += x[i] ^ (is_signed ? 0x80 : 0);
  rest += static_cast<int64_t>(hn::GetLane(hn::SumOfLanes(wide, sums)));
  return is_signed ? rest - 128 * count : rest;
}

enum class Joined { kSum, kSumOfOne, kProduct };

template <typename T, Joined kHow>
HWY_INLINE void combine(const uint8_t* a, const uint8_t* b, int64_t count, const ByteSum& s,
                        uint8_t* y) {
  const F f;
  const I32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto za = hn::Set(d, s.a_zero), zb = hn::Set(d, s.b_zero);
  const auto sa = hn::Set(f, s.a_scale), sb = hn::Set(f, s.b_scale);
  // What the zero points are in the sum, with the byte of b where it is one.
  const int32_t first = kHow == Joined::kSumOfOne ? static_cast<T>(b[0]) : 0;
  const auto base = hn::Set(
      f, static_cast<float>(static_cast<double>(first - s.b_zero) * static_cast<double>(s.b_scale) -
                            static_cast<double>(s.a_zero) * static_cast<double>(s.a_scale)));
  const auto sum = [&](int64_t i, int64_t left) HWY_ATTR {
    const auto x = wide<T>(a + i, left);
    if constexpr (kHow == Joined::kSumOfOne) return hn::MulAdd(hn::ConvertTo(f, x), sa, base);
    const auto z = wide<T>(b + i, left);
    if constexpr (kHow == Joined::kProduct)
      return hn::Mul(hn::Mul(hn::ConvertTo(f, hn::Sub(x, za)), hn::ConvertTo(f, hn::Sub(z, zb))),
                     sa);
    return hn::MulAdd(hn::ConvertTo(f, z), sb, hn::MulAdd(hn::ConvertTo(f, x), sa, base));
  };
  // What is below 32 bits becomes their least number, which narrowing limits.
  const hn::ScalableTag<T> bytes;
  const hn::ScalableTag<int16_t> d16;
  const auto zero = hn::Set(d16, static_cast<int16_t>(s.zero));
  const auto most = hn::Set(f, 32767.0f);
  const auto part = [&](int64_t i) HWY_ATTR { return nearest(min_of(most, sum(i, lanes))); };
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    const auto joined =
        join_bytes(bytes, part(i), part(i + lanes), part(i + 2 * lanes), part(i + 3 * lanes),
                   [&](auto v) HWY_ATTR { return hn::SaturatedAdd(v, zero); });
    hn::StoreU(joined, bytes, reinterpret_cast<T*>(y + i));
  }
  for (; i < count; i += lanes) put<T>(sum(i, count - i), s.zero, y + i, count - i);
}

template <typename T>
void sums(const uint8_t* a, const uint8_t* b, int64_t count, const ByteSum& s, uint8_t* y) {
  combine<T, Joined::kSum>(a, b, count, s, y);
}
template <typename T>
void sums_of_one(const uint8_t* a, const uint8_t* b, int64_t count, const ByteSum& s, uint8_t* y) {
  combine<T, Joined::kSumOfOne>(a, b, count, s, y);
}
template <typename T>
void products(const uint8_t* a, const uint8_t* b, int64_t count, const ByteSum& s, uint8_t* y) {
  combine<T, Joined::kProduct>(a, b, count, s, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void max_rows(const uint8_t* const* rows, int64_t n, int64_t count, bool is_signed, uint8_t* y) {
  using Fn = void(const uint8_t* const*, int64_t, int64_t, uint8_t*);
  (is_signed ? TOMBOLO_TARGET(Fn, greatest<int8_t>) : TOMBOLO_TARGET(Fn, greatest<uint8_t>))(
      rows, n, count, y);
}
int64_t sum_bytes(const uint8_t* x, int64_t count, bool is_signed) {
  return TOMBOLO_TARGET(int64_t(const uint8_t*, int64_t, bool), total)(x, count, is_signed);
}
void add_rows(const uint8_t* const* rows, int64_t n, int64_t count, bool is_signed, int32_t* sums) {
  using Fn = void(const uint8_t* const*, int64_t, int64_t, int32_t*);
  (is_signed ? TOMBOLO_TARGET(Fn, add<int8_t>) : TOMBOLO_TARGET(Fn, add<uint8_t>))(rows, n, count,
                                                                                   sums);
}
void round_sums(const int32_t* sums, int64_t count, int32_t zero, float scale, int32_t y_zero,
                bool is_signed, uint8_t* y) {
  using Fn = void(const int32_t*, int64_t, int32_t, float, int32_t, uint8_t*);
  (is_signed ? TOMBOLO_TARGET(Fn, round_all<int8_t>) : TOMBOLO_TARGET(Fn, round_all<uint8_t>))(
      sums, count, zero, scale, y_zero, y);
}
void add_one_byte(const uint8_t* a, uint8_t b, int64_t count, const ByteSum& sum, uint8_t* y) {
  using Fn = void(const uint8_t*, const uint8_t*, int64_t, const ByteSum&, uint8_t*);
  const auto fn = sum.is_signed ? TOMBOLO_TARGET(Fn, sums_of_one<int8_t>)
                                : TOMBOLO_TARGET(Fn, sums_of_one<uint8_t>);
  fn.get()(a, &b, count, sum, y);
}
void add_bytes(const uint8_t* a, const uint8_t* b, int64_t count, const ByteSum& sum, uint8_t* y) {
  using Fn = void(const uint8_t*, const uint8_t*, int64_t, const ByteSum&, uint8_t*);
  const auto fn = sum.product     ? sum.is_signed ? TOMBOLO_TARGET(Fn, products<int8_t>)
                                                  : TOMBOLO_TARGET(Fn, products<uint8_t>)
                      : sum.is_signed ? TOMBOLO_TARGET(Fn, sums<int8_t>)
                                  : TOMBOLO_TARGET(Fn, sums<uint8_t>);
  fn.get()(a, b, count, sum, y);
}

}  // namespace tombolo
#endif
