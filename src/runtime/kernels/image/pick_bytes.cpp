#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/image/pick_bytes.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/image/pick_bytes.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// A row to `y` and, where kTwice, to the one behind it, too.
template <int kParts, bool kTwice>
HWY_INLINE void pick_blocks(const BytePicks& picks, const uint8_t* HWY_RESTRICT x,
                            uint8_t* HWY_RESTRICT y) {
  constexpr int64_t kBlock = BytePicks::kBlock;
  const hn::FixedTag<uint8_t, kBlock> d;
  const uint8_t* at = picks.shuffles.data();
  const int64_t bytes = picks.bytes;
  const auto block = [&](const uint8_t* from, uint8_t* to) HWY_ATTR __attribute__((always_inline)) {
    auto v = hn::TableLookupBytesOr0(hn::LoadU(d, from), hn::LoadU(d, at));
    for (int p = 1; p < kParts; ++p)
      v = hn::Or(v, hn::TableLookupBytesOr0(hn::LoadU(d, from + p * kBlock),
                                            hn::LoadU(d, at + p * kBlock)));
    hn::StoreU(v, d, to);
    if constexpr (kTwice) hn::StoreU(v, d, to + bytes);
    at += kParts * kBlock;
  };
  const int32_t* base = picks.base.data();
  int64_t to = 0;
  for (; to + kBlock < bytes; to += kBlock, ++base) block(x + *base, y + to);
  block(x + *base, y + bytes - kBlock);
}

template <int kParts>
HWY_INLINE void pick_all(const BytePicks& picks, const uint8_t* x, const int64_t* rows, int64_t n,
                         uint8_t* y) {
  for (int64_t r = 0; r < n; ++r, y += picks.bytes) {
    const uint8_t* const from = x + rows[r];
    if (r + 1 < n && rows[r + 1] == rows[r]) {
      pick_blocks<kParts, true>(picks, from, y);
      ++r;
      y += picks.bytes;
    } else {
      pick_blocks<kParts, false>(picks, from, y);
    }
  }
}

void pick(const BytePicks& picks, const std::byte* x, const int64_t* rows, int64_t n,
          std::byte* y) {
  const auto* from = reinterpret_cast<const uint8_t*>(x);
  auto* to = reinterpret_cast<uint8_t*>(y);
  if (picks.parts == 1)
    pick_all<1>(picks, from, rows, n, to);
  else
    pick_all<2>(picks, from, rows, n, to);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

std::optional<BytePicks> plan_byte_picks(const std::vector<int64_t>& columns, int64_t pixel,
                                         int64_t row) {
  BytePicks picks;
  picks.bytes = static_cast<int64_t>(columns.size()) * pixel;
  if (picks.bytes < BytePicks::kBlock || row > INT32_MAX) return std::nullopt;
  const auto source = [&](int64_t byte) {
    return columns[static_cast<size_t>(byte / pixel)] + byte % pixel;
  };
  std::vector<int64_t> firsts, lows;
  int64_t span = 0;
  for (int64_t first = 0; first < picks.bytes; first += BytePicks::kBlock) {
    firsts.push_back(std::min(first, picks.bytes - BytePicks::kBlock));
    int64_t low = source(firsts.back()), high = low;
    for (int64_t i = 1; i < BytePicks::kBlock; ++i) {
      low = std::min(low, source(firsts.back() + i));
      high = std::max(high, source(firsts.back() + i));
    }
    lows.push_back(low);
    span = std::max(span, high - low + 1);
  }
  picks.parts = static_cast<int>((span + BytePicks::kBlock - 1) / BytePicks::kBlock);
  const int64_t read = picks.parts * BytePicks::kBlock;
  if (span > BytePicks::kMaxParts * BytePicks::kBlock || row < read) return std::nullopt;
  for (size_t b = 0; b < firsts.size(); ++b) {
    const int64_t base = std::min(lows[b], row - read);
    picks.base.push_back(static_cast<int32_t>(base));
    for (int64_t p = 0; p < picks.parts; ++p)
      for (int64_t i = 0; i < BytePicks::kBlock; ++i) {
        const int64_t place = source(firsts[b] + i) - base - p * BytePicks::kBlock;
        picks.shuffles.push_back(
            static_cast<uint8_t>(place >= 0 && place < BytePicks::kBlock ? place : 0x80));
      }
  }
  return picks;
}

void pick_bytes(const BytePicks& picks, const std::byte* x, const int64_t* rows, int64_t n,
                std::byte* y) {
  TOMBOLO_TARGET(void(const BytePicks&, const std::byte*, const int64_t*, int64_t, std::byte*),
                 pick)
  (picks, x, rows, n, y);
}

}  // namespace tombolo
#endif
