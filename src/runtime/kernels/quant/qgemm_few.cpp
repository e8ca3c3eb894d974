// Few rows by a matrix of bytes that comes with the run: to pack it would take longer than to
// multiply it.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/quant/qgemm_few.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/pair_products-inl.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/quant/qgemm.h"
#include "runtime/kernels/vec-inl.h"

#ifndef TOMBOLO_QGEMM_FEW_ONCE  // included once for each target
#define TOMBOLO_QGEMM_FEW_ONCE
namespace tombolo {
namespace {
constexpr int64_t kLineColumns = 64;  ///< columns: a line of each row of B
}
}  // namespace tombolo
#endif

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using I16 = hn::ScalableTag<int16_t>;
using I32 = hn::RepartitionToWide<I16>;

constexpr int kColumns = 16;  ///< at a time: those of 16 bytes
constexpr int kVectors = kColumns / static_cast<int>(HWY_LANES(int32_t));

/// Sixteen columns of two rows of B as pairs of 16-bit numbers.
HWY_INLINE void load_pairs(const uint8_t* b0, const uint8_t* b1, uint8_t flip,
                           hn::Vec<I16> (&pairs)[kVectors]) {
  const hn::Full128<uint8_t> bytes;
  const hn::Rebind<int8_t, I16> few;
  const auto turned = hn::Set(bytes, flip);
  const auto x = hn::Xor(hn::LoadU(bytes, b0), turned), y = hn::Xor(hn::LoadU(bytes, b1), turned);
  const auto low = hn::InterleaveLower(bytes, x, y), high = hn::InterleaveUpper(bytes, x, y);
  const I16 d;
  [[maybe_unused]] const hn::Full128<int8_t> same;
#if HWY_TARGET <= HWY_AVX3
  pairs[0] = hn::PromoteTo(d, hn::Combine(few, hn::BitCast(same, high), hn::BitCast(same, low)));
#elif HWY_TARGET <= HWY_AVX2
  pairs[0] = hn::PromoteTo(d, hn::BitCast(few, low));
  pairs[1] = hn::PromoteTo(d, hn::BitCast(few, high));
#else
  pairs[0] = hn::PromoteTo(d, hn::LowerHalf(few, hn::BitCast(same, low)));
  pairs[1] = hn::PromoteTo(d, hn::UpperHalf(few, hn::BitCast(same, low)));
  pairs[2] = hn::PromoteTo(d, hn::LowerHalf(few, hn::BitCast(same, high)));
  pairs[3] = hn::PromoteTo(d, hn::UpperHalf(few, hn::BitCast(same, high)));
#endif
}

/// sums[r * kLineColumns + j], j < kLineColumns, of kR rows of pairs (`a`, `pairs` apart) and,
/// last, of the columns themselves; on top of what is there.
template <int kR>
void add_group(const int32_t* a, int64_t pairs, const uint8_t* b, int64_t row, int64_t k,
               uint8_t flip, int32_t* sums) {
  const I32 d;
  const hn::Repartition<int16_t, I32> d16;
  // As many columns at a time as sums stay in registers.
  constexpr int kRegisters = HWY_TARGET <= HWY_AVX3 ? 20 : 8;
  constexpr int kSide = std::clamp(kRegisters / ((kR + 1) * kVectors), 1, 4);
  constexpr int kLanes = kColumns / kVectors;
  const auto ones = hn::Set(d16, int16_t{1});
  alignas(16) uint8_t none[kLineColumns];
  std::fill_n(none, kLineColumns, flip);  // 0 once turned
  for (int64_t c = 0; c < kLineColumns; c += kSide * kColumns) {
    hn::Vec<I32> acc[kR + 1][kSide][kVectors];
#pragma GCC unroll 8
    for (int r = 0; r <= kR; ++r)
#pragma GCC unroll 4
      for (int s = 0; s < kSide; ++s)
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v)
          acc[r][s][v] = hn::LoadU(d, sums + r * kLineColumns + c + s * kColumns + v * kLanes);
    const uint8_t* from = b + c;
    for (int64_t i = 0; 2 * i < k; ++i, from += 2 * row) {
      const uint8_t* const next = 2 * i + 1 < k ? from + row : none;
      hn::Vec<I16> p[kSide][kVectors];
#pragma GCC unroll 4
      for (int s = 0; s < kSide; ++s)
        load_pairs(from + s * kColumns, next + s * kColumns, flip, p[s]);
#pragma GCC unroll 8
      for (int r = 0; r <= kR; ++r) {
        const auto given = r < kR ? hn::BitCast(d16, hn::Set(d, a[r * pairs + i])) : ones;
#pragma GCC unroll 4
        for (int s = 0; s < kSide; ++s)
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v)
            acc[r][s][v] = hn::Add(acc[r][s][v], pair_products(p[s][v], given));
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r <= kR; ++r)
#pragma GCC unroll 4
      for (int s = 0; s < kSide; ++s)
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v)
          hn::StoreU(acc[r][s][v], d, sums + r * kLineColumns + c + s * kColumns + v * kLanes);
  }
}

void few_rows_group(int rows, const int32_t* a, int64_t pairs, const uint8_t* b, int64_t row,
                    int64_t k, uint8_t flip, int32_t* sums) {
  switch (rows) {
    case 1:
      return add_group<1>(a, pairs, b, row, k, flip, sums);
    case 2:
      return add_group<2>(a, pairs, b, row, k, flip, sums);
    case 3:
      return add_group<3>(a, pairs, b, row, k, flip, sums);
    default:
      return add_group<4>(a, pairs, b, row, k, flip, sums);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

bool q_few_rows_pays(int64_t m) {
  if (active_isa() == Isa::kNeon) return false;     // not measured
  const bool bytes = has_vnni() || has_avx_vnni();  // packed, four at a time
  return m <= (bytes ? 3 : 8);
}

void q_few_rows(const QFewRows& p) {
  using Fn =
      void(int, const int32_t*, int64_t, const uint8_t*, int64_t, int64_t, uint8_t, int32_t*);
  Fn* const fn = TOMBOLO_TARGET(Fn, few_rows_group).get();
  constexpr int64_t kDeep = 128, kRows = 4;
  const int64_t pairs = (p.k + 1) / 2;
  auto* const a = reinterpret_cast<int32_t*>(thread_floats(1, static_cast<size_t>(p.m * pairs)));
  for (int64_t r = 0; r < p.m; ++r)
    for (int64_t i = 0; i < pairs; ++i) {
      const auto at = [&](int64_t k) {
        if (k >= p.k) return uint16_t{0};
        const uint8_t x = p.a[r * p.k + k] ^ p.a_flip;
        return p.a_signed ? static_cast<uint16_t>(static_cast<int8_t>(x)) : uint16_t{x};
      };
      a[r * pairs + i] = static_cast<int32_t>(at(2 * i) | uint32_t{at(2 * i + 1)} << 16);
    }
  parallel((p.n + kLineColumns - 1) / kLineColumns,
           std::max<int64_t>(1, 65536 / (p.k * kLineColumns)), [&](int64_t begin, int64_t end) {
             alignas(64) int32_t sums[(kRows + 1) * kLineColumns];
             alignas(64) uint8_t few[kDeep * kLineColumns];
             for (int64_t group = begin; group < end; ++group)
               for (int64_t r = 0; r < p.m; r += kRows) {
                 const int64_t first = group * kLineColumns,
                               columns = std::min(kLineColumns, p.n - first);
                 const int64_t rows = std::min(kRows, p.m - r);
                 std::fill_n(sums, (kRows + 1) * kLineColumns, 0);
                 // Some rows of B at a time: their lines stay near.
                 for (int64_t k = 0; k < p.k; k += kDeep) {
                   const int64_t deep = std::min(kDeep, p.k - k);
                   const uint8_t* b = p.b + k * p.n + first;
                   int64_t row = p.n;
                   if (columns < kLineColumns) {  // nothing behind the matrix is read
                     for (int64_t i = 0; i < deep; ++i)
                       std::memcpy(few + i * kLineColumns, b + i * p.n,
                                   static_cast<size_t>(columns));
                     b = few;
                     row = kLineColumns;
                   }
                   fn(static_cast<int>(rows), a + r * pairs + k / 2, pairs, b, row, deep, p.b_flip,
                      sums);
                 }
                 for (int64_t i = 0; i < rows; ++i)
                   std::copy_n(sums + i * kLineColumns, columns, p.sums + (r + i) * p.n + first);
                 std::copy_n(sums + rows * kLineColumns, columns, p.column_sums + first);
               }
           });
}

}  // namespace tombolo
#endif
