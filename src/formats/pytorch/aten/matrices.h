#pragma once

// What operators on matrices share; batches stand in front.

#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {

/// A Loop over 0 .. count-1 that carries values of fixed types. body(i, state) -> new state.
template <typename Body>
Values loop(AtenContext& c, const SymInt& count, const Values& initial, Body&& body) {
  Values inputs = {c.int_value(count), nullptr};
  inputs.insert(inputs.end(), initial.begin(), initial.end());
  Node* node = c.b.begin("Loop", inputs);
  Graph& graph = node->set_graph("body");
  graph.name = "step";
  c.enter(graph);
  Value* i = c.b.input("i", DType::kInt64, {});
  Value* go_on = c.b.input("go_on", DType::kBool, {});
  Values state;
  for (Value* one : initial)
    state.push_back(c.b.input("state", c.dtype(one), SymShape(c.b.shape(one))));
  Values next = body(i, state);
  graph.add_output(c.op("Identity", {go_on}));
  for (Value*& one : next) {
    if (!one->producer() || &one->graph() != &graph || one->output_uses() != 0)
      one = c.op("Identity", {one});
    graph.add_output(one);
  }
  c.leave();
  Values results = c.b.finish(node, initial.size());
  for (size_t k = 0; k < results.size(); ++k)
    c.b.set_type(results[k], c.dtype(initial[k]), SymShape(c.b.shape(initial[k])));
  return results;
}

/// The sizes but the last `tail`.
SymInts lead_sizes(AtenContext& c, Value* x, int64_t tail);
Value* column_of(AtenContext& c, Value* m, Value* i);  ///< [.., n, 1]
Value* row_of(AtenContext& c, Value* m, Value* i);     ///< [.., 1, n]
Value* identity(AtenContext& c, const SymInt& n, DType type);
Value* identity_like(AtenContext& c, Value* a);
/// Computed in double and rounded once.
Value* wide(AtenContext& c, Value* x);
/// Refuses where the argument is complex.
bool real_only(AtenContext& c, std::string_view name);

/// Q [.., n, n or k] and R of A [.., n, m] with the signs that LAPACK gives; both double.
struct Orthogonal {
  Value *q, *r;
};
Orthogonal factored(AtenContext& c, Value* a, bool whole);
/// The same of complex numbers, which are pairs.
Orthogonal factored_pairs(AtenContext& c, Value* a, bool whole);
/// Real and imaginary part below each other, [.., 2 n, m], and pairs again.
Value* stacked(AtenContext& c, Value* pairs);
Value* unstacked(AtenContext& c, Value* x);
/// Of pairs: the real matrix (A -B; B A), which has every eigenvalue and singular value of A + iB
/// twice.
Value* embedded(AtenContext& c, Value* pairs);
/// The conjugate of the transposed matrix, of pairs.
Value* adjoint(AtenContext& c, Value* pairs);
/// Eigenvalues of symmetric A [.., n, n], from the least; double.
struct Eigen {
  Value *values, *vectors;  ///< [.., n] and [.., n, n]
};
Eigen eigen_of(AtenContext& c, Value* a);
/// Of a Hermitian matrix of pairs; the vectors are pairs.
Eigen eigen_of_pairs(AtenContext& c, Value* a);
/// Singular values of A [.., n, m], from the largest; double.
struct Singular {
  Value *u, *values, *v;  ///< u [.., n, k] and v [.., m, k] where asked for
};
Singular singular_of(AtenContext& c, Value* a, bool vectors);
Singular singular_of_pairs(AtenContext& c, Value* a);

}  // namespace tombolo::pytorch
