#include "runtime/run_node.h"

#include <string>
#include <utility>

#include "ir/clone.h"
#include "runtime/session.h"

namespace tombolo {

Result<std::vector<RunValue>> run_node(const Node& node, int64_t opset,
                                       std::span<const RunValue* const> inputs) {
  auto model = std::make_unique<Model>(Model::create(opset));
  model->set_opset(node.domain(), opset);
  Graph& graph = *model->graph;
  Cloner cloner(node.graph().storage_ptr(), model->storage_ptr());
  std::vector<RunValue> given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    auto [entry, added] = cloner.values.try_emplace(node.input(i), nullptr);
    if (!added) continue;
    entry->second = graph.add_input("input" + std::to_string(i));
    if (inputs[i]->is_tensor()) {
      const Tensor& tensor = inputs[i]->tensor();
      std::vector<Dim> dims;
      for (const int64_t size : tensor.dims()) dims.push_back(Dim::of(size));
      entry->second->set_type(Type::tensor(tensor.dtype(), std::move(dims)));
    }
    given.push_back(*inputs[i]);
  }
  const Node& copy = *cloner.node(node, graph);
  for (Value* output : copy.outputs())
    if (output != nullptr) graph.add_output(output);
  SessionOptions options;
  options.specialise = false;
  TRY(const auto session, Session::create(std::move(model), options));
  TRY(auto results, session->run_ordered(std::move(given)));
  std::vector<RunValue> outputs(node.outputs().size());
  for (size_t i = 0, at = 0; i < outputs.size(); ++i)
    if (copy.output(i) != nullptr) outputs[i] = std::move(results[at++]);
  return outputs;
}

}  // namespace tombolo
