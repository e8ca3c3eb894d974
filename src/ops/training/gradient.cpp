#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/derivatives.h"
#include "ops/registry.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// The part of the graph from the chosen values to y: run forward at the values given, then walked
/// back (reverse mode). Second derivatives (a Gradient within) are refused like every operator
/// without a rule.
class ReverseMode {
 public:
  explicit ReverseMode(KernelContext& context) : context_(context), calculus_(context) {}

  Status run() {
    const auto xs = context_.attributes.get_strings("xs");
    const auto zs = context_.attributes.get_strings("zs");
    const Graph& graph = context_.node.graph();
    std::vector<const Value*> chosen;
    for (const auto names : {xs, zs})
      for (const Text name : names) {
        const Value* value = graph.find_value(name);
        if (value == nullptr) return unknown(name);
        TRY(const Tensor* tensor, context_.input(chosen.size()));
        chosen.push_back(value);
        values_[value] = RunValue(*tensor);
      }
    const Text y_name = context_.attributes.get_string("y", "");
    const Value* y = graph.find_value(y_name);
    if (y == nullptr) return unknown(y_name);
    CHECK_OK(order_nodes(*y));
    CHECK_OK(run_forward());
    if (!values_[y].is_tensor() || !is_float(values_[y].tensor().dtype()))
      return context_.error("y must be a tensor of floats");
    gradients_[y] = calculus_.filled(values_[y].tensor(), 1);
    for (size_t i = order_.size(); i-- > 0;) CHECK_OK(walk_back(*order_[i]));
    CHECK_OK(calculus_.status());
    for (size_t i = 0; i < xs.size(); ++i) {
      const Tensor& x = values_[chosen[i]].tensor();
      const auto found = gradients_.find(chosen[i]);
      Tensor gradient = found != gradients_.end() ? found->second : calculus_.filled(x, 0);
      CHECK_OK(calculus_.status());
      context_.set_output(i, RunValue(std::move(gradient)));
    }
    return ok();
  }

 private:
  Error unknown(Text name) const {
    return context_.error("the graph has no value \"" + std::string(name) + "\"");
  }

  /// Fills order_ with the nodes that y needs, producers first; values_ with the constants.
  Status order_nodes(const Value& y) {
    struct Step {
      const Value* value;
      bool inputs_done;
    };
    std::vector<Step> stack = {{&y, false}};
    std::unordered_set<const Node*> done, open;
    while (!stack.empty()) {
      const auto [value, inputs_done] = stack.back();
      stack.pop_back();
      const Node* node = value->producer();
      if (inputs_done) {
        open.erase(node);
        if (done.insert(node).second) order_.push_back(node);
        continue;
      }
      if (values_.count(value) != 0) continue;
      if (value->initializer() != nullptr && !value->is_input()) {
        TRY(Tensor tensor, value->initializer()->value(value->graph().storage_ptr()));
        if (!tensor.aligned()) {
          TRY(tensor, tensor.clone());
        }
        values_[value] = RunValue(std::move(tensor));
        continue;
      }
      if (node == nullptr)
        return context_.error("y depends on \"" + std::string(value->name()) +
                              "\", which is neither in xs nor in zs");
      if (done.count(node) != 0) continue;
      if (!open.insert(node).second) return context_.error("the graph has a cycle");
      if (!canonical_domain(node->domain()).empty() || derivative_of(node->op_type()) == nullptr)
        return unsupported("Gradient cannot differentiate " + std::string(node->op_type()));
      stack.push_back({value, true});
      for (const Value* input : node->inputs())
        if (input != nullptr) stack.push_back({input, false});
    }
    return ok();
  }

  Status run_forward() {
    for (const Node* node : order_) {
      std::vector<RunValue> inputs;
      for (const Value* input : node->inputs())
        inputs.push_back(input == nullptr ? RunValue() : values_[input]);
      // Models run in the newest operator set, but for nodes that it cannot express.
      const int opset = node->opset_override() != 0 ? node->opset_override() : latest_opset("");
      TRY(std::vector<RunValue> outputs, calculus_.run(*node, opset, inputs));
      for (size_t i = 0; i < outputs.size(); ++i)
        if (const Value* value = node->output(i); value != nullptr && values_.count(value) == 0)
          values_[value] = std::move(outputs[i]);
    }
    return ok();
  }

  Tensor tensor_of(const Value* value) {
    if (value == nullptr || !values_[value].is_tensor()) return {};
    return values_[value].tensor();
  }

  Status walk_back(const Node& node) {
    std::vector<Tensor> inputs, outputs, gradients, result(node.inputs().size());
    bool any = false;
    for (const Value* input : node.inputs()) inputs.push_back(tensor_of(input));
    for (const Value* output : node.outputs()) {
      outputs.push_back(tensor_of(output));
      const auto found = gradients_.find(output);
      gradients.push_back(found == gradients_.end() ? Tensor() : found->second);
      any = any || !absent(gradients.back());
    }
    if (!any || absent(gradients[0])) return ok();
    Differentiation step{calculus_, node, inputs, outputs, gradients, result};
    derivative_of(node.op_type())(step);
    CHECK_OK(calculus_.status());
    for (size_t i = 0; i < result.size(); ++i) {
      const Value* input = node.input(i);
      if (input == nullptr || absent(result[i]) || !is_float(inputs[i].dtype())) continue;
      auto [entry, first] = gradients_.try_emplace(input, result[i]);
      if (!first) entry->second = calculus_.add(entry->second, result[i]);
    }
    return calculus_.status();
  }

  KernelContext& context_;
  Calculus calculus_;
  std::vector<const Node*> order_;
  std::unordered_map<const Value*, RunValue> values_;
  std::unordered_map<const Value*, Tensor> gradients_;
};

Status run_gradient(KernelContext& context) { return ReverseMode(context).run(); }

}  // namespace

namespace {
Status infer_gradient(InferContext& context) {
  // One gradient for each name in xs, which are the first inputs.
  const size_t count = context.attributes.get_strings("xs").size();
  for (size_t i = 0; i < count; ++i) context.same_as_input(i, i);
  return ok();
}
}  // namespace

OPERATOR(Gradient) = {
    .name = "Gradient",
    .domain = "ai.onnx.preview.training",
    .doc = "derivatives of a value with respect to chosen values",
    .versions = {1},
    .inputs = {{"Inputs", "T1", kVariadic, {}, 1, kMixed}},
    .outputs = {{"Outputs", "T2", kVariadic, {}, 1, kMixed}},
    .attributes =
        {
            {"xs", required(Attr::kStrings)},
            {"y", required(Attr::kString)},
            {"zs", Attr::kStrings},
        },
    .types =
        {
            {"T1", {{1, kAll}}},
            {"T2", {{1, kFloats}}},
        },
    .infer = infer_gradient,
    .reference = run_gradient,
};

}  // namespace tombolo::ops
