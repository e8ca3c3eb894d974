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

/// Two vectors of columns, which stay in the first cache through all steps.
void steps_any(const LinearSteps& s) {
  const hn::ScalableTag<float> f;
  using V = hn::Vec<decltype(f)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(f));
  const float *gates = s.gates, *gk = s.gk;
  for (int64_t t = 0; t < s.steps; ++t, gates += s.keys, gk += s.keys) {
    const float* const from = t == 0 ? s.from : s.state;
    const int64_t width = t == 0 ? s.ldfrom : s.ldstate;
    const float *k = s.k + t * s.ldk, *v = s.v + t * s.ldv, *q = s.q + t * s.ldq;
    V written[2] = {load_n(f, v, s.cols), load_n(f, v + lanes, s.cols - lanes)};
    if (s.beta != nullptr) {
      V sum[4] = {hn::Zero(f), hn::Zero(f), hn::Zero(f), hn::Zero(f)};
      const float* row = from;
      int64_t i = 0;
      for (; i + 2 <= s.keys; i += 2, row += 2 * width) {
        const V first = hn::Set(f, gk[i]), second = hn::Set(f, gk[i + 1]);
        sum[0] = hn::MulAdd(first, hn::LoadU(f, row), sum[0]);
        sum[1] = hn::MulAdd(first, hn::LoadU(f, row + lanes), sum[1]);
        sum[2] = hn::MulAdd(second, hn::LoadU(f, row + width), sum[2]);
        sum[3] = hn::MulAdd(second, hn::LoadU(f, row + width + lanes), sum[3]);
      }
      if (i < s.keys) {
        sum[0] = hn::MulAdd(hn::Set(f, gk[i]), hn::LoadU(f, row), sum[0]);
        sum[1] = hn::MulAdd(hn::Set(f, gk[i]), hn::LoadU(f, row + lanes), sum[1]);
      }
      const V beta = hn::Set(f, s.beta[t * s.ldbeta]);
      written[0] = hn::Mul(beta, hn::Sub(written[0], hn::Add(sum[0], sum[2])));
      written[1] = hn::Mul(beta, hn::Sub(written[1], hn::Add(sum[1], sum[3])));
    }
    V seen[2] = {hn::Zero(f), hn::Zero(f)};
    const float* old = from;
    float* row = s.state;
    for (int64_t i = 0; i < s.keys; ++i, old += width, row += s.ldstate) {
      const V gate = hn::Set(f, gates[i]), key = hn::Set(f, k[i]), query = hn::Set(f, q[i]);
#pragma GCC unroll 2
      for (int c = 0; c < 2; ++c) {
        const V state = hn::MulAdd(key, written[c], hn::Mul(gate, hn::LoadU(f, old + c * lanes)));
        hn::StoreU(state, f, row + c * lanes);
        seen[c] = hn::MulAdd(query, state, seen[c]);
      }
    }
    const V scale = hn::Set(f, s.scale);
    float* y = s.y + t * s.ldy;
    for (int64_t n = 0;;) {
      store_n(hn::Mul(scale, seen[0]), f, y, s.cols);
      if (s.cols > lanes) store_n(hn::Mul(scale, seen[1]), f, y + lanes, s.cols - lanes);
      if (++n == s.queries) break;
      q += s.query_step;
      y += s.y_step;
      seen[0] = seen[1] = hn::Zero(f);
      row = s.state;
      for (int64_t i = 0; i < s.keys; ++i, row += s.ldstate) {
        const V query = hn::Set(f, q[i]);
        seen[0] = hn::MulAdd(query, hn::LoadU(f, row), seen[0]);
        seen[1] = hn::MulAdd(query, hn::LoadU(f, row + lanes), seen[1]);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

int linear_columns() { return 2 * vector_floats(); }

void linear_steps(const LinearSteps& steps) {
  using Fn = void(const LinearSteps&);
  TOMBOLO_TARGET(Fn, steps_any).get()(steps);
}

}  // namespace tombolo
#endif
