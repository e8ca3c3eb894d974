#pragma once

// Operators that read a tensor at computed positions, and products of many factors, said in simpler
// ones on the tape (for Gradient).

#include <vector>

#include "ops/kernels/derivatives.h"

namespace tombolo::ops {

std::vector<Var> decompose_grid_sample(Differentiation& d);
std::vector<Var> decompose_deform_conv(Differentiation& d);
std::vector<Var> decompose_cum_prod(Differentiation& d);
std::vector<Var> decompose_det(Differentiation& d);
std::vector<Var> decompose_reduce_prod(Differentiation& d);

}  // namespace tombolo::ops
