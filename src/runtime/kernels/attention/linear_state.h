#pragma once

#include <cstdint>

namespace tombolo {

/// Steps of linear attention on some columns of a head's state: state = gate state + k written,
/// where written = beta (v - k gate state), or v; y = scale q state.
struct LinearSteps {
  int64_t steps, keys;      ///< keys: rows of the state
  const float *gates, *gk;  ///< [steps][keys]: what is kept of a row; that times the key
  const float *k, *v, *q;
  int64_t ldk, ldv, ldq;  ///< from step to step
  const float* beta;      ///< null: what is written is v
  int64_t ldbeta;
  int64_t queries, query_step, y_step;  ///< queries that share the state
  float scale;
  float* y;
  int64_t ldy;
  const float* from;  ///< the state before, rows ldfrom apart: whole linear_columns()
  int64_t ldfrom;
  float* state;  ///< and between steps
  int64_t ldstate;
  float* to;  ///< and after the last
  int64_t ldto;
  int64_t width;  ///< linear_columns()
  int64_t cols;   ///< columns of v and y, from 1 on
};
/// Columns of a state that are worked on together.
int64_t linear_columns(int64_t keys, int64_t values);
void linear_steps(const LinearSteps& steps);

}  // namespace tombolo
