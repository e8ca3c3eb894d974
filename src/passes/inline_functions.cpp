// Calls of the model's functions are replaced by their bodies.

#include "passes/passes.h"
#include "passes/splice.h"

namespace tombolo::passes {
namespace {

constexpr int kMaxDepth = 100;         ///< calls inside calls: as upstream's checker
constexpr size_t kMaxNodes = 100'000;  ///< of what inlining may make: beyond, calls stay calls

class Inliner {
 public:
  explicit Inliner(Rewriter& rewriter) : rewriter_(rewriter), model_(rewriter.model()) {}

  Result<size_t> run() {
    if (model_.functions.empty() || !model_.graph) return count_;
    for (auto& function : model_.functions)
      if (!function->body.sort() || uses_undefined(function->body))
        return count_;  // the checker says why
    CHECK_OK(graph(*model_.graph, 0));
    forget_unused();
    if (count_ != 0) rewriter_.changed();
    return count_;
  }

 private:
  Status graph(Graph& graph, int depth) {
    return calls_between(graph, graph.first_node(), nullptr, depth);
  }

  /// Expands the calls from `first` up to `end` (null: to the last node), and what their bodies
  /// call.
  Status calls_between(Graph& graph, Node* first, Node* end, int depth) {
    for (Node *node = first, *next; node != end && node != nullptr; node = next) {
      next = node->next();
      for (Attribute& attribute : node->attributes())
        if (Graph* inner = attribute.graph()) CHECK_OK(this->graph(*inner, depth));
      const Function* function =
          model_.find_function(node->domain(), node->op_type(), node->overload());
      if (function == nullptr || !can_inline(*function) || !gives_all(*function, *node)) continue;
      const size_t size = expanded_size(*function, depth);
      if (too_deep_)
        return parse_error("functions call each other too deeply, or one calls itself");
      if (made_ + size > kMaxNodes) continue;
      Node* const before = node->previous();
      made_ += function->body.node_count();
      // A call that asks for more than the function gives stays; running it says so.
      Node* const after = expand(*node, *function) ? next : node;
      ++count_;
      CHECK_OK(calls_between(graph, before != nullptr ? before->next() : graph.first_node(), after,
                             depth + 1));
    }
    return ok();
  }

  /// Nodes of a function's body when all calls in it are expanded too; kMaxNodes + 1 for more.
  size_t expanded_size(const Function& function, int depth) {
    if (const auto known = sizes_.find(&function); known != sizes_.end()) return known->second;
    size_t size = 0;
    too_deep_ |= depth > kMaxDepth;
    if (!too_deep_)
      for_each_graph(const_cast<Graph&>(function.body), [&](const Graph& graph) {  // only read
        for (const Node* node : graph.nodes()) {
          const Function* called =
              size > kMaxNodes || too_deep_
                  ? nullptr
                  : model_.find_function(node->domain(), node->op_type(), node->overload());
          size += called != nullptr ? expanded_size(*called, depth + 1) : 1;
        }
      });
    return sizes_[&function] = std::min(size, kMaxNodes + 1);
  }

  static bool uses_undefined(Graph& body) {
    bool found = false;
    for_each_graph(body, [&](Graph& graph) {
      for (const Node* node : graph.nodes())
        for (const Value* input : node->inputs())
          found |= input != nullptr && input->is_undefined();
      for (const GraphOutput& output : graph.outputs())
        found |= output.value == nullptr || output.value->is_undefined();
    });
    return found;
  }

  /// The body is read under the model's operator sets, or under ones that the model does not
  /// import.
  bool can_inline(const Function& function) const {
    for (const OpsetImport& import : function.opset_imports) {
      const int64_t model = model_.opset(import.domain);
      if (model != 0 && model != import.version && !function_domain(import.domain)) return false;
    }
    return true;
  }
  bool function_domain(Text domain) const {
    for (const auto& function : model_.functions)
      if (canonical_domain(function->domain) == canonical_domain(domain)) return true;
    return false;
  }

  static bool gives_all(const Function& function, const Node& call) {
    for (size_t i = function.body.outputs().size(); i < call.outputs().size(); ++i)
      if (call.output(i) != nullptr && call.output(i)->has_uses()) return false;
    return true;
  }

  /// Whether the call is gone.
  bool expand(Node& call, const Function& function) {
    for (const OpsetImport& import : function.opset_imports)
      if (model_.opset(import.domain) == 0) model_.set_opset(import.domain, import.version);
    std::vector<Node*> made;
    const std::vector<Value*> given(call.inputs().begin(), call.inputs().end());
    const std::vector<Value*> outputs = splice(rewriter_, function.body, given, call, &made);
    for (Node* node : made) bind_attributes(model_.storage_ptr(), *node, call, function);
    for (size_t i = 0; i < call.outputs().size(); ++i)
      if (call.output(i) != nullptr && i < outputs.size() && outputs[i] != nullptr)
        rewriter_.replace(*call.output(i), *outputs[i]);
    if (call_is_used(call)) return false;
    rewriter_.erase(call);
    return true;
  }
  static bool call_is_used(const Node& call) {
    for (const Value* output : call.outputs())
      if (output != nullptr && output->has_uses()) return true;
    return false;
  }

  void forget_unused() {
    for (bool again = true; again;) {
      again = false;
      for (size_t i = 0; i < model_.functions.size(); ++i) {
        const Function& function = *model_.functions[i];
        bool used = false;
        const auto look = [&](Graph& graph) {
          for (const Node* node : graph.nodes())
            used |= model_.find_function(node->domain(), node->op_type(), node->overload()) ==
                    &function;
        };
        for_each_graph(*model_.graph, look);
        for (TrainingInfo& training : model_.training) {
          if (training.initialization) for_each_graph(*training.initialization, look);
          if (training.algorithm) for_each_graph(*training.algorithm, look);
        }
        for (auto& other : model_.functions) for_each_graph(other->body, look);
        if (used) continue;
        model_.functions.erase(model_.functions.begin() + static_cast<std::ptrdiff_t>(i));
        again = true;
        break;
      }
    }
    rewriter_.functions_changed();
  }

  std::unordered_map<const Function*, size_t> sizes_;  ///< of expanded bodies
  bool too_deep_ = false;
  Rewriter& rewriter_;
  Model& model_;
  size_t count_ = 0, made_ = 0;
};

}  // namespace

Result<size_t> inline_functions(Rewriter& rewriter) { return Inliner(rewriter).run(); }

}  // namespace tombolo::passes
