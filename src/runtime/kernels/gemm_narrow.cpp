#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/gemm_narrow.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/gemm_narrow.h"
#include "runtime/kernels/isa.h"
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
    return e.clamp ? hn::Min(hi, hn::Max(lo, sum)) : sum;  // in this order a NaN stays
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

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

bool gemm_narrow_fits(int64_t m, int64_t n, int64_t k, const GemmEpilogue& epilogue) {
  const int64_t lanes = std::min<int64_t>(vector_floats(), NarrowTables::kMost);
  // Packing and tables pay from some rows on; half a vector that lies idle does not.
  return m >= 32 && n >= 1 && k >= 1 && std::max(n, k) <= std::max<int64_t>(lanes / 2, 4) &&
         epilogue.row_bias == nullptr && (epilogue.init == nullptr || epilogue.ldi == n);
}

void gemm_narrow(int64_t m, int64_t n, int64_t k, const float* a, const float* b, int64_t row,
                 int64_t column, float alpha, float* c, const GemmEpilogue& epilogue) {
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
    TOMBOLO_TARGET(Fn, narrow_rows)(t, begin, end, n, k, a, c, epilogue);
    if (epilogue.post != nullptr)
      epilogue.post->apply(epilogue.post->argument, c + begin * n, n, begin, end - begin, 0, n);
  });
}

}  // namespace tombolo
#endif
