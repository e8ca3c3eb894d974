#pragma once

// Rewrite rules as rows: what stands in the graph, and what shall stand there, both as ONNX text.
//
//   {.name = "hard-swish",
//    .patterns = {"p (x) => (y) <float sixth = {0.16666667}, float half = {0.5}> {"
//                 "  h = HardSigmoid <alpha = @alpha, beta = 0.5> (x)  y = Mul (x, h) }"},
//    .replacement = "r (x) => (y) { y = HardSwish (x) }",
//    .condition = alpha_is_a_sixth}
//
// - Inputs of the pattern match any value; a name that stands twice must match the same value.
// - Initialisers of the pattern match constants: a scalar any constant of one element that does not
//   widen the shape, within what the element type rounds; integer lists the same list.
// - Attributes must say what the pattern says, defaults included; `name = @key` takes whatever the
//   node has. What the pattern does not mention must be its default.
// - Commutative operators match in both orders.
// - Nothing outside the match may read what lies inside it.
// The replacement's inputs are the pattern's, and what the condition binds; `@key` takes captured
// attributes. Its float constants take the element type of the value that is replaced.

#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "passes/rewriter.h"

namespace tombolo {

struct Match {
  Rewriter& rewriter;
  Node& root;
  std::map<std::string, Value*, std::less<>> values = {};         ///< by the names of the pattern
  std::map<std::string, Attribute, std::less<>> attributes = {};  ///< by key
  std::vector<Node*> nodes = {};                                  ///< matched ones, the root first

  Value* value(std::string_view name) const;
  Value* output() const { return root.output(0); }
  Graph& graph() const { return root.graph(); }
  int64_t get_int(std::string_view key, int64_t fallback) const;
  void set(std::string_view key, int64_t value);
  void set(std::string_view key, float value);
  void set(std::string_view key, std::vector<int64_t> values);
  void bind(std::string_view name, Value* value);
  DType dtype(std::string_view name) const { return rewriter.dtype(value(name)); }
};

struct RewriteRule {
  Literal name;
  std::initializer_list<Literal> patterns;
  Literal replacement;
  bool (*condition)(Match&) = nullptr;
};

/// Applies the rules wherever they match, first rule first; the number of replacements.
Result<size_t> apply_rules(Rewriter& rewriter, std::span<const RewriteRule> rules);

}  // namespace tombolo
