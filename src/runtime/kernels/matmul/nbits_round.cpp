#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/matmul/nbits_round.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <limits>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/matmul/nbits_round.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Where the bytes of four words go: for the byte of the highest place first, those of the words 0,
/// 2, 1 and 3.
template <int kParts>
HWY_INLINE hn::Vec<hn::Full128<uint8_t>> order_of_bytes() {
  HWY_ALIGN constexpr uint8_t kThree[16] = {2, 10, 6, 14, 1, 9, 5, 13, 0, 8, 4, 12, 3, 11, 7, 15};
  HWY_ALIGN constexpr uint8_t kOne[16] = {0, 8, 4, 12, 1, 9, 5, 13, 2, 10, 6, 14, 3, 11, 7, 15};
  return hn::Load(hn::Full128<uint8_t>(), kParts == 3 ? kThree : kOne);
}

template <int kParts>
float round_parts(const float* x, int64_t n, int64_t block, std::byte* out, int64_t step,
                  int32_t* less) {
  const hn::ScalableTag<float> f;
  const hn::RebindToSigned<decltype(f)> integers;
  const hn::Full128<uint8_t> bytes;
  const hn::Full128<uint16_t> pairs;
  const hn::Full128<uint64_t> sums;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  constexpr float kSteps = kParts == 3 ? 127 * 65536 : 127;
  auto most = hn::Zero(f), odd = hn::Zero(f);
  for (int64_t i = 0; i < n; i += lanes) {
    const auto v = load_n(f, x + i, n - i);
    most = max_of(most, hn::Abs(v));
    if constexpr (kParts == 3) odd = hn::Add(odd, hn::Sub(v, v));  // zero, but for what is infinite
  }
  float greatest = hn::GetLane(hn::MaxOfLanes(f, most));
  if constexpr (kParts == 3) {
    greatest += hn::GetLane(hn::SumOfLanes(f, odd));
    if (greatest > 0 && greatest < 1e-30f) return std::numeric_limits<float>::infinity();
  }
  const float scale = greatest / kSteps;
  const auto inverse = hn::Set(f, scale > 0 ? (kParts == 3 ? kSteps / greatest : 1 / scale) : 0);
  // With 128 added to each place no place takes from the next: bytes of the sum are the signed
  // bytes, their highest bits turned.
  const auto middle = hn::Set(integers, kParts == 3 ? 0x808080 : 0x80);
  const auto order = order_of_bytes<kParts>(), sign = hn::Set(bytes, 0x80);
  auto high = hn::Zero(sums), low = hn::Zero(sums);
  for (int64_t i = 0; i < block; i += 16) {
    HWY_ALIGN int32_t words[16];
    for (int64_t j = 0; j < 16; j += lanes) {
      const auto scaled = hn::Mul(load_n(f, x + i + j, n - i - j), inverse);
      hn::Store(hn::Add(hn::NearestInt(scaled), middle), integers, words + j);
    }
    for (int64_t j = 0; j < 16; j += 8, out += step) {
      const auto four = [&](int64_t at) HWY_ATTR {
        const auto some = hn::Load(bytes, reinterpret_cast<const uint8_t*>(words + at));
        return hn::BitCast(pairs, hn::TableLookupBytes(some, order));
      };
      const auto first = four(j), second = four(j + 4);
      const auto upper = hn::BitCast(bytes, hn::InterleaveLower(pairs, first, second));
      auto* const to = reinterpret_cast<uint8_t*>(out);
      high = hn::Add(high, hn::SumsOf8(upper));
      if constexpr (kParts == 1) {
        hn::StoreU(hn::LowerHalf(hn::Xor(upper, sign)), hn::Half<decltype(bytes)>(), to);
      } else {
        const auto lower = hn::BitCast(bytes, hn::InterleaveUpper(pairs, first, second));
        low = hn::Add(low, hn::SumsOf8(lower));
        hn::StoreU(hn::Xor(upper, sign), bytes, to);
        hn::StoreU(hn::LowerHalf(hn::Xor(lower, sign)), hn::Half<decltype(bytes)>(), to + 16);
      }
    }
  }
  const auto less_of = [&](uint64_t sum) {
    return static_cast<int32_t>(128 * block - static_cast<int64_t>(sum));
  };
  less[0] = less_of(hn::GetLane(high));
  if constexpr (kParts == 3) {
    less[1] = less_of(hn::ExtractLane(high, 1));
    less[2] = less_of(hn::GetLane(low));
  }
  return scale;
}
float round_one(const float* x, int64_t n, int64_t block, std::byte* out, int64_t step,
                int32_t* less) {
  return round_parts<1>(x, n, block, out, step, less);
}
float round_three(const float* x, int64_t n, int64_t block, std::byte* out, int64_t step,
                  int32_t* less) {
  return round_parts<3>(x, n, block, out, step, less);
}

void add_parts(const float* sums, int64_t wide, int64_t rows, const float* bias, float* y,
               int64_t ldy, int64_t cols) {
  const hn::ScalableTag<float> f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  for (int64_t r = 0; r < rows; ++r, sums += 3 * wide, y += ldy)
    for (int64_t c = 0; c < cols; c += lanes) {
      const auto part = [&](int64_t i) HWY_ATTR { return hn::LoadU(f, sums + i * wide + c); };
      const auto all = hn::Add(part(0), hn::Add(part(1), part(2)));
      store_n(hn::Add(all, hn::LoadU(f, bias + c)), f, y + c, cols - c);
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

NbitsRoundFn* nbits_round(int64_t parts) {
  return parts == 1 ? TOMBOLO_TARGET(NbitsRoundFn, round_one).get()
                    : TOMBOLO_TARGET(NbitsRoundFn, round_three).get();
}

void nbits_add_parts(const float* sums, int64_t wide, int64_t rows, const float* bias, float* y,
                     int64_t ldy, int64_t cols) {
  using Fn = void(const float*, int64_t, int64_t, const float*, float*, int64_t, int64_t);
  TOMBOLO_TARGET(Fn, add_parts)(sums, wide, rows, bias, y, ldy, cols);
}

}  // namespace tombolo
#endif
