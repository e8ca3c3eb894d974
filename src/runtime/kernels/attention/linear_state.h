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
  float* state;  ///< and after
  int64_t ldstate;
  int64_t cols;  ///< columns of v and y, from 1 on
};
int linear_columns();
void linear_steps(const LinearSteps& steps);

}  // namespace tombolo
