#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/matmul/turned_rows.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "runtime/kernels/across-inl.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/matmul/turned_rows.h"
#include "runtime/kernels/parallel.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

#if HWY_TARGET == HWY_AVX3
inline constexpr int kRows = 4;  ///< whose sums with four of B stay in registers
#else
inline constexpr int kRows = 2;
#endif

/// kR rows of A with all of B.
template <int kR>
void dots_of(const TurnedRows& t) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const int64_t whole = t.k / lanes * lanes, rest = t.k - whole;
  int64_t j = 0;
  for (; j + 4 <= t.n; j += 4) {
    const float* const b = t.b + j * t.ldb;
    V sum[kR][4];
#pragma GCC unroll 4
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 4
      for (int column = 0; column < 4; ++column) sum[r][column] = hn::Zero(f);
    const auto add = [&](auto&& load, int64_t i) HWY_ATTR __attribute__((always_inline)) {
      V av[kR];
#pragma GCC unroll 4
      for (int r = 0; r < kR; ++r) av[r] = load(t.a + r * t.lda + i);
#pragma GCC unroll 4
      for (int column = 0; column < 4; ++column) {
        const V x = load(b + column * t.ldb + i);
#pragma GCC unroll 4
        for (int r = 0; r < kR; ++r) sum[r][column] = hn::MulAdd(av[r], x, sum[r][column]);
      }
    };
    for (int64_t i = 0; i < whole; i += lanes)
      add(
          [&](const float* p) HWY_ATTR __attribute__((always_inline)) { return hn::LoadU(f, p); },
          i);
    if (rest > 0)
      add(
          [&](const float* p) HWY_ATTR
          __attribute__((always_inline)) { return load_n(f, p, rest); },
          whole);
#pragma GCC unroll 4
    for (int r = 0; r < kR; ++r)
      sums_of_four(f, sum[r][0], sum[r][1], sum[r][2], sum[r][3], t.c + r * t.ldc + j);
  }
  for (; j < t.n; ++j)
    for (int r = 0; r < kR; ++r) {
      const float *const a = t.a + r * t.lda, *const b = t.b + j * t.ldb;
      V s = hn::Zero(f);
      for (int64_t i = 0; i < t.k; i += lanes)
        s = hn::MulAdd(load_n(f, a + i, t.k - i), load_n(f, b + i, t.k - i), s);
      t.c[r * t.ldc + j] = hn::GetLane(hn::SumOfLanes(f, s));
    }
}

void dots(const TurnedRows& all) {
  for (int64_t r = 0; r < all.m; r += kRows) {
    TurnedRows t = all;
    t.a += r * t.lda;
    t.c += r * t.ldc;
    switch (std::min<int64_t>(kRows, all.m - r)) {
      case 1:
        dots_of<1>(t);
        break;
      case 2:
        dots_of<2>(t);
        break;
      case 3:
        dots_of<3>(t);
        break;
      default:
        dots_of<kRows>(t);
    }
  }
}

/// What surrounds a block of sums, of which C at row 0 and `column` is the first.
void finish_block(const TurnedRows& sums, float* c, int64_t ldc, int64_t column,
                  const GemmEpilogue& e) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const V lo = hn::Set(f, e.lo), hi = hn::Set(f, e.hi);
  for (int64_t r = 0; r < sums.m; ++r) {
    const V row_bias = e.row_bias != nullptr ? hn::Set(f, e.row_bias[r]) : hn::Zero(f);
    for (int64_t j = 0; j < sums.n; j += lanes) {
      const int64_t some = std::min(lanes, sums.n - j);
      V x = load_n(f, sums.c + r * sums.ldc + j, some);
      if (e.row_bias != nullptr) x = hn::Add(x, row_bias);
      if (e.col_bias != nullptr) x = hn::Add(x, load_n(f, e.col_bias + column + j, some));
      if (e.init != nullptr) x = hn::Add(x, load_n(f, e.init + r * e.ldi + column + j, some));
      if (e.clamp) x = min_of(hi, max_of(lo, x));  // in this order a NaN stays
      store_n(x, f, c + r * ldc + column + j, some);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void turned_rows(const TurnedRows& rows) { TOMBOLO_TARGET(void(const TurnedRows&), dots)(rows); }

bool gemm_turned_rows_fits(int64_t m, int64_t n, int64_t k) {
  // A result takes three vectors' time to add up its lanes, an element of B one of its own to be
  // packed for all rows.
  constexpr int64_t kMost = 64;
  return vector_floats() >= 8 && n >= 8 && k >= 32 && m <= std::min(kMost, k * 3 / 8);
}

void gemm_turned_rows(const TurnedRows& rows, float alpha, const GemmEpilogue& epilogue) {
  TurnedRows all = rows;
  if (alpha != 1) {
    float* const scaled = thread_floats(3, static_cast<size_t>(rows.m * rows.k));
    for (int64_t r = 0; r < rows.m; ++r)
      for (int64_t i = 0; i < rows.k; ++i)
        scaled[r * rows.k + i] = alpha * rows.a[r * rows.lda + i];
    all.a = scaled;
    all.lda = rows.k;
  }
  // Rows of B that stay near while all of A meets them.
  constexpr int64_t kNear = 8192;  // floats
  const int64_t near = std::clamp<int64_t>(kNear / rows.k / 4 * 4, 4, 256);
  const int64_t blocks = (rows.n + near - 1) / near;
  parallel(blocks, std::max<int64_t>(1, 65536 / (rows.m * near * rows.k)),
           [&](int64_t begin, int64_t end) {
             for (int64_t block = begin; block < end; ++block) {
               TurnedRows some = all;
               const int64_t column = block * near;
               some.b += column * all.ldb;
               some.n = std::min(near, all.n - column);
               some.c += column;
               // A residual may lie where C does: sums are apart until it has been read.
               const bool apart = !epilogue.is_plain();
               if (apart) {
                 some.c = thread_floats(4, static_cast<size_t>(all.m * near));
                 some.ldc = near;
               }
               turned_rows(some);
               if (!apart) continue;
               using Fn = void(const TurnedRows&, float*, int64_t, int64_t, const GemmEpilogue&);
               TOMBOLO_TARGET(Fn, finish_block)(some, all.c, all.ldc, column, epilogue);
               if (const BlockPost* post = epilogue.post)
                 post->apply(post->argument, all.c + column, all.ldc, 0, all.m, column, some.n);
             }
           });
}

}  // namespace tombolo
#endif
