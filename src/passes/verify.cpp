#include "passes/verify.h"

#include <unordered_set>

namespace tombolo {
namespace {

class Verifier {
 public:
  Status graph(const Graph& graph) {
    std::vector<const Value*> defined;
    std::unordered_set<std::string_view> names;  // a subgraph's may hide those around it
    const auto define = [&](const Value* value) -> Status {
      if (&value->graph() != &graph) return broken(*value, "belongs to another graph");
      if (!visible_.insert(value).second) return broken(*value, "is defined twice");
      if (!names.insert(value->name()).second) return broken(*value, "has a name that is taken");
      // A bare tensor of a checkpoint is an initialiser without a name.
      if (value->name().empty() && !value->is_initializer()) return broken(*value, "has no name");
      defined.push_back(value);
      return ok();
    };
    for (const Value* value : graph.inputs()) CHECK_OK(define(value));
    for (const auto* list : {&graph.initializers(), &graph.sparse_initializers()})
      for (const Value* value : *list)
        if (!value->is_input()) CHECK_OK(define(value));
    for (const Node* node : graph.nodes()) {
      for (uint32_t i = 0; i < node->inputs().size(); ++i) {
        const Value* input = node->inputs()[i];
        if (input == nullptr) continue;
        if (!visible_.contains(input)) return broken(*input, "is read before it is defined", node);
        // Of a value that very many read each would look at all the others.
        constexpr size_t kMostUses = 10'000;
        const auto uses = input->uses();
        if (uses.size() >= kMostUses) continue;
        size_t found = 0;
        for (const Use& use : uses) found += use.node == node && use.index == i;
        if (found != 1) return broken(*input, "does not know its use", node);
      }
      for (const Attribute& attribute : node->attributes())
        if (const Graph* inner = attribute.graph()) {
          if (inner->parent_node() != node)
            return runtime_error("a subgraph does not know its node");
          CHECK_OK(this->graph(*inner));
        }
      for (size_t i = 0; i < node->outputs().size(); ++i) {
        const Value* output = node->outputs()[i];
        if (output == nullptr) continue;
        if (output->producer() != node || output->producer_index() != i)
          return broken(*output, "does not know its producer", node);
        CHECK_OK(define(output));
      }
    }
    for (const GraphOutput& output : graph.outputs())
      if (output.value == nullptr || !visible_.contains(output.value))
        return runtime_error("output \"" +
                             std::string(output.value ? output.value->name() : Text()) +
                             "\" is not defined");
    for (const Value* value : defined) visible_.erase(value);
    return ok();
  }

 private:
  static Error broken(const Value& value, std::string what, const Node* node = nullptr) {
    std::string message = "value \"" + std::string(value.name()) + "\" " + what;
    if (node != nullptr)
      message += " (" + std::string(node->op_type()) + " \"" + std::string(node->name()) + "\")";
    return runtime_error(std::move(message));
  }
  std::unordered_set<const Value*> visible_;
};

}  // namespace

Status verify_graph(const Model& model) {
  if (!model.graph) return ok();
  return Verifier().graph(*model.graph);
}

}  // namespace tombolo
