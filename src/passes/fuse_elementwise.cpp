// For the runtime: chains and trees of operators of single elements become one node
// (runtime_operators.h), so that what is between them is never stored.

#include <algorithm>
#include <limits>
#include <set>

#include "ops/tombolo/elementwise.h"
#include "passes/passes.h"
#include "passes/runtime_operators.h"

namespace tombolo::passes {
namespace {

using ops::ElementwiseOp;

constexpr size_t kMaxReal = 8;  ///< inputs beside constants of one element
constexpr size_t kMaxSteps = 64;

/// How one node is a step; op is null when it is none.
struct Step {
  const ElementwiseOp* op = nullptr;
  float params[2] = {0, 0};
};

class Fuser {
 public:
  Fuser(Rewriter& rewriter, Graph& graph) : rewriter_(rewriter), graph_(graph) {}

  size_t run() {
    split_many();
    std::vector<Node*> nodes;
    for (Node* node : graph_.nodes()) nodes.push_back(node);
    for (size_t i = 0; i < nodes.size(); ++i) position_[nodes[i]] = i;
    size_t count = 0;
    // From the end: a node joins the group of its readers, or heads one of its own.
    for (size_t i = nodes.size(); i-- > 0;)
      if (!taken_.contains(nodes[i])) count += fuse(*nodes[i]);
    return count;
  }

 private:
  /// Max, Min and Sum of many inputs are folded from the left: two at a time here.
  void split_many() {
    std::vector<Node*> many;
    for (Node* node : graph_.nodes())
      if (node->inputs().size() > 2 && node->outputs().size() == 1 && node->output(0) != nullptr &&
          (rewriter_.is(node, "Max") || rewriter_.is(node, "Min") || rewriter_.is(node, "Sum")) &&
          rewriter_.dtype(node->output(0)) == DType::kFloat32)
        many.push_back(node);
    for (Node* node : many) {
      const Text op = rewriter_.is(node, "Sum") ? Text("Add") : node->op_type();
      Value* so_far = node->input(0);
      for (size_t i = 1; i < node->inputs().size(); ++i) {
        Node& pair = rewriter_.add(*node, op, {so_far, node->input(i)}, node->output(0)->name());
        rewriter_.touch(pair);
        so_far = pair.output(0);
      }
      rewriter_.supersede(*node->output(0), *so_far);
    }
  }

  Step step_of(const Node& node) const {
    if (node.outputs().size() != 1 || node.output(0) == nullptr || node.inputs().empty()) return {};
    std::string name(node.op_type());
    if (name == "Sum") name = "Add";
    const AttributeReader attributes(node);
    if (name == "Gelu" && attributes.get_string("approximate", "none") == "tanh") name = "GeluTanh";
    Step step{ops::find_elementwise(name)};
    if (step.op == nullptr || !rewriter_.is(&node, node.op_type())) return {};
    if (rewriter_.dtype(node.output(0)) != DType::kFloat32) return {};
    const auto operands = static_cast<size_t>(step.op->operands);
    if (name == "Clip") {
      constexpr float kInfinity = std::numeric_limits<float>::infinity();
      for (size_t i = 0; i < 2; ++i) {
        step.params[i] = i == 0 ? -kInfinity : kInfinity;
        if (node.input(i + 1) == nullptr) continue;
        const auto bound = rewriter_.scalar(node.input(i + 1));
        if (!bound) return {};
        step.params[i] = static_cast<float>(*bound);
      }
    } else if (node.inputs().size() != operands) {
      return {};
    }
    for (size_t i = 0; i < operands; ++i)
      if (node.input(i) == nullptr || rewriter_.dtype(node.input(i)) != DType::kFloat32) return {};
    if (name == "PRelu" && !spreads_to(node.input(1), node.input(0))) return {};
    if (!step.op->first.empty())
      step.params[0] = attributes.get_float(step.op->first, step.op->first_default);
    if (!step.op->second.empty())
      step.params[1] = attributes.get_float(step.op->second, step.op->second_default);
    return step;
  }

  /// Whether broadcasting `value` to the shape of `to` is all that is needed, provably.
  bool spreads_to(const Value* value, const Value* to) const {
    const auto dims = rewriter_.dims(value);
    const auto rank = rewriter_.rank(to);
    if (!dims || !rank || dims->size() > *rank) return false;
    for (size_t i = 0; i < dims->size(); ++i) {
      const auto axis = static_cast<int64_t>(i) - static_cast<int64_t>(dims->size());
      if ((*dims)[i] != 1 && rewriter_.dim(to, axis) != (*dims)[i]) return false;
    }
    return true;
  }

  bool is_number(const Value* value) const { return rewriter_.scalar(value).has_value(); }

  /// Whether input `value` of `node` has as many elements as the output: what is smaller would be
  /// computed again and again.
  bool same_size(const Node& node, const Value* value, const Step& step) const {
    if (step.op->operands == 1 || rewriter_.same_shape(value, node.output(0))) return true;
    const auto rank = rewriter_.rank(value);
    for (size_t i = 0; i < 2; ++i) {
      if (node.input(i) == value) continue;
      if (!is_number(node.input(i))) return false;
      const auto other = rewriter_.rank(node.input(i));
      if (!other || (*other > 1 && (!rank || *other > *rank))) return false;
    }
    return true;
  }

  size_t fuse(Node& sink) {
    const Step last = step_of(sink);
    if (last.op == nullptr) return 0;
    // Producers, the latest first: all readers of one are decided before it.
    std::vector<std::pair<Node*, Step>> group = {{&sink, last}};
    std::set<const Node*> members = {&sink};
    std::set<std::pair<size_t, Node*>> candidates;
    std::set<const Value*> real;  ///< inputs that are no numbers
    const auto join = [&](Node& node, const Step& step) {
      for (int i = 0; i < step.op->operands; ++i) {
        Value* value = node.input(static_cast<size_t>(i));
        if (!is_number(value)) real.insert(value);
        Node* producer = value->producer();
        if (producer != nullptr && &producer->graph() == &graph_ && !taken_.contains(producer) &&
            same_size(node, value, step))
          candidates.insert({position_.at(producer), producer});
      }
    };
    join(sink, last);
    if (real.size() > kMaxReal) return 0;
    while (!candidates.empty() && group.size() < kMaxSteps) {
      Node* node = std::prev(candidates.end())->second;
      candidates.erase(std::prev(candidates.end()));
      const Step step = step_of(*node);
      if (step.op == nullptr || node->output(0)->output_uses() != 0) continue;
      const auto uses = node->output(0)->uses();
      if (!std::all_of(uses.begin(), uses.end(),
                       [&](const Use& use) { return members.contains(use.node); }))
        continue;
      // It goes, its inputs come.
      std::set<const Value*> then = real;
      then.erase(node->output(0));
      for (int i = 0; i < step.op->operands; ++i)
        if (!is_number(node->input(static_cast<size_t>(i))))
          then.insert(node->input(static_cast<size_t>(i)));
      if (then.size() > kMaxReal) continue;
      real = std::move(then);
      group.emplace_back(node, step);
      members.insert(node);
      join(*node, step);
    }
    if (group.size() < 2 || real.empty()) return 0;
    for (const auto& [node, step] : group) taken_.insert(node);
    write(group);
    return 1;
  }

  void write(std::vector<std::pair<Node*, Step>>& group) {
    std::sort(group.begin(), group.end(), [&](const auto& a, const auto& b) {
      return position_.at(a.first) < position_.at(b.first);
    });
    std::unordered_map<const Value*, int64_t> results;
    for (size_t i = 0; i < group.size(); ++i)
      results[group[i].first->output(0)] = static_cast<int64_t>(i);
    std::vector<Value*> inputs;
    for (const auto& [node, step] : group)
      for (int i = 0; i < step.op->operands; ++i) {
        Value* value = node->input(static_cast<size_t>(i));
        if (!results.contains(value) &&
            std::find(inputs.begin(), inputs.end(), value) == inputs.end())
          inputs.push_back(value);
      }
    std::string names;
    std::vector<int64_t> args;
    std::vector<float> params;
    for (const auto& [node, step] : group) {
      names += (names.empty() ? "" : " ") + std::string(step.op->name);
      for (int i = 0; i < 2; ++i) {
        params.push_back(step.params[i]);
        if (i >= step.op->operands) {
          args.push_back(-1);
          continue;
        }
        Value* value = node->input(static_cast<size_t>(i));
        const auto result = results.find(value);
        const auto input = std::find(inputs.begin(), inputs.end(), value) - inputs.begin();
        args.push_back(
            result != results.end() ? static_cast<int64_t>(inputs.size()) + result->second : input);
      }
    }
    Node& sink = *group.back().first;
    Node& fused =
        rewriter_.add(sink, "Elementwise", inputs, sink.output(0)->name(), 1, "ai.tombolo");
    fused.set_string("ops", names);
    fused.set_ints("args", args);
    fused.set_floats("params", params);
    rewriter_.touch(fused);
    taken_.insert(&fused);
    rewriter_.supersede(*sink.output(0), *fused.output(0));
    for (size_t i = group.size() - 1; i-- > 0;) rewriter_.erase(*group[i].first);
  }

  Rewriter& rewriter_;
  Graph& graph_;
  std::unordered_map<const Node*, size_t> position_;
  std::set<const Node*> taken_;
};

}  // namespace

Result<size_t> fuse_elementwise(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) { count += Fuser(rewriter, graph).run(); });
  return count;
}

}  // namespace tombolo::passes
