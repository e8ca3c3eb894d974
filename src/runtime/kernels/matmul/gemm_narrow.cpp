#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/matmul/gemm_narrow.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <utility>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/matmul/gemm_narrow.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/vec-inl.h"

namespace tombolo {
#ifndef TOMBOLO_GEMM_NARROW_TABLES
#define TOMBOLO_GEMM_NARROW_TABLES
/// Lane i belongs to row i / n and column i % n.
struct NarrowTables {
  static constexpr int64_t kMost = 16;
  int64_t rows = 0;                        ///< in a vector
  alignas(64) int32_t from[kMost][kMost];  ///< for each of k: which element of A a lane needs
  alignas(64) float b[kMost][kMost], bias[kMost];
};
/// B of longer rows is padded to so many columns; a lane is a column.
constexpr int64_t kBroadN = 8, kBroadK = 128;
#endif
}  // namespace tombolo

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::CappedTag<float, NarrowTables::kMost>;
using V = hn::Vec<F>;

/// Rows [begin, end) of C.
void narrow_rows(const NarrowTables& t, int64_t begin, int64_t end, int64_t n, int64_t k,
                 const float* a, float* c, const GemmEpilogue& e) {
  const F f;
  const hn::RebindToSigned<F> i32;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const V bias = hn::Load(f, t.bias), lo = hn::Set(f, e.lo), hi = hn::Set(f, e.hi);
  const auto finish = [&](V sum, V init) HWY_ATTR __attribute__((always_inline)) {
    if (e.col_bias != nullptr) sum = hn::Add(sum, bias);
    if (e.init != nullptr) sum = hn::Add(sum, init);
    return e.clamp ? min_of(hi, max_of(lo, sum)) : sum;  // in this order a NaN stays
  };
  int64_t r = begin;
  // While whole vectors of A and C may be read and written: what is too much is written anew by the
  // next rows, which must not have to read it (C may be what is added).
  const int64_t step_a = t.rows * k, step_c = t.rows * n;
  const int64_t far = t.rows + (lanes + std::min(n, k) - 1) / std::min(n, k);
  const bool whole = e.init == nullptr || step_c == lanes;
  for (; whole && r + far <= end; r += 2 * t.rows) {
    const V a0 = hn::LoadU(f, a + r * k), a1 = hn::LoadU(f, a + r * k + step_a);
    V s0 = hn::Zero(f), s1 = s0;
    for (int64_t j = 0; j < k; ++j) {
      const auto from = hn::IndicesFromVec(f, hn::Load(i32, t.from[j]));
      const V b = hn::Load(f, t.b[j]);
      add_product(s0, hn::TableLookupLanes(a0, from), b);
      add_product(s1, hn::TableLookupLanes(a1, from), b);
    }
    float* const to = c + r * n;
    const float* const init = e.init == nullptr ? to : e.init + r * n;
    const V i0 = e.init == nullptr ? s0 : hn::LoadU(f, init);
    const V i1 = e.init == nullptr ? s1 : hn::LoadU(f, init + step_c);
    hn::StoreU(finish(s0, i0), f, to);
    hn::StoreU(finish(s1, i1), f, to + step_c);
  }
  for (; r < end; r += t.rows) {
    const int64_t rows = std::min(t.rows, end - r);
    const V x = load_n(f, a + r * k, rows * k);
    V sum = hn::Zero(f);
    for (int64_t j = 0; j < k; ++j)
      add_product(sum, hn::TableLookupLanes(x, hn::IndicesFromVec(f, hn::Load(i32, t.from[j]))),
                  hn::Load(f, t.b[j]));
    const V init = e.init == nullptr ? sum : load_n(f, e.init + r * n, rows * n);
    store_n(finish(sum, init), f, c + r * n, rows * n);
  }
}

/// kR rows of C from `r` on, as columns of B in kV vectors.
template <int kR, int kV>
HWY_INLINE void broad_tile(const float* b, const float* bias, int64_t n, int64_t k, const float* a,
                           float* c, bool whole, const GemmEpilogue& e) {
  const hn::CappedTag<float, kBroadN> d;
  using VB = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  VB sum[kR][kV];
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) sum[r][v] = hn::Zero(d);
  for (int64_t j = 0; j < k; ++j) {
    VB row[kV];
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) row[v] = hn::Load(d, b + j * kBroadN + v * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r) {
      const VB value = hn::Set(d, a[r * k + j]);
#pragma GCC unroll 2
      for (int v = 0; v < kV; ++v) add_product(sum[r][v], value, row[v]);
    }
  }
  const VB lo = hn::Set(d, e.lo), hi = hn::Set(d, e.hi);
#pragma GCC unroll 8
  for (int r = 0; r < kR; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kV; ++v) {
      if (e.col_bias != nullptr) sum[r][v] = hn::Add(sum[r][v], hn::Load(d, bias + v * lanes));
      if (e.clamp) sum[r][v] = min_of(hi, max_of(lo, sum[r][v]));
      // What is too much is written anew by the next rows.
      if (whole)
        hn::StoreU(sum[r][v], d, c + r * n + v * lanes);
      else
        store_n(sum[r][v], d, c + r * n + v * lanes, n - v * lanes);
    }
}

/// Rows [begin, end) of C with B as [k][kBroadN].
void broad_rows(const float* b, const float* bias, int64_t begin, int64_t end, int64_t n, int64_t k,
                const float* a, float* c, const GemmEpilogue& e) {
  constexpr int kV = HWY_LANES(float) >= 8 ? 1 : 2, kR = 8 / kV;
  int64_t r = begin;
  for (; r + kR + 8 <= end; r += kR)
    broad_tile<kR, kV>(b, bias, n, k, a + r * k, c + r * n, true, e);
  for (; r < end; ++r) broad_tile<1, kV>(b, bias, n, k, a + r * k, c + r * n, false, e);
}

/// Rows of C, each B times one of A.
void outer_rows(int64_t m, int64_t n, float alpha, const float* a, int64_t lda, const float* b,
                float* c, int64_t ldc) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const V zero = hn::Zero(f);
  const auto times = [&](V factor, V row) HWY_ATTR __attribute__((always_inline)) {
    return hn::Add(hn::Mul(row, factor), zero);  // as a sum has it: never -0
  };
  if (n < lanes) {
    const V row = load_n(f, b, n);
    for (int64_t i = 0; i < m; ++i)
      store_n(times(hn::Set(f, alpha * a[i * lda]), row), f, c + i * ldc, n);
    return;
  }
  for (int64_t i = 0; i < m; ++i, c += ldc) {
    const V factor = hn::Set(f, alpha * a[i * lda]);
    for (int64_t j = 0; j + lanes <= n; j += lanes)
      hn::StoreU(times(factor, hn::LoadU(f, b + j)), f, c + j);
    if (n % lanes != 0)  // over what is there: the same numbers
      hn::StoreU(times(factor, hn::LoadU(f, b + n - lanes)), f, c + n - lanes);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

namespace {

bool fits_lanes(int64_t n, int64_t k, const GemmEpilogue& epilogue) {
  return n <= kBroadN && k <= kBroadK && epilogue.init == nullptr;
}

bool fits_vector(int64_t n, int64_t k) {
  // Half a vector that lies idle does not pay.
  const int64_t lanes = std::min<int64_t>(vector_floats(), NarrowTables::kMost);
  return std::max(n, k) <= std::max<int64_t>(lanes / 2, 4);
}

}  // namespace

bool gemm_narrow_fits(int64_t m, int64_t n, int64_t k, const GemmEpilogue& epilogue) {
  // Packing and tables pay from some rows on.
  return m >= 32 && n >= 1 && k >= 1 && (fits_vector(n, k) || fits_lanes(n, k, epilogue)) &&
         epilogue.row_bias == nullptr && (epilogue.init == nullptr || epilogue.ldi == n);
}

void gemm_narrow(int64_t m, int64_t n, int64_t k, const float* a, const float* b, int64_t row,
                 int64_t column, float alpha, float* c, const GemmEpilogue& epilogue) {
  if (!fits_vector(n, k)) {
    alignas(64) float padded[kBroadK * kBroadN] = {}, bias[kBroadN] = {};
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < n; ++j) padded[i * kBroadN + j] = alpha * b[i * row + j * column];
    if (epilogue.col_bias != nullptr) std::copy_n(epilogue.col_bias, n, bias);
    parallel(m, std::max<int64_t>(32, 65536 / (kBroadN * k)), [&](int64_t begin, int64_t end) {
      using Fn = void(const float*, const float*, int64_t, int64_t, int64_t, int64_t, const float*,
                      float*, const GemmEpilogue&);
      TOMBOLO_TARGET(Fn, broad_rows).get()(padded, bias, begin, end, n, k, a, c, epilogue);
      if (epilogue.post != nullptr)
        epilogue.post->apply(epilogue.post->argument, c + begin * n, n, begin, end - begin, 0, n);
    });
    return;
  }
  const int64_t lanes = std::min<int64_t>(vector_floats(), NarrowTables::kMost);
  NarrowTables t{};
  t.rows = lanes / std::max(n, k);
  for (int64_t lane = 0; lane < t.rows * n; ++lane) {
    for (int64_t j = 0; j < k; ++j) {
      t.from[j][lane] = static_cast<int32_t>(lane / n * k + j);
      t.b[j][lane] = alpha * b[j * row + lane % n * column];
    }
    if (epilogue.col_bias != nullptr) t.bias[lane] = epilogue.col_bias[lane % n];
  }
  parallel(m, std::max<int64_t>(32, 65536 / (n * k)), [&](int64_t begin, int64_t end) {
    using Fn = void(const NarrowTables&, int64_t, int64_t, int64_t, int64_t, const float*, float*,
                    const GemmEpilogue&);
    TOMBOLO_TARGET(Fn, narrow_rows).get()(t, begin, end, n, k, a, c, epilogue);
    if (epilogue.post != nullptr)
      epilogue.post->apply(epilogue.post->argument, c + begin * n, n, begin, end - begin, 0, n);
  });
}

void gemm_outer(int64_t m, int64_t n, float alpha, const float* a, int64_t lda, const float* b,
                float* c, int64_t ldc) {
  // Of one column a row.
  if (n == 1 && lda == 1 && ldc == 1) {
    std::swap(m, n);
    std::swap(a, b);
  }
  constexpr int64_t kLeast = 16384;
  using Fn = void(int64_t, int64_t, float, const float*, int64_t, const float*, float*, int64_t);
  Fn* const rows = TOMBOLO_TARGET(Fn, outer_rows).get();
  if (m == 1)
    return parallel(n, kLeast, [&](int64_t begin, int64_t end) {
      rows(1, end - begin, alpha, a, lda, b + begin, c + begin, ldc);
    });
  parallel(m, std::max<int64_t>(1, kLeast / n), [&](int64_t begin, int64_t end) {
    rows(end - begin, n, alpha, a + begin * lda, lda, b, c + begin * ldc, ldc);
  });
}

}  // namespace tombolo
#endif
