#pragma once

// Shape inference: types, shapes and small integer values of a model's values, with dimensions as
// expressions over the inputs' dimensions.

#include <memory>
#include <span>

#include "analysis/type_pool.h"
#include "base/diagnostic.h"
#include "ir/model.h"
#include "ops/registry.h"

namespace tombolo {

/// The inferred facts of a model that is not changed. Reports contradictions as diagnostics
/// (rules.inc, first section) and goes on. References must outlive it.
class Inference {
 public:
  explicit Inference(const Model& model);
  ~Inference();
  void run(Diagnostics& diagnostics);

  /// Declared and inferred facts merged; null when nothing is known. Values inside a function hold
  /// what the last call of it gave.
  const InferType* type(const Value& value) const;
  /// Elements of a small integer tensor, where known; null otherwise.
  const SymShape* elements(const Value& value) const;

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

/// What the schema says of output `index`, where the inference function of the operator left that
/// open; `bound` has its type variables as the inputs are.
void fill_from_schema(const OpVersion& version, size_t index, std::span<const InferType> bound,
                      InferType& type);

/// Infers and writes: types of values, entries in value_info for values that had none, dimensions
/// that are expressions as dim_param. What the file declares is refined, never lost.
void infer_types(Model& model, Diagnostics& diagnostics);

}  // namespace tombolo
