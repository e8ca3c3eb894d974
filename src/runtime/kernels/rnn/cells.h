#pragma once

// LSTM and GRU with their usual functions, from the products on: what is left of a step in one
// pass. Gates lie one behind the other, n numbers each, in the order of the ONNX operators; from
// one sequence of a batch to the next are `step` floats. States and cells are [rows, n].

#include <cstdint>

namespace tombolo {

/// Gates i, o, f and the candidate. `c` becomes the next cell, `h` gets the next state.
void lstm_cells(const float* gates, int64_t step, int64_t rows, int64_t n, float* c, float* h);

/// GRU with linear_before_reset = 1: what the input gives the gates z, r and the candidate;
/// `inner`, [rows, 3 n]: what the state gives them. `next` may be h.
void gru_cells(const float* gates, int64_t step, int64_t rows, int64_t n, const float* inner,
               const float* h, float* next);

/// GRU with linear_before_reset = 0, before the candidate's product: reset = sigmoid(r) h.
void gru_reset(const float* gates, int64_t step, int64_t rows, int64_t n, const float* h,
               float* reset);
/// And after it: gates z, r and the candidate. `next` may be h.
void gru_update(const float* gates, int64_t step, int64_t rows, int64_t n, const float* h,
                float* next);

}  // namespace tombolo
