#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/text/parser.h"
#include "ops/function_text.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/derivatives.h"
#include "ops/kernels/subgraph.h"
#include "ops/registry.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// The values of a graph that are on the tape, by where they stand in the model.
struct Scope {
  const Scope* outer = nullptr;
  std::unordered_map<const Value*, int> ids = {};
};

/// Runs the part of the graph from the chosen values to y on the tape, then walks it back (reverse
/// mode). Subgraphs and function bodies are run inline, so that the tape holds nothing but
/// operators with a rule; a Gradient within is walked back on the same tape, which the outer one
/// then differentiates.
class ReverseMode {
 public:
  explicit ReverseMode(KernelContext& context) : context_(context), tape_(context) {}

  Status run() {
    std::vector<int> inputs;
    for (size_t i = 0; i < context_.input_count(); ++i)
      inputs.push_back(context_.has_input(i) ? tape_.add(context_.value(i), false) : -1);
    Scope top;
    TRY(const std::vector<int> gradients,
        gradient(context_.node, context_.attributes, inputs, top, true));
    for (size_t i = 0; i < gradients.size(); ++i) context_.set_output(i, tape_.value(gradients[i]));
    return ok();
  }

 private:
  static constexpr int kDeepest = 16;

  Error unknown(Text name) const {
    return context_.error("the graph has no value \"" + std::string(name) + "\"");
  }

  /// The node's outputs, given its inputs. `last`: nobody differentiates the result.
  Result<std::vector<int>> gradient(const Node& node, const AttributeReader& attributes,
                                    std::span<const int> inputs, const Scope& outer, bool last) {
    const auto xs = attributes.get_strings("xs");
    const auto zs = attributes.get_strings("zs");
    const Text y_name = attributes.get_string("y", "");
    const Graph& graph = node.graph();
    const size_t begin = tape_.entries().size();
    Scope scope{&outer};
    std::vector<int> chosen;
    for (const auto& names : {xs, zs})
      for (const Text name : names) {
        const Value* value = graph.find_value(name);
        if (value == nullptr) return unknown(name);
        if (chosen.size() >= inputs.size() || inputs[chosen.size()] < 0)
          return context_.error("Gradient has no input for \"" + std::string(name) + "\"");
        // A copy on the tape: gradients of this node stop here, those of an outer one pass.
        TRY(const int id, copied(inputs[chosen.size()]));
        tape_.set_active(id);
        scope.ids[value] = id;
        chosen.push_back(id);
      }
    const Value* y = graph.find_value(y_name);
    if (y == nullptr) return unknown(y_name);
    TRY(const auto order, order_nodes(*y, scope));
    for (const Node* each : order) CHECK_OK(evaluate(*each, 0, nullptr, scope));
    const int y_id = find(scope, y);
    if (y_id < 0 || !tape_.value(y_id).is_tensor() || !is_float(tape_.value(y_id).tensor().dtype()))
      return context_.error("y must be a tensor of floats");
    const bool was = tape_.recording;
    if (last) tape_.recording = false;
    auto result = walk_back(y_id, chosen, xs.size(), begin);
    tape_.recording = was;
    return result;
  }

  Result<int> copied(int id) {
    if (!tape_.active(id)) return tape_.add(tape_.value(id), false);
    const Var copy = tape_.call("Identity", {tape_.var(id)});
    CHECK_OK(tape_.status());
    return copy.id;
  }

  /// Every value outside of `graph` that `node`, in it, reads; subgraphs included.
  static void read_by(const Node& node, const Graph& home, std::vector<const Value*>& values) {
    for (const Value* input : node.inputs())
      if (input != nullptr && &input->graph() == &home) values.push_back(input);
    for (const Attribute& attribute : node.attributes())
      if (const Graph* inner = attribute.graph()) {
        for (const Node* each : inner->nodes()) read_by(*each, home, values);
        for (const GraphOutput& output : inner->outputs())
          if (output.value != nullptr && &output.value->graph() == &home)
            values.push_back(output.value);
      }
  }

  /// The nodes that y needs, producers first.
  Result<std::vector<const Node*>> order_nodes(const Value& y, const Scope& scope) {
    struct Step {
      const Value* value;
      bool inputs_done;
    };
    std::vector<Step> stack = {{&y, false}};
    std::unordered_set<const Node*> done, open;
    std::vector<const Node*> order;
    while (!stack.empty()) {
      const auto [value, inputs_done] = stack.back();
      stack.pop_back();
      const Node* node = value->producer();
      if (inputs_done) {
        open.erase(node);
        if (done.insert(node).second) order.push_back(node);
        continue;
      }
      if (scope.ids.count(value) != 0 || is_constant(*value)) continue;
      if (node == nullptr)
        return context_.error("y depends on \"" + std::string(value->name()) +
                              "\", which is neither in xs nor in zs");
      if (done.count(node) != 0) continue;
      if (!open.insert(node).second) return context_.error("the graph has a cycle");
      stack.push_back({value, true});
      std::vector<const Value*> read;
      read_by(*node, value->graph(), read);
      for (const Value* each : read) stack.push_back({each, false});
    }
    return order;
  }

  static bool is_constant(const Value& value) {
    return value.initializer() != nullptr && !value.is_input();
  }

  int find(const Scope& scope, const Value* value) const {
    for (const Scope* at = &scope; at != nullptr; at = at->outer)
      if (const auto found = at->ids.find(value); found != at->ids.end()) return found->second;
    return -1;
  }

  /// The id of a value that a node reads; constants come onto the tape when they are first asked
  /// for.
  Result<int> id_of(const Value* value, Scope& scope) {
    if (value == nullptr) return -1;
    if (const int id = find(scope, value); id >= 0) return id;
    if (!is_constant(*value))
      return context_.error("\"" + std::string(value->name()) + "\" is not known where it is read");
    TRY(Tensor tensor, value->initializer()->value(value->graph().storage_ptr()));
    if (!tensor.aligned()) {
      TRY(tensor, tensor.clone());
    }
    return scope.ids[value] = tape_.add(RunValue(std::move(tensor)), false);
  }

  /// Runs a node of the model or of a function's body, and puts its outputs into `scope`.
  Status evaluate(const Node& node, int opset, const AttributeBinding* binding, Scope& scope) {
    std::vector<int> inputs;
    for (const Value* input : node.inputs()) {
      TRY(const int id, id_of(input, scope));
      inputs.push_back(id);
    }
    // Models run in the newest operator set, but for nodes that it cannot express.
    if (node.opset_override() != 0) opset = node.opset_override();
    if (opset == 0) opset = latest_opset(canonical_domain(node.domain()));
    TRY(const std::vector<int> outputs, outputs_of(node, opset, binding, inputs, scope));
    for (size_t i = 0; i < outputs.size(); ++i)
      if (const Value* value = node.output(i); value != nullptr && outputs[i] >= 0)
        scope.ids[value] = outputs[i];
    return ok();
  }

  Result<std::vector<int>> outputs_of(const Node& node, int opset, const AttributeBinding* binding,
                                      std::span<const int> inputs, Scope& scope) {
    const std::string_view op = node.op_type(), domain = canonical_domain(node.domain());
    const AttributeReader attributes(node, binding);
    if (domain == "ai.onnx.preview.training" && op == "Gradient")
      return gradient(node, attributes, inputs, scope, false);
    if (domain.empty() && op == "If") return run_if(node, attributes, inputs, scope);
    if (domain.empty() && op == "Loop") return run_loop(node, attributes, inputs, scope);
    if (domain.empty() && op == "Scan") return run_scan(node, attributes, inputs, scope);
    bool active = false;
    for (const int id : inputs)
      active = active || (tape_.active(id) && tape_.value(id).is_tensor() &&
                          is_float(tape_.value(id).tensor().dtype()));
    if (active && domain.empty())
      if (const DecompositionFn decomposition = decomposition_of(op)) {
        std::vector<Var> given, outputs;
        for (const int id : inputs) given.push_back(tape_.var(id));
        Differentiation d{tape_, node, opset, binding, given, {}, {}, {}};
        outputs = decomposition(d);
        CHECK_OK(tape_.status());
        std::vector<int> ids;
        for (const Var& output : outputs) ids.push_back(output.id);
        return ids;
      }
    if (!active || (domain.empty() && derivative_of(op) != nullptr))
      return tape_.run(node, opset, binding, inputs);
    return run_function(node, opset, binding, inputs, scope);
  }

  /// An operator that is a function: its body, inline.
  Result<std::vector<int>> run_function(const Node& node, int opset,
                                        const AttributeBinding* binding,
                                        std::span<const int> inputs, Scope& scope) {
    const OpVersion* version = find_version(node.domain(), node.op_type(), opset);
    const FunctionBody* row =
        version == nullptr ? nullptr : function_body(*version, latest_opset(""));
    if (row == nullptr || (row->builder == nullptr && row->text.empty()))
      return unsupported("Gradient cannot differentiate " + std::string(node.op_type()));
    std::vector<DType> types;
    for (const int id : inputs)
      types.push_back(id >= 0 && tape_.value(id).is_tensor() ? tape_.value(id).tensor().dtype()
                                                             : DType::kUndefined);
    const std::unique_ptr<bool[]> wanted(new bool[node.outputs().size()]);
    for (size_t i = 0; i < node.outputs().size(); ++i) wanted[i] = node.output(i) != nullptr;
    FunctionContext function{*version, row->opset, AttributeReader(node, binding), types,
                             std::span<const bool>(wanted.get(), node.outputs().size())};
    TRY(const std::string text, function_text(*row, function));
    TRY(std::unique_ptr<Function> body, parse_function(text, std::make_shared<Storage>()));
    auto bound = std::make_unique<AttributeBinding>();
    for (const Attribute& attribute : node.attributes()) bound->given.push_back(&attribute);
    bound->defaults = body->attribute_protos;
    bound->outer = binding;
    Scope inside;
    for (size_t i = 0; i < body->body.inputs().size() && i < inputs.size(); ++i)
      if (inputs[i] >= 0) inside.ids[body->body.inputs()[i]] = inputs[i];
    for_each_graph(body->body, [&](Graph& graph) {
      for (const Node* each : graph.nodes())
        for (const Value* value : each->inputs())
          for (size_t i = 0; i < function.captured.size(); ++i)
            if (value != nullptr && value->is_undefined() &&
                value->name() == "outer_" + std::to_string(i))
              inside.ids[value] = static_cast<int>(i);
    });
    for (auto& [value, id] : inside.ids)
      if (value->is_undefined()) {
        TRY(id, id_of(function.captured[static_cast<size_t>(id)], scope));
      }
    for (const Node* each : body->body.nodes()) {
      std::vector<int> ids;
      for (const Value* input : each->inputs())  // an input that the call leaves out is absent
        ids.push_back(input == nullptr ? -1 : find(inside, input));
      const Text of = canonical_domain(each->domain());
      const int opset_of = of.empty() ? function.opset : latest_opset(of);
      TRY(const auto outputs, outputs_of(*each, opset_of, bound.get(), ids, inside));
      for (size_t i = 0; i < outputs.size(); ++i)
        if (const Value* value = each->output(i); value != nullptr && outputs[i] >= 0)
          inside.ids[value] = outputs[i];
    }
    std::vector<int> outputs;
    for (const GraphOutput& output : body->body.outputs())
      outputs.push_back(find(inside, output.value));
    outputs.resize(node.outputs().size(), -1);
    bindings_.push_back(std::move(bound));
    functions_.push_back(std::move(body));
    return outputs;
  }

  /// A subgraph with these inputs; ids of its outputs.
  Result<std::vector<int>> run_graph(const Graph& graph, std::span<const int> inputs,
                                     const Scope& outer) {
    if (++depth_ > kDeepest) return resource_error("subgraphs are nested too deeply");
    Scope inside{&outer};
    for (size_t i = 0; i < graph.inputs().size() && i < inputs.size(); ++i)
      inside.ids[graph.inputs()[i]] = inputs[i];
    for (const Node* node : graph.nodes()) CHECK_OK(evaluate(*node, 0, nullptr, inside));
    std::vector<int> outputs;
    for (const GraphOutput& output : graph.outputs()) {
      TRY(const int id, id_of(output.value, inside));
      outputs.push_back(id);
    }
    --depth_;
    return outputs;
  }

  Result<const Graph*> body_of(const AttributeReader& attributes, const char* name) const {
    const Graph* graph = attributes.get_graph(name);
    if (graph == nullptr)
      return context_.error("the attribute " + std::string(name) + " is missing");
    return graph;
  }

  Result<bool> truth(int id, const char* what) const {
    if (id < 0) return context_.error(std::string(what) + " is missing");
    return bool_of(context_, tape_.value(id), what);
  }

  Result<std::vector<int>> run_if(const Node&, const AttributeReader& attributes,
                                  std::span<const int> inputs, const Scope& scope) {
    TRY(const bool holds, truth(inputs.empty() ? -1 : inputs[0], "the condition"));
    TRY(const Graph* branch, body_of(attributes, holds ? "then_branch" : "else_branch"));
    return run_graph(*branch, {}, scope);
  }

  /// One value out of many of equal shape, along a new axis.
  Result<int> stacked(const std::vector<int>& ids, int64_t axis) {
    if (ids.empty()) return unsupported("Gradient through a scan output without elements");
    std::vector<Var> parts;
    for (const int id : ids)
      parts.push_back(tape_.call("Unsqueeze", {tape_.var(id), tape_.constant({{axis}})}));
    const Var joined = tape_.call_all(
        "Concat", parts, 1,
        [](Node& node, const void* argument) {
          node.set_int("axis", *static_cast<const int64_t*>(argument));
        },
        &axis)[0];
    CHECK_OK(tape_.status());
    return joined.id;
  }

  Result<std::vector<int>> run_loop(const Node& node, const AttributeReader& attributes,
                                    std::span<const int> inputs, const Scope& scope) {
    TRY(const Graph* body, body_of(attributes, "body"));
    const size_t carried = inputs.size() < 2 ? 0 : inputs.size() - 2;
    if (body->inputs().size() != carried + 2 || body->outputs().size() < carried + 1)
      return context_.error("the body of Loop does not fit its inputs");
    std::optional<int64_t> limit;
    if (!inputs.empty() && inputs[0] >= 0) limit = tape_.value(inputs[0]).tensor().get_int64(0);
    bool holds = true;
    if (inputs.size() > 1 && inputs[1] >= 0) {
      TRY(holds, truth(inputs[1], "cond"));
    }
    std::vector<int> state(
        inputs.begin() + static_cast<int64_t>(std::min<size_t>(2, inputs.size())), inputs.end());
    std::vector<std::vector<int>> scanned(body->outputs().size() - 1 - carried);
    for (int64_t i = 0; holds && (!limit || i < *limit); ++i) {
      const uint8_t yes[] = {1};
      std::vector<int> given = {
          tape_.add(RunValue(Tensor::scalar_int64(i)), false),
          tape_.add(RunValue(Tensor::of<uint8_t>(DType::kBool, {}, yes)), false)};
      given.insert(given.end(), state.begin(), state.end());
      TRY(const auto results, run_graph(*body, given, scope));
      TRY(holds, truth(results[0], "the condition that the body gives"));
      for (size_t k = 0; k < carried; ++k) state[k] = results[1 + k];
      for (size_t k = 0; k < scanned.size(); ++k) scanned[k].push_back(results[1 + carried + k]);
    }
    for (size_t k = 0; k < scanned.size(); ++k) {
      if (node.output(carried + k) == nullptr) {
        state.push_back(-1);
        continue;
      }
      TRY(const int id, stacked(scanned[k], 0));
      state.push_back(id);
    }
    return state;
  }

  Result<std::vector<int>> run_scan(const Node& node, const AttributeReader& attributes,
                                    std::span<const int> inputs, const Scope& scope) {
    TRY(const Graph* body, body_of(attributes, "body"));
    const int64_t scans = attributes.get_int("num_scan_inputs", 0);
    if (scans < 1 || scans > static_cast<int64_t>(inputs.size()) ||
        body->inputs().size() != inputs.size())
      return context_.error("num_scan_inputs does not fit the inputs of Scan");
    const size_t states = inputs.size() - static_cast<size_t>(scans);
    if (body->outputs().size() < states)
      return context_.error("the body of Scan has too few outputs");
    const auto number = [&](const char* name, size_t k) {
      const auto list = attributes.get_ints(name);
      return k < list.size() ? list[k] : 0;
    };
    std::vector<int> state(inputs.begin(), inputs.begin() + static_cast<int64_t>(states));
    std::vector<std::vector<int>> scanned(body->outputs().size() - states);
    int64_t length = -1;
    std::vector<int64_t> axes;
    for (size_t k = 0; k < static_cast<size_t>(scans); ++k) {
      const Var x = tape_.var(inputs[states + k]);
      if (absent(x)) return context_.error("a scanned input is missing");
      TRY(const int64_t axis,
          normalize_axis(number("scan_input_axes", k), static_cast<int64_t>(x.rank())));
      axes.push_back(axis);
      const int64_t own = x.dim(static_cast<size_t>(axis));
      if (length >= 0 && own != length) return context_.error("scanned inputs differ in length");
      length = own;
    }
    for (int64_t i = 0; i < length; ++i) {
      std::vector<int> given = state;
      for (size_t k = 0; k < axes.size(); ++k) {
        const int64_t at = number("scan_input_directions", k) == 1 ? length - 1 - i : i;
        const Var slice = tape_.call(
            "Gather", {tape_.var(inputs[states + k]), tape_.constant(Tensor::scalar_int64(at))},
            {{"axis", axes[k]}});
        CHECK_OK(tape_.status());
        given.push_back(slice.id);
      }
      TRY(const auto results, run_graph(*body, given, scope));
      for (size_t k = 0; k < states; ++k) state[k] = results[k];
      for (size_t k = 0; k < scanned.size(); ++k) scanned[k].push_back(results[states + k]);
    }
    for (size_t k = 0; k < scanned.size(); ++k) {
      if (node.output(states + k) == nullptr) {
        state.push_back(-1);
        continue;
      }
      if (number("scan_output_directions", k) == 1)
        std::reverse(scanned[k].begin(), scanned[k].end());
      int64_t axis = number("scan_output_axes", k);
      if (axis < 0 && !scanned[k].empty())
        axis += static_cast<int64_t>(tape_.var(scanned[k][0]).rank()) + 1;
      TRY(const int id, stacked(scanned[k], axis));
      state.push_back(id);
    }
    return state;
  }

  /// The gradients of the first `wanted` chosen values, from the entries since `begin`.
  Result<std::vector<int>> walk_back(int y, std::span<const int> chosen, size_t wanted,
                                     size_t begin) {
    std::unordered_map<int, Var> gradients;
    gradients[y] = tape_.filled(tape_.var(y), 1);
    const std::unordered_set<int> leaves(chosen.begin(), chosen.end());
    for (size_t at = tape_.entries().size(); at-- > begin;) {
      const Tape::Entry entry = tape_.entries()[at];  // a copy: rules add to the tape
      std::vector<Var> inputs, outputs, given;
      bool any = false;
      for (const int id : entry.outputs) {
        outputs.push_back(tape_.var(id));
        const auto found = gradients.find(id);
        // What a chosen value was made of is beyond this Gradient.
        given.push_back(found == gradients.end() || leaves.count(id) != 0 ? Var() : found->second);
        any = any || !absent(given.back());
      }
      if (!any) continue;
      if (absent(given[0])) given[0] = tape_.filled(outputs[0], 0);
      for (const int id : entry.inputs) inputs.push_back(tape_.var(id));
      std::vector<Var> result(inputs.size());
      Differentiation step{tape_,  *entry.node, entry.opset, entry.binding,
                           inputs, outputs,     given,       result};
      derivative_of(entry.node->op_type())(step);
      CHECK_OK(tape_.status());
      for (size_t i = 0; i < result.size(); ++i) {
        if (absent(result[i]) || !tape_.active(inputs[i].id) || !is_float(inputs[i].dtype()))
          continue;
        auto [place, first] = gradients.try_emplace(inputs[i].id, result[i]);
        if (!first) place->second = tape_.add(place->second, result[i]);
      }
    }
    std::vector<int> found;
    for (size_t i = 0; i < wanted; ++i) {
      const auto gradient = gradients.find(chosen[i]);
      found.push_back(gradient != gradients.end() ? gradient->second.id
                                                  : tape_.filled(tape_.var(chosen[i]), 0).id);
    }
    CHECK_OK(tape_.status());
    return found;
  }

  KernelContext& context_;
  Tape tape_;
  int depth_ = 0;
  std::vector<std::unique_ptr<AttributeBinding>> bindings_;
  std::vector<std::unique_ptr<Function>> functions_;
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
