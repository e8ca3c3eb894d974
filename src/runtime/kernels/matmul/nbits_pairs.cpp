#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/matmul/nbits_pairs.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/matmul/nbits_pairs.h"
#include "runtime/kernels/matmul/nbits_panel.h"
#include "runtime/kernels/pair_products-inl.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/vec-inl.h"

#ifndef TOMBOLO_NBITS_PAIRS
#define TOMBOLO_NBITS_PAIRS
namespace tombolo {
namespace {

/// What precedes the numbers of a block of a row. They follow as words of two, of every 8 k those
/// of the upper halves, 0 and 4, 2 and 6, 1 and 5, 3 and 7, then those of the lower ones.
struct PairsHead {
  int32_t less[2];  ///< the sums of both halves, negative
  float unit;       ///< of the upper halves; of the lower ones a 32,768th of it
  int32_t unused;
};
constexpr int64_t kPairsBlock = 256;  ///< sums of more might not fit 32 bits

struct PairsTask {
  const std::byte *panel, *a;
  int64_t blocks, block;
  bool has_zeros;
  const float* bias;  ///< of these columns, or null
  float* y;
  int64_t cols;
};

}  // namespace
}  // namespace tombolo
#endif

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

/// One row by one panel.
void panel_pairs([[maybe_unused]] const PairsTask& t) {
#if HWY_ARCH_X86
  const F f;
  const hn::RebindToSigned<F> d;
  const hn::RebindToUnsigned<F> u;
  const hn::Repartition<int16_t, F> halves;
  const hn::Rebind<uint8_t, F> bytes;
  using W = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const auto mask = hn::Set(u, 0x00FF00FF);
  const auto word_at = [](const std::byte* p) HWY_ATTR __attribute__((always_inline)) {
    int32_t word;
    std::memcpy(&word, p, 4);
    return hn::BitCast(hn::Repartition<int16_t, F>(), hn::Set(hn::RebindToSigned<F>(), word));
  };
  V total = t.bias != nullptr ? load_n(f, t.bias, t.cols) : hn::Zero(f);
  const std::byte *at = t.panel, *a = t.a;
  for (int64_t b = 0; b < t.blocks; ++b) {
    PairsHead head;
    std::memcpy(&head, a, sizeof head);
    a += sizeof head;
    const auto* const zeros = reinterpret_cast<const uint8_t*>(at + lanes * (t.block + 4));
    const W zero = t.has_zeros ? hn::PromoteTo(d, hn::LoadU(bytes, zeros)) : hn::Set(d, 128);
    W upper = hn::Mul(zero, hn::Set(d, head.less[0]));
    W lower = hn::Mul(zero, hn::Set(d, head.less[1]));
    for (int64_t k = 0; k < t.block; k += 8, at += 8 * lanes, a += 32) {
      __builtin_prefetch(at + kNbitsAhead);
      const auto even = hn::LoadU(u, reinterpret_cast<const uint32_t*>(at));
      const auto odd = hn::LoadU(u, reinterpret_cast<const uint32_t*>(at + 4 * lanes));
      const hn::Vec<decltype(halves)> codes[] = {
          hn::BitCast(halves, hn::And(even, mask)),
          hn::BitCast(halves, hn::And(hn::ShiftRight<8>(even), mask)),
          hn::BitCast(halves, hn::And(odd, mask)),
          hn::BitCast(halves, hn::And(hn::ShiftRight<8>(odd), mask))};
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        upper = hn::Add(upper, pair_products(codes[i], word_at(a + 4 * i)));
        lower = hn::Add(lower, pair_products(codes[i], word_at(a + 16 + 4 * i)));
      }
    }
    const V unit = hn::Set(f, head.unit), part = hn::Set(f, 1.0f / 32768);
    const V scale = hn::Mul(hn::LoadU(f, reinterpret_cast<const float*>(at)), unit);
    const V sum = hn::MulAdd(hn::ConvertTo(f, lower), part, hn::ConvertTo(f, upper));
    total = hn::MulAdd(scale, sum, total);
    at += lanes * (t.has_zeros ? 5 : 4);
  }
  store_n(total, f, t.y, t.cols);
#endif
}

/// A block of a row, of which n numbers are there. False where it has no halves.
bool block_halves(const float* x, int64_t n, int64_t block, std::byte* out) {
  const F f;
  const hn::RebindToSigned<F> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  V most = hn::Zero(f), odd = hn::Zero(f);
  for (int64_t i = 0; i < n; i += lanes) {
    const V v = load_n(f, x + i, n - i);
    most = max_of(most, hn::Abs(v));
    odd = hn::Add(odd, hn::Sub(v, v));  // zero, but for what is not finite
  }
  const float greatest = hn::GetLane(hn::MaxOfLanes(f, most)) + hn::GetLane(hn::SumOfLanes(f, odd));
  if (!std::isfinite(greatest) || (greatest > 0 && greatest < 1e-30f)) return false;
  PairsHead head = {{0, 0}, greatest / 32767, 0};
  const V unit = hn::Set(f, head.unit);
  const V inverse = hn::Set(f, greatest > 0 ? 32767 / greatest : 0);
  const V finer = hn::Set(f, greatest > 0 ? 32767 / greatest * 32768 : 0);
  HWY_ALIGN int32_t halves[2][kPairsBlock + 16];
  auto above = hn::Zero(d), below = hn::Zero(d);
  for (int64_t i = 0; i < block; i += lanes) {
    const V v = load_n(f, x + i, n - i);
    const auto upper = hn::NearestInt(hn::Mul(v, inverse));
    const V rest = hn::NegMulAdd(hn::ConvertTo(f, upper), unit, v);
    const auto lower = hn::NearestInt(hn::Mul(rest, finer));
    above = hn::Add(above, upper);
    below = hn::Add(below, lower);
    hn::StoreU(upper, d, halves[0] + i);
    hn::StoreU(lower, d, halves[1] + i);
  }
  head.less[0] = -hn::GetLane(hn::SumOfLanes(d, above));
  head.less[1] = -hn::GetLane(hn::SumOfLanes(d, below));
  std::memcpy(out, &head, sizeof head);
  auto* to = reinterpret_cast<int16_t*>(out + sizeof head);
  constexpr int64_t kOrder[] = {0, 4, 2, 6, 1, 5, 3, 7};
  for (int64_t i = 0; i < block; i += 8)
    for (const auto& half : halves)
      for (const int64_t k : kOrder) *to++ = static_cast<int16_t>(half[i + k]);
  return true;
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

bool nbits_pairs_fit([[maybe_unused]] const NbitsShape& s, [[maybe_unused]] int64_t m) {
#if HWY_ARCH_X86
  // More rows repay codes that become floats once for all of them.
  return s.kind == NbitsKind::kEight && m <= 2 && s.block % 16 == 0 && s.block <= kPairsBlock;
#else
  return false;
#endif
}

bool nbits_gemm_pairs(const NbitsShape& s, int64_t m, const float* a, const std::byte* packed,
                      const float* bias, float* y) {
  const int64_t width = nbits_panel(), panels = nbits_panels(s), blocks = s.blocks();
  const auto head = static_cast<int64_t>(sizeof(PairsHead));
  const int64_t row_bytes = blocks * (head + 4 * s.block);
  auto* const rows =
      reinterpret_cast<std::byte*>(thread_floats(4, static_cast<size_t>(m * row_bytes / 4)));
  std::atomic<bool> fine = true;
  parallel(m * blocks, std::max<int64_t>(1, 16384 / s.block), [&](int64_t begin, int64_t end) {
    auto* const halves =
        TOMBOLO_TARGET(bool(const float*, int64_t, int64_t, std::byte*), block_halves).get();
    for (int64_t i = begin; i < end; ++i) {
      const int64_t k = i % blocks * s.block;
      if (!halves(a + i / blocks * s.k + k, std::min(s.block, s.k - k), s.block,
                  rows + i * (head + 4 * s.block)))
        fine = false;
    }
  });
  if (!fine) return false;
  parallel(panels, std::max<int64_t>(1, kWorthATurn / (blocks * s.block * width * m)),
           [&](int64_t begin, int64_t end) {
             auto* const run = TOMBOLO_TARGET(void(const PairsTask&), panel_pairs).get();
             for (int64_t p = begin; p < end; ++p)
               for (int64_t r = 0; r < m; ++r)
                 run({nbits_panel_at(s, packed, p).at, rows + r * row_bytes, blocks, s.block,
                      s.has_zeros, bias != nullptr ? bias + p * width : nullptr,
                      y + r * s.n + p * width, std::min(width, s.n - p * width)});
           });
  return true;
}

}  // namespace tombolo
#endif
