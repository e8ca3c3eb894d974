#pragma once

#include "ops/kernels/derivatives.h"

namespace tombolo::ops {

/// RNN, GRU and LSTM, step by step. Refuses clip, layout 1, sequences of different lengths, and
/// activations that have parameters.
std::vector<Var> decompose_recurrent(Differentiation& d);

}  // namespace tombolo::ops
