#pragma once

// Operators that work element by element (transposes.cpp).

#include "passes/rewriter.h"

namespace tombolo::passes {

/// One result for each element of the first input; other inputs have no axes.
bool is_unary_elementwise(const Rewriter& rewriter, const Node& node);

/// Add, Sub, Mul, Div, Max, Min, Pow or PRelu.
bool is_binary_arithmetic(const Rewriter& rewriter, const Node& node);

}  // namespace tombolo::passes
