#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/rnn/cells.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/math-inl.h"
#include "runtime/kernels/rnn/cells.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

/// body(gates of a sequence from j on, its row, j, how many numbers) for each vector of n.
template <typename Body>
HWY_INLINE void each_vector(const float* gates, int64_t step, int64_t rows, int64_t n,
                            Body&& body) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(F()));
  for (int64_t row = 0; row < rows; ++row, gates += step)
    for (int64_t j = 0; j < n; j += lanes) body(gates + j, row, j, std::min(lanes, n - j));
}

/// (1 - z) candidate + z h
HWY_INLINE V between(V z, V candidate, V h) {
  return hn::MulAdd(z, h, hn::Mul(hn::Sub(hn::Set(F(), 1.0f), z), candidate));
}

void lstm(const float* gates, int64_t step, int64_t rows, int64_t n, float* c, float* h) {
  const F f;
  each_vector(
      gates, step, rows, n, [&](const float* g, int64_t row, int64_t j, int64_t count) HWY_ATTR {
        const int64_t at = row * n + j;
        const V in = load_n(f, g, count), out = load_n(f, g + n, count);
        const V forget = load_n(f, g + 2 * n, count), candidate = load_n(f, g + 3 * n, count);
        const V kept = v_over_one_plus_exp_negated(f, load_n(f, c + at, count), forget);
        const V cell = hn::Add(kept, v_sigmoid_times_tanh(f, in, candidate));
        store_n(cell, f, c + at, count);
        store_n(v_sigmoid_times_tanh(f, out, cell), f, h + at, count);
      });
}

void gru(const float* gates, int64_t step, int64_t rows, int64_t n, const float* inner,
         const float* h, float* next) {
  const F f;
  each_vector(
      gates, step, rows, n, [&](const float* g, int64_t row, int64_t j, int64_t count) HWY_ATTR {
        const int64_t at = row * n + j;
        const float* own = inner + row * 3 * n + j;
        const V z = v_sigmoid(f, hn::Add(load_n(f, g, count), load_n(f, own, count)));
        const V reset = v_sigmoid(f, hn::Add(load_n(f, g + n, count), load_n(f, own + n, count)));
        const V candidate = v_tanh(
            f, hn::MulAdd(reset, load_n(f, own + 2 * n, count), load_n(f, g + 2 * n, count)));
        store_n(between(z, candidate, load_n(f, h + at, count)), f, next + at, count);
      });
}

void reset_state(const float* gates, int64_t step, int64_t rows, int64_t n, const float* h,
                 float* reset) {
  const F f;
  each_vector(gates, step, rows, n,
              [&](const float* g, int64_t row, int64_t j, int64_t count) HWY_ATTR {
                const int64_t at = row * n + j;
                const V r = v_sigmoid(f, load_n(f, g + n, count));
                store_n(hn::Mul(r, load_n(f, h + at, count)), f, reset + at, count);
              });
}

void update_state(const float* gates, int64_t step, int64_t rows, int64_t n, const float* h,
                  float* next) {
  const F f;
  each_vector(gates, step, rows, n,
              [&](const float* g, int64_t row, int64_t j, int64_t count) HWY_ATTR {
                const int64_t at = row * n + j;
                const V z = v_sigmoid(f, load_n(f, g, count));
                const V candidate = v_tanh(f, load_n(f, g + 2 * n, count));
                store_n(between(z, candidate, load_n(f, h + at, count)), f, next + at, count);
              });
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

void lstm_cells(const float* gates, int64_t step, int64_t rows, int64_t n, float* c, float* h) {
  using Fn = void(const float*, int64_t, int64_t, int64_t, float*, float*);
  TOMBOLO_TARGET(Fn, lstm)(gates, step, rows, n, c, h);
}
void gru_cells(const float* gates, int64_t step, int64_t rows, int64_t n, const float* inner,
               const float* h, float* next) {
  using Fn = void(const float*, int64_t, int64_t, int64_t, const float*, const float*, float*);
  TOMBOLO_TARGET(Fn, gru)(gates, step, rows, n, inner, h, next);
}
using StateFn = void(const float*, int64_t, int64_t, int64_t, const float*, float*);
void gru_reset(const float* gates, int64_t step, int64_t rows, int64_t n, const float* h,
               float* reset) {
  TOMBOLO_TARGET(StateFn, reset_state)(gates, step, rows, n, h, reset);
}
void gru_update(const float* gates, int64_t step, int64_t rows, int64_t n, const float* h,
                float* next) {
  TOMBOLO_TARGET(StateFn, update_state)(gates, step, rows, n, h, next);
}

}  // namespace tombolo
#endif
