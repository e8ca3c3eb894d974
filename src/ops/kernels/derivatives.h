#pragma once

// Derivatives of operators, for Gradient: each rule says the gradients of a node's inputs in other
// operators, which the reference kernels compute and the tape records, so that they can be
// differentiated again.

#include <string_view>
#include <vector>

#include "ops/kernels/calculus.h"

namespace tombolo::ops {

/// A node whose outputs' gradients are known.
struct Differentiation {
  Tape& calculus;
  const Node& node;
  int opset;
  const AttributeBinding* binding;
  std::span<const Var> inputs, outputs;  ///< absent where not given
  std::span<const Var> gradients;        ///< of the outputs; absent where y does not depend
  std::span<Var> result;                 ///< of the inputs, to be filled

  const Var& x(size_t index) const { return inputs[index]; }
  bool has(size_t index) const { return index < inputs.size() && !absent(inputs[index]); }
  const Var& y() const { return outputs[0]; }
  const Var& dy() const { return gradients[0]; }
  AttributeReader attributes() const { return {node, binding}; }
};

using DerivativeFn = void (*)(Differentiation&);

/// The rule of an operator of ai.onnx; null when it has none. An operator that does not depend
/// smoothly on its inputs (Shape, Greater, Floor) has a rule that says nothing.
DerivativeFn derivative_of(std::string_view op);

// Rules for whole families (training/derivatives_general.cpp).
/// Operators that only move elements: where each came from is found by moving their numbers.
void derive_movement(Differentiation& d);
/// Operators linear in their first input and without a smooth dependence on others: by their
/// matrix.
void derive_linear(Differentiation& d);
void derive_scatter_elements(Differentiation& d);
void derive_scatter_nd(Differentiation& d);
void derive_selection(Differentiation& d);
void derive_max_pool(Differentiation& d);
void derive_top_k(Differentiation& d);
void derive_einsum(Differentiation& d);

/// Operators said in simpler ones, on the tape: gives the node's outputs.
using DecompositionFn = std::vector<Var> (*)(Differentiation&);
DecompositionFn decomposition_of(std::string_view op);

}  // namespace tombolo::ops
