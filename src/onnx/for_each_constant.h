#pragma once

// Every tensor of a model: initialisers, sparse ones, attributes, in all graphs and functions.

#include "ir/model.h"

namespace tombolo::onnx {

template <typename Visit>
void constants_of(const Graph& graph, Visit&& visit);

template <typename Visit>
void constants_of(const SparseConstant& sparse, Visit&& visit) {
  if (sparse.has_values) visit(sparse.values);
  if (sparse.has_indices) visit(sparse.indices);
}

template <typename Visit>
void constants_of(const Attribute& attribute, Visit&& visit) {
  if (auto* tensor = std::get_if<std::unique_ptr<Constant>>(&attribute.value)) visit(**tensor);
  if (auto* tensors = std::get_if<std::vector<Constant>>(&attribute.value))
    for (const Constant& item : *tensors) visit(item);
  if (auto* sparse = std::get_if<std::unique_ptr<SparseConstant>>(&attribute.value))
    constants_of(**sparse, visit);
  if (auto* sparses = std::get_if<std::vector<SparseConstant>>(&attribute.value))
    for (const SparseConstant& item : *sparses) constants_of(item, visit);
  if (auto* graph = std::get_if<std::unique_ptr<Graph>>(&attribute.value))
    constants_of(**graph, visit);
  if (auto* graphs = std::get_if<std::vector<std::unique_ptr<Graph>>>(&attribute.value))
    for (const auto& item : *graphs) constants_of(*item, visit);
}

template <typename Visit>
void constants_of(const Graph& graph, Visit&& visit) {
  for (const Value* value : graph.initializers()) visit(*value->initializer());
  for (const Value* value : graph.sparse_initializers())
    constants_of(*value->sparse_initializer(), visit);
  for (const Node* node : graph.nodes())
    for (const Attribute& attribute : node->attributes()) constants_of(attribute, visit);
}

/// Calls visit(const Constant&) for each, in file order.
template <typename Visit>
void for_each_constant(const Model& model, Visit&& visit) {
  if (model.graph) constants_of(*model.graph, visit);
  for (const TrainingInfo& training : model.training) {
    if (training.initialization) constants_of(*training.initialization, visit);
    if (training.algorithm) constants_of(*training.algorithm, visit);
  }
  for (const auto& function : model.functions) {
    for (const Attribute& attribute : function->attribute_protos) constants_of(attribute, visit);
    constants_of(function->body, visit);
  }
}

}  // namespace tombolo::onnx
