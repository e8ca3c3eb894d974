#pragma once

// A forward sketch of element types and ranks, one rule an operator at most: what version steps
// need before shape inference has run (inference wants the newest operators, so it comes after).

#include <vector>

#include "ops/registry.h"
#include "ops/step_context.h"

namespace tombolo {

class FactTable {
 public:
  /// Declared type, else initialiser, else what learn() has found.
  ValueFacts facts(const Value& value) const;
  /// Notes the outputs of `node`, read as `version` of its operator. Nodes must come in order.
  void learn(const Node& node, const OpVersion& version);

 private:
  void note(const Value* value, ValueFacts facts);
  std::vector<ValueFacts> found_;  ///< by Value::id
};

}  // namespace tombolo
