#pragma once

// Operators that work element by element (transposes.cpp).

#include <optional>

#include "passes/rewriter.h"

namespace tombolo::passes {

/// One result for each element of the first input; other inputs have no axes.
bool is_unary_elementwise(const Rewriter& rewriter, const Node& node);

/// Add, Sub, Mul, Div, Max, Min, Pow or PRelu.
bool is_binary_arithmetic(const Rewriter& rewriter, const Node& node);

/// What a node works on element by element, beside constants; null where it is no such node, or
/// gives another shape (views.cpp).
Value* element_source(const Rewriter& rewriter, const Node& node);

/// The number that a ConstantOfShape fills with (dead_code.cpp).
std::optional<double> filling_of(const Node& constant_of_shape);

/// All elements are 0, for every shape that the value may have (dead_code.cpp).
bool is_all_zero(const Rewriter& rewriter, const Value* value);

}  // namespace tombolo::passes
