#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/attention/linear_state.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/kernels/attention/linear_state.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

/// One sum for each vector of columns, and of two rows in turn where registers suffice: a sum waits
/// for itself.
template <int kC>
struct Sums {
#if HWY_TARGET == HWY_AVX3
  static constexpr int kTurns = 2;
#else
  static constexpr int kTurns = kC > 2 ? 1 : 2;
#endif
  V part[kTurns][kC];

  HWY_INLINE Sums() {
#pragma GCC unroll 2
    for (int r = 0; r < kTurns; ++r)
#pragma GCC unroll 4
      for (int c = 0; c < kC; ++c) part[r][c] = hn::Zero(F());
  }
  HWY_INLINE void add(int row, int c, V factor, V x) {
    V& sum = part[row % kTurns][c];
    sum = hn::MulAdd(factor, x, sum);
  }
  HWY_INLINE V get(int c) const {
    return kTurns == 1 ? part[0][c] : hn::Add(part[0][c], part[kTurns - 1][c]);
  }
};

/// What each of the rows of a state says, times `factors`.
template <int kC>
HWY_INLINE Sums<kC> sum_rows(const float* factors, const float* row, int64_t width, int64_t keys) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  Sums<kC> sums;
  const auto one = [&](int64_t i, int r) HWY_ATTR __attribute__((always_inline)) {
    const V factor = hn::Set(f, factors[i]);
#pragma GCC unroll 4
    for (int c = 0; c < kC; ++c) sums.add(r, c, factor, hn::LoadU(f, row + c * lanes));
    row += width;
  };
  int64_t i = 0;
  for (; i + 2 <= keys; i += 2) {
    one(i, 0);
    one(i + 1, 1);
  }
  if (i < keys) one(i, 0);
  return sums;
}

/// Where the state lies before step t, and behind it.
struct Place {
  const float* old;
  int64_t ldold;
  float* row;
  int64_t ldrow;

  HWY_INLINE Place(const LinearSteps& s, int64_t t)
      : old(t == 0 ? s.from : s.state),
        ldold(t == 0 ? s.ldfrom : s.ldstate),
        row(t + 1 == s.steps ? s.to : s.state),
        ldrow(t + 1 == s.steps ? s.ldto : s.ldstate) {}
};

/// One step: rows change, and what the query sees of them. With kNext also what the next step's key
/// sees, while they are in registers.
template <bool kNext, int kC>
HWY_INLINE void change_rows(const LinearSteps& s, int64_t t, const V (&written)[kC], Sums<kC>& seen,
                            Sums<kC>& next) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const float *gates = s.gates + t * s.keys, *k = s.k + t * s.ldk, *q = s.q + t * s.ldq;
  const float* const next_gk = s.gk + (kNext ? t + 1 : t) * s.keys;
  Place at(s, t);
  const auto one = [&](int64_t i, int r) HWY_ATTR __attribute__((always_inline)) {
    const V gate = hn::Set(f, gates[i]), key = hn::Set(f, k[i]), query = hn::Set(f, q[i]);
    const V next_key = hn::Set(f, next_gk[i]);
#pragma GCC unroll 4
    for (int c = 0; c < kC; ++c) {
      const V state = hn::MulAdd(key, written[c], hn::Mul(gate, hn::LoadU(f, at.old + c * lanes)));
      hn::StoreU(state, f, at.row + c * lanes);
      seen.add(r, c, query, state);
      if constexpr (kNext) next.add(r, c, next_key, state);
    }
    at.old += at.ldold;
    at.row += at.ldrow;
  };
  int64_t i = 0;
  for (; i + 2 <= s.keys; i += 2) {
    one(i, 0);
    one(i + 1, 1);
  }
  if (i < s.keys) one(i, 0);
}

/// kC vectors of columns, which stay in the first cache through all steps.
template <int kC>
void steps_of(const LinearSteps& s) {
  const F f;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  Sums<kC> read;
  if (s.beta != nullptr) read = sum_rows<kC>(s.gk, s.from, s.ldfrom, s.keys);
  for (int64_t t = 0; t < s.steps; ++t) {
    const float* v = s.v + t * s.ldv;
    V written[kC];
#pragma GCC unroll 4
    for (int c = 0; c < kC; ++c) written[c] = load_n(f, v + c * lanes, s.cols - c * lanes);
    Sums<kC> seen, next;
    if (s.beta != nullptr) {
      const V beta = hn::Set(f, s.beta[t * s.ldbeta]);
#pragma GCC unroll 4
      for (int c = 0; c < kC; ++c) written[c] = hn::Mul(beta, hn::Sub(written[c], read.get(c)));
    }
    if (s.beta != nullptr && t + 1 < s.steps)
      change_rows<true>(s, t, written, seen, next);
    else
      change_rows<false>(s, t, written, seen, next);
    read = next;
    const V scale = hn::Set(f, s.scale);
    const float* q = s.q + t * s.ldq;
    float* y = s.y + t * s.ldy;
    for (int64_t n = 0;;) {
#pragma GCC unroll 4
      for (int c = 0; c < kC; ++c)
        if (s.cols > c * lanes)
          store_n(hn::Mul(scale, seen.get(c)), f, y + c * lanes, s.cols - c * lanes);
      if (++n == s.queries) break;
      q += s.query_step;
      y += s.y_step;
      const Place behind(s, t);
      seen = sum_rows<kC>(q, behind.row, behind.ldrow, s.keys);
    }
  }
}

void steps_any(const LinearSteps& s) {
  (s.width > 2 * static_cast<int64_t>(hn::Lanes(F())) ? steps_of<4> : steps_of<2>)(s);
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

int64_t linear_columns(int64_t keys, int64_t values) {
  const int64_t most = 4 * vector_floats();
  constexpr int64_t kNear = 8192;  // floats that stay in the first cache
  return values > most / 2 && keys * most <= kNear ? most : most / 2;
}

void linear_steps(const LinearSteps& steps) {
  using Fn = void(const LinearSteps&);
  TOMBOLO_TARGET(Fn, steps_any).get()(steps);
}

}  // namespace tombolo
#endif
