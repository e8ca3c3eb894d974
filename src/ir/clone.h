#pragma once

// Deep copies of graphs and nodes: cloning a model, inlining a function, copying a pattern.

#include <memory>
#include <unordered_map>

#include "ir/model.h"

namespace tombolo {

/// Copies nodes and graphs into a target storage. The source's storage is kept alive by the target,
/// so that names and tensor bytes are shared; types are interned anew.
class Cloner {
 public:
  Cloner(const StoragePtr& source, const StoragePtr& target);

  /// What each source value became. Preset entries redirect (function inputs to call arguments).
  std::unordered_map<const Value*, Value*> values;

  /// Copies everything of `from` into the empty graph `to`.
  void graph(const Graph& from, Graph& to);
  /// Copies `node` (with its subgraphs) before `before`, or at the end. Inputs are mapped through
  /// `values`; a value that is not there is taken as it is when it belongs to the target storage,
  /// else becomes an undefined value of that name.
  Node* node(const Node& node, Graph& to, Node* before = nullptr);
  Attribute attribute(const Attribute& from, Graph* parent_graph, Node* parent_node);
  const Type* type(const Type* from);

 private:
  Value* mapped(const Value* value, Graph& to);
  Value* declare(const Value& from, Graph& to);

  StoragePtr source_, target_;
  std::unordered_map<const Type*, const Type*> types_;
};

Constant copy(const Constant& from);
SparseConstant copy(const SparseConstant& from);
ValueInfo copy_info(const ValueInfo& from, const Type* type);

}  // namespace tombolo
