#include "passes/evaluate.h"

#include "base/thread_pool.h"
#include "ops/registry.h"

namespace tombolo {
namespace {

class Host final : public KernelHost {
 public:
  explicit Host(uint64_t limit) : left_(limit) {}
  Result<std::vector<RunValue>> run_graph(const Graph&, std::vector<RunValue>) override {
    return unsupported("subgraphs are not folded");
  }
  Status reserve(uint64_t bytes) override {
    if (bytes > left_) return resource_error("the result is too large to fold");
    left_ -= bytes;
    return ok();
  }
  uint64_t seed() override { return 0; }
  void parallel_for(int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t),
                    void* argument) override {
    tombolo::parallel_for(count, grain, body, argument);
  }

 private:
  uint64_t left_;
};

}  // namespace

bool can_evaluate(const Rewriter& rewriter, const Node& node) {
  const OpDecl* decl = rewriter.declaration(node);
  if (decl == nullptr || decl->reference == nullptr ||
      decl->determinism != Determinism::kDeterministic)
    return false;
  for (const Attribute& attribute : node.attributes())
    if (attribute.graph() != nullptr || attribute.is_reference() ||
        std::holds_alternative<std::vector<std::unique_ptr<Graph>>>(attribute.value))
      return false;
  return true;
}

Result<std::vector<RunValue>> evaluate(Rewriter& rewriter, const Node& node,
                                       std::span<const RunValue* const> inputs, uint64_t limit) {
  const OpDecl* decl = rewriter.declaration(node);
  if (decl == nullptr || decl->reference == nullptr)
    return unsupported("no kernel for " + std::string(node.op_type()));
  const int opset =
      node.opset_override() > 0
          ? node.opset_override()
          : static_cast<int>(std::min<int64_t>(rewriter.model().opset(node.domain()), 9999));
  Host host(limit);
  std::vector<RunValue> outputs(node.outputs().size());
  KernelContext context{node, opset, inputs, outputs, AttributeReader(node), host};
  CHECK_OK(decl->reference(context));
  return outputs;
}

namespace passes {
namespace {

/// Runs `node`, which stands in a graph of its own, on tensors.
Result<Tensor> run_alone(const Node& node, std::span<const Tensor> inputs) {
  const OpDecl* decl = find_operator("", node.op_type());
  if (decl == nullptr || decl->reference == nullptr)
    return unsupported("no kernel for " + std::string(node.op_type()));
  std::vector<RunValue> values(inputs.begin(), inputs.end());
  std::vector<const RunValue*> pointers;
  for (const RunValue& value : values) pointers.push_back(&value);
  Host host(UINT64_MAX);
  std::vector<RunValue> outputs(1);
  KernelContext context{node, latest_opset(""), pointers, outputs, AttributeReader(node), host};
  CHECK_OK(decl->reference(context));
  if (!outputs[0].is_tensor()) return runtime_error("no tensor came out");
  return outputs[0].tensor();
}

/// A node that no model holds.
struct Loose {
  Loose(Text op, size_t inputs) : graph(std::make_shared<Storage>()), node(*graph.add_node(op)) {
    for (size_t i = 0; i < inputs; ++i) node.add_input(graph.add_input("in" + std::to_string(i)));
    node.add_output("out");
  }
  Graph graph;
  Node& node;
};

}  // namespace

Result<Tensor> compute(Text op, std::span<const Tensor> inputs) {
  Loose loose(op, inputs.size());
  return run_alone(loose.node, inputs);
}

Result<Tensor> compute(Text op, std::initializer_list<Tensor> inputs) {
  return compute(op, std::span<const Tensor>(inputs.begin(), inputs.size()));
}

Result<Tensor> filled(DType dtype, std::span<const int64_t> dims, double value) {
  TRY(Tensor tensor, Tensor::allocate(dtype, dims));
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, value);
  return tensor;
}

Result<Tensor> cast_to(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  Loose loose("Cast", 1);
  loose.node.set_int("to", static_cast<int64_t>(dtype));
  return run_alone(loose.node, {&tensor, 1});
}

Result<Tensor> transposed(const Tensor& tensor, std::span<const int64_t> perm) {
  Loose loose("Transpose", 1);
  loose.node.set_ints("perm", perm);
  return run_alone(loose.node, {&tensor, 1});
}

}  // namespace passes
}  // namespace tombolo
