#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/quant/unpack_codes.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/quant/unpack_codes.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using Bytes = hn::Rebind<uint8_t, F>;

/// As many codes as a vector of floats has lanes, from the start of a byte.
template <int kBits>
HWY_INLINE hn::Vec<Bytes> codes_at(const uint8_t* p) {
  const Bytes bytes;
  if constexpr (kBits == 8) {
    return hn::LoadU(bytes, p);
  } else if constexpr (kBits == 4) {
    const hn::Repartition<uint16_t, Bytes> wide;
    const hn::Rebind<uint8_t, decltype(wide)> halves;
    const auto v = hn::PromoteTo(wide, hn::LoadU(halves, p));
    return hn::BitCast(bytes,
                       hn::And(hn::Or(v, hn::ShiftLeft<4>(v)), hn::Set(wide, uint16_t{0x0F0F})));
  } else {
    const hn::Repartition<uint32_t, Bytes> wide;
    const hn::Rebind<uint8_t, decltype(wide)> quarters;
    const auto v = hn::PromoteTo(wide, hn::LoadU(quarters, p));
    const auto low = hn::Or(v, hn::ShiftLeft<6>(v));
    return hn::BitCast(bytes,
                       hn::And(hn::Or(low, hn::ShiftLeft<12>(low)), hn::Set(wide, 0x03030303u)));
  }
}

template <int kBits>
void blocks_of(const CodeRow& row, int64_t n, int64_t block, const float* scales,
               const float* zeros, float* y) {
  const F f;
  const hn::RebindToSigned<F> integers;
  const Bytes bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  constexpr int64_t kEach = 8 / kBits;
  // A signed code is an unsigned one with its highest bit turned, less what that bit says.
  constexpr unsigned kTop = 1u << (kBits - 1);
  const unsigned turn = row.is_signed ? kTop : 0;
  const float less = static_cast<float>(turn);
  const auto turns = hn::Set(bytes, static_cast<uint8_t>(turn));
  for (int64_t i = 0; i < n; i += block, ++scales, ++zeros) {
    const float scale = *scales, zero = *zeros + less;
    const int64_t end = std::min(n, i + block);
    const auto one = [&](int64_t j) {
      const int64_t at = row.first + j;
      const unsigned code = row.bytes[at / kEach] >> (at % kEach * kBits) & (2 * kTop - 1);
      y[j] = (static_cast<float>(code ^ turn) - zero) * scale;
    };
    int64_t j = i;
    for (; j < end && (row.first + j) % kEach != 0; ++j) one(j);
    for (; j + lanes <= end; j += lanes) {
      const auto codes = hn::Xor(codes_at<kBits>(row.bytes + (row.first + j) / kEach), turns);
      const auto numbers = hn::ConvertTo(f, hn::PromoteTo(integers, codes));
      hn::StoreU(hn::Mul(hn::Sub(numbers, hn::Set(f, zero)), hn::Set(f, scale)), f, y + j);
    }
    for (; j < end; ++j) one(j);
  }
}

void blocks_any(const CodeRow& row, int64_t n, int64_t block, const float* scales,
                const float* zeros, float* y) {
  switch (row.bits) {
    case 2:
      return blocks_of<2>(row, n, block, scales, zeros, y);
    case 4:
      return blocks_of<4>(row, n, block, scales, zeros, y);
    default:
      return blocks_of<8>(row, n, block, scales, zeros, y);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void unpack_blocks(const CodeRow& row, int64_t n, int64_t block, const float* scales,
                   const float* zeros, float* y) {
  using Fn = void(const CodeRow&, int64_t, int64_t, const float*, const float*, float*);
  TOMBOLO_TARGET(Fn, blocks_any).get()(row, n, block, scales, zeros, y);
}

}  // namespace tombolo
#endif
