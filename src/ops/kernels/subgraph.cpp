#include "ops/kernels/subgraph.h"

#include <algorithm>

#include "ops/registry.h"

namespace tombolo::ops {

Result<const Graph*> body_graph(const KernelContext& context, const char* name, int64_t inputs) {
  const Graph* graph = context.attributes.get_graph(name);
  if (graph == nullptr) return context.error("attribute " + std::string(name) + " is missing");
  if (inputs >= 0 && graph->inputs().size() != static_cast<size_t>(inputs))
    return context.error(std::string(name) + " has " + std::to_string(graph->inputs().size()) +
                         " inputs, but the node gives it " + std::to_string(inputs));
  return graph;
}

Result<std::vector<RunValue>> run_body(const KernelContext& context, const Graph& graph,
                                       std::vector<RunValue> inputs, size_t outputs) {
  TRY(std::vector<RunValue> results, context.host.run_graph(graph, std::move(inputs)));
  if (results.size() != outputs)
    return context.error("the body gives " + std::to_string(results.size()) +
                         " outputs where the node needs " + std::to_string(outputs));
  return results;
}

Result<Tensor> tensor_of(const KernelContext& context, const RunValue& value, const char* what) {
  if (!value.is_tensor()) return context.error(std::string(what) + " must be a tensor");
  return value.tensor();
}

Result<bool> bool_of(const KernelContext& context, const RunValue& value, const char* what) {
  TRY(const Tensor tensor, tensor_of(context, value, what));
  if (tensor.dtype() != DType::kBool || tensor.size() != 1)
    return context.error(std::string(what) + " must be one bool, is " + to_string(tensor));
  return tensor.data<bool>()[0];
}

bool is_deterministic(const Graph& graph) {
  for (const Node* node : graph.nodes()) {
    const OpDecl* decl = find_operator(node->domain(), node->op_type());
    if (decl == nullptr || decl->determinism == Determinism::kRandom) return false;
    for (const Attribute& attribute : node->attributes()) {
      if (const Graph* inner = attribute.graph(); inner != nullptr && !is_deterministic(*inner))
        return false;
      if (std::holds_alternative<std::vector<std::unique_ptr<Graph>>>(attribute.value))
        return false;
    }
  }
  return true;
}

namespace {

const Type* declared_type(const Graph& graph, size_t index) {
  if (index >= graph.outputs().size()) return nullptr;
  const GraphOutput& output = graph.outputs()[index];
  if (output.declared && output.declared->type != nullptr) return output.declared->type;
  return output.value != nullptr ? output.value->type() : nullptr;
}

}  // namespace

Result<DType> output_type(const KernelContext& context, const Graph& graph, size_t index) {
  const Type* type = declared_type(graph, index);
  if (type == nullptr || !type->is_tensor() || type->dtype() == DType::kUndefined)
    return context.error("the body never ran, and does not declare the type of its output " +
                         std::to_string(index));
  return type->dtype();
}

Result<Tensor> empty_scan_output(const KernelContext& context, const Graph& graph, size_t index,
                                 int64_t axis) {
  TRY(const DType dtype, output_type(context, graph, index));
  Dims dims;
  for (const Dim& dim : declared_type(graph, index)->dims)
    dims.push_back(dim.kind == Dim::Kind::kValue ? std::max<int64_t>(dim.value, 0) : 0);
  TRY(axis, normalize_axis(axis, static_cast<int64_t>(dims.size()) + 1));
  dims.insert(static_cast<uint32_t>(axis), 0);
  return context.allocate(dtype, dims);
}

}  // namespace tombolo::ops
