#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/matmul/gemm_wide.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/matmul/gemm_wide.h"
#include "runtime/kernels/tensor/transpose_tile.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_AVX3
inline constexpr int kWideRows = 12;
#else
inline constexpr int kWideRows = 6;
#endif
inline constexpr int64_t kWideDepth = 256;  ///< terms summed in registers before they go to memory

template <class D, class V>
HWY_INLINE V add_product(D d, V a, V b, V sum) {
  using T = hn::TFromD<D>;
  if constexpr (std::is_same_v<T, double>) {
    return hn::MulAdd(a, b, sum);
  } else if constexpr (sizeof(T) == 4) {
    return hn::Add(sum, hn::Mul(a, b));
  } else {
#if HWY_TARGET == HWY_AVX3
    return hn::Add(sum, V{_mm512_mullo_epi64(a.raw, b.raw)});
#else
    // Low halves, and what the high ones add above.
    const hn::Repartition<uint32_t, D> half;
    const V low = hn::MulEven(hn::BitCast(half, a), hn::BitCast(half, b));
    const V cross =
        hn::Add(hn::MulEven(hn::BitCast(half, hn::ShiftRight<32>(a)), hn::BitCast(half, b)),
                hn::MulEven(hn::BitCast(half, a), hn::BitCast(half, hn::ShiftRight<32>(b))));
    (void)d;
    return hn::Add(sum, hn::Add(low, hn::ShiftLeft<32>(cross)));
#endif
  }
}

template <typename T, int kR>
void wide_tile(const T* HWY_RESTRICT a, int64_t lda, const T* HWY_RESTRICT b, int64_t depth,
               T* HWY_RESTRICT c, int64_t ldc, int64_t columns, bool add) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kR][2];
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) sum[r][0] = sum[r][1] = hn::Zero(d);
  for (int64_t p = 0; p < depth; ++p, b += 2 * lanes) {
    const V low = hn::LoadU(d, b), high = hn::LoadU(d, b + lanes);
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
      const V factor = hn::Set(d, a[r * lda + p]);
      sum[r][0] = add_product(d, factor, low, sum[r][0]);
      sum[r][1] = add_product(d, factor, high, sum[r][1]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r, c += ldc)
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const int64_t left = columns - v * lanes;
      if (left <= 0) break;
      V x = sum[r][v];
      if (add) x = hn::Add(load_n(d, c + v * lanes, left), x);
      store_n(x, d, c + v * lanes, left);
    }
}

template <typename T>
using WideTile = void(const T*, int64_t, const T*, int64_t, T*, int64_t, int64_t, bool);

template <typename T, int... kR>
WideTile<T>* wide_tile_of(int64_t rows, std::integer_sequence<int, kR...>) {
  static constexpr WideTile<T>* tiles[] = {&wide_tile<T, kR + 1>...};
  return tiles[rows - 1];
}

template <typename T>
void wide_product(const WideProduct<T>& s, int64_t row, int64_t rows, int64_t panel,
                  int64_t panels) {
  const int64_t width = 2 * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  if (s.k == 0)
    for (int64_t i = row; i < row + rows; ++i)
      std::fill_n(s.c + i * s.ldc + panel * width,
                  std::min(s.n, (panel + panels) * width) - panel * width, T{});
  for (int64_t p = 0; p < s.k; p += kWideDepth) {
    const int64_t depth = std::min(kWideDepth, s.k - p);
    for (int64_t j = panel; j < panel + panels; ++j)
      for (int64_t i = row; i < row + rows;) {
        const int64_t count = std::min<int64_t>(kWideRows, row + rows - i);
        wide_tile_of<T>(count, std::make_integer_sequence<int, kWideRows>())(
            s.a + i * s.lda + p, s.lda, s.packed_b + (j * s.k + p) * width, depth,
            s.c + i * s.ldc + j * width, s.ldc, std::min(width, s.n - j * width), p > 0);
        i += count;
      }
  }
}

void wide_f64(const WideProduct<double>& s, int64_t row, int64_t rows, int64_t panel, int64_t n) {
  wide_product(s, row, rows, panel, n);
}
void wide_u32(const WideProduct<uint32_t>& s, int64_t row, int64_t rows, int64_t panel, int64_t n) {
  wide_product(s, row, rows, panel, n);
}
void wide_u64(const WideProduct<uint64_t>& s, int64_t row, int64_t rows, int64_t panel, int64_t n) {
  wide_product(s, row, rows, panel, n);
}
int64_t wide_bytes() { return static_cast<int64_t>(hn::Lanes(hn::ScalableTag<uint8_t>())); }
int64_t wide_tile_rows() { return kWideRows; }

/// Columns [j, end) by rows [0, depth) of B; `add`: to what c holds.
template <int kVectors>
HWY_INLINE void row_by_columns(const double* a, const double* b, int64_t depth, int64_t n,
                               int64_t left, bool add, double* c) {
  const hn::ScalableTag<double> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto load = [&](const double* from, int v) HWY_ATTR {
    return kVectors == 1 ? load_n(d, from, left) : hn::LoadU(d, from + v * lanes);
  };
  V sums[kVectors];
#pragma GCC unroll 8
  for (V& sum : sums) sum = hn::Zero(d);
  for (int64_t p = 0; p < depth; ++p, b += n) {
    const V factor = hn::Set(d, a[p]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[v] = hn::MulAdd(factor, load(b, v), sums[v]);
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    if (add) sums[v] = hn::Add(load(c, v), sums[v]);
    if (kVectors == 1)
      store_n(sums[v], d, c, left);
    else
      hn::StoreU(sums[v], d, c + v * lanes);
  }
}

void row_by_rows(const double* a, const double* b, int64_t k, int64_t n, int64_t begin, int64_t end,
                 double* c) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<double>()));
  constexpr int kVectors = 8;
  int64_t p = 0;
  do {
    const int64_t depth = std::min(kWideDepth, k - p);
    int64_t j = begin;
    for (; j + kVectors * lanes <= end; j += kVectors * lanes)
      row_by_columns<kVectors>(a + p, b + p * n + j, depth, n, 0, p > 0, c + j);
    for (; j < end; j += lanes)
      row_by_columns<1>(a + p, b + p * n + j, depth, n, end - j, p > 0, c + j);
    p += kWideDepth;
  } while (p < k);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

template <typename T>
int64_t wide_panel() {
  return 2 * TOMBOLO_TARGET(int64_t(), wide_bytes)() / static_cast<int64_t>(sizeof(T));
}
template <typename T>
int64_t wide_rows() {
  return TOMBOLO_TARGET(int64_t(), wide_tile_rows)();
}

template <typename T>
void pack_wide(const T* b, int64_t row, int64_t column, int64_t k, int64_t n, int64_t begin,
               int64_t end, T* packed) {
  if (k == 0) return;
  const int64_t width = wide_panel<T>();
  for (int64_t panel = begin; panel < end; ++panel) {
    const int64_t first = panel * width, count = std::min(width, n - first);
    T* to = packed + panel * k * width;
    const T* from = b + first * column;
    if (row == 1) {
      if (count < width) std::fill_n(to, k * width, T{});
      transpose_tile(reinterpret_cast<const std::byte*>(from), column,
                     reinterpret_cast<std::byte*>(to), width, count, k, sizeof(T));
      continue;
    }
    for (int64_t p = 0; p < k; ++p, to += width) {
      if (column == 1)
        std::memcpy(to, from + p * row, static_cast<size_t>(count) * sizeof(T));
      else
        for (int64_t j = 0; j < count; ++j) to[j] = from[p * row + j * column];
      std::fill_n(to + count, width - count, T{});
    }
  }
}

void multiply_row(const double* a, const double* b, int64_t k, int64_t n, int64_t begin,
                  int64_t end, double* c) {
  using Fn = void(const double*, const double*, int64_t, int64_t, int64_t, int64_t, double*);
  TOMBOLO_TARGET(Fn, row_by_rows)(a, b, k, n, begin, end, c);
}

template <>
void multiply_wide(const WideProduct<double>& s, int64_t row, int64_t rows, int64_t panel,
                   int64_t panels) {
  TOMBOLO_TARGET(void(const WideProduct<double>&, int64_t, int64_t, int64_t, int64_t), wide_f64)
  (s, row, rows, panel, panels);
}
template <>
void multiply_wide(const WideProduct<uint32_t>& s, int64_t row, int64_t rows, int64_t panel,
                   int64_t panels) {
  TOMBOLO_TARGET(void(const WideProduct<uint32_t>&, int64_t, int64_t, int64_t, int64_t), wide_u32)
  (s, row, rows, panel, panels);
}
template <>
void multiply_wide(const WideProduct<uint64_t>& s, int64_t row, int64_t rows, int64_t panel,
                   int64_t panels) {
  TOMBOLO_TARGET(void(const WideProduct<uint64_t>&, int64_t, int64_t, int64_t, int64_t), wide_u64)
  (s, row, rows, panel, panels);
}

#define TOMBOLO_WIDE(T)             \
  template int64_t wide_panel<T>(); \
  template int64_t wide_rows<T>();  \
  template void pack_wide(const T*, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, T*);
TOMBOLO_WIDE(double)
TOMBOLO_WIDE(uint32_t)
TOMBOLO_WIDE(uint64_t)
#undef TOMBOLO_WIDE

}  // namespace tombolo
#endif
