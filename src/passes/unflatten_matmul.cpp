// Reshape(MatMul(Reshape(a), Reshape(b))): PyTorch's bmm takes three axes, so batches of more are
// flattened around it. MatMul takes them as they are.

#include "passes/passes.h"
#include "passes/rule.h"

namespace tombolo::passes {
namespace {

/// Only the axes in front of the matrices were joined.
bool only_batches(Match& match) {
  const SymShape *a = match.rewriter.shape(match.value("a")),
                 *b = match.rewriter.shape(match.value("b")),
                 *x = match.rewriter.shape(match.value("x")),
                 *w = match.rewriter.shape(match.value("w")),
                 *y = match.rewriter.shape(match.output());
  if (a == nullptr || b == nullptr || x == nullptr || w == nullptr || y == nullptr) return false;
  const size_t rank = a->size();
  if (rank < 4 || b->size() != rank || y->size() != rank || x->size() != 3 || w->size() != 3)
    return false;
  for (size_t i = 0; i + 2 < rank; ++i)
    if (!(*a)[i].equals((*b)[i]) || !(*a)[i].equals((*y)[i])) return false;
  return (*a)[rank - 2].equals((*x)[1]) && (*a)[rank - 1].equals((*x)[2]) &&
         (*b)[rank - 2].equals((*w)[1]) && (*b)[rank - 1].equals((*w)[2]) &&
         (*a)[rank - 2].equals((*y)[rank - 2]) && (*b)[rank - 1].equals((*y)[rank - 1]);
}

constexpr RewriteRule kRules[] = {
    {.name = "unflatten-matmul",
     .patterns = {"p (a, s, b, t, u) => (y) { x = Reshape (a, s) w = Reshape (b, t)"
                  " m = MatMul (x, w) y = Reshape (m, u) }"},
     .replacement = "r (a, b) => (y) { y = MatMul (a, b) }",
     .condition = only_batches},
};

}  // namespace

Result<size_t> unflatten_matmul(Rewriter& rewriter) { return apply_rules(rewriter, kRules); }

}  // namespace tombolo::passes
