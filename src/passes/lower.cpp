#include "passes/lower.h"

#include <algorithm>
#include <climits>

#include "analysis/infer.h"
#include "ops/registry.h"
#include "passes/attributes.h"
#include "version/fit.h"
#include "version/upgrade.h"

namespace tombolo {
namespace {

constexpr int64_t kSmallConstant = 1024;

struct Range {
  int low = 1, high = INT_MAX;
};

bool same_attribute(const Attribute& a, const Attribute& b) {
  if (a.value.index() != b.value.index()) return false;
  if (a.i() != nullptr) return *a.i() == *b.i();
  if (a.f() != nullptr) return *a.f() == *b.f();
  if (a.s() != nullptr) return *a.s() == *b.s();
  if (a.type == AttrType::kInts)
    return std::equal(a.ints().begin(), a.ints().end(), b.ints().begin(), b.ints().end());
  if (a.type == AttrType::kFloats)
    return std::equal(a.floats().begin(), a.floats().end(), b.floats().begin(), b.floats().end());
  if (a.type == AttrType::kStrings)
    return std::equal(a.strings().begin(), a.strings().end(), b.strings().begin(),
                      b.strings().end());
  return false;  // tensors and graphs: no step leaves one as it was beside a change
}

class Lowerer {
 public:
  Lowerer(Model& model, std::string_view domain, const Inference& inference)
      : model_(model), domain_(domain), inference_(inference) {}

  /// The operator sets at which `node` says what it says now.
  Range range_of(const Node& node) {
    const OpDecl* op = find_operator(domain_, node.op_type());
    if (op == nullptr) return {};
    const int newest = latest_opset(domain_);
    if (const int kept = node.opset_override(); kept != 0) {
      const OpVersion* version = resolve(*op, kept);
      return version == nullptr ? Range{kept, kept} : Range{version->since, version->until};
    }
    const OpVersion* version = resolve(*op, newest);
    if (version == nullptr) return {newest, newest};
    const OpVersion* const newest_version = version;
    int low = version->since;
    while (version != versions_of(*op).data()) {
      const OpVersion& older = *(version - 1);
      if (!says(node, older, *newest_version) || !steps_to_itself(node, *op, older, *version))
        break;
      low = older.since;
      --version;
    }
    return {low, INT_MAX};
  }

  /// Attributes that the operator set does not have yet, which say nothing more than it does.
  void drop_unknown_defaults(Node& node, int opset) {
    const OpDecl* op = find_operator(domain_, node.op_type());
    const OpVersion* version = op != nullptr ? resolve(*op, opset) : nullptr;
    if (version == nullptr) return;
    std::erase_if(node.attributes(), [&](const Attribute& attribute) {
      return version->attribute(attribute.name) == nullptr;
    });
  }

 private:
  /// Version `older` has the node's inputs, outputs, attributes and types.
  bool says(const Node& node, const OpVersion& older, const OpVersion& newest) {
    if (older.deprecated && !newest.deprecated) return false;
    size_t inputs = node.inputs().size();
    while (inputs > 0 && node.inputs()[inputs - 1] == nullptr) --inputs;
    if (inputs > older.max_inputs || inputs < older.min_inputs) return false;
    // What may be left out now had to be there then, as an empty tensor: the regions of Resize.
    for (size_t i = 0; i < std::min(inputs, older.inputs.size()); ++i)
      if (node.inputs()[i] == nullptr && older.inputs[i].option == Option::kSingle) return false;
    if (node.outputs().size() > older.max_outputs || node.outputs().size() < older.min_outputs)
      return false;
    for (const Attribute& attribute : node.attributes()) {
      const AttrDecl* then = older.attribute(attribute.name);
      const AttrDecl* now = newest.attribute(attribute.name);
      if (then == nullptr && (now == nullptr || !is_default(attribute, now->spec))) return false;
      if (then != nullptr && now != nullptr && then->spec.type != now->spec.type) return false;
    }
    for (const AttrDecl* then : older.attributes) {
      if (node.attribute(then->name) != nullptr) continue;
      if (then->spec.required) return false;
      const AttrDecl* now = newest.attribute(then->name);
      // An absent attribute must mean the same.
      if (now == nullptr ? false : !same_default(then->spec, now->spec)) return false;
    }
    return types_fit(node.inputs(), older.inputs) && types_fit(node.outputs(), older.outputs);
  }

  static bool same_default(const AttrSpec& a, const AttrSpec& b) {
    return a.type == b.type && a.has_default == b.has_default && a.i == b.i && a.f == b.f &&
           std::string_view(a.s) == std::string_view(b.s) &&
           std::equal(a.ints.begin(), a.ints.end(), b.ints.begin(), b.ints.end());
  }

  bool types_fit(std::span<Value* const> values, std::span<const ResolvedParam> params) {
    for (size_t i = 0; i < values.size() && !params.empty(); ++i) {
      if (values[i] == nullptr) continue;
      const ResolvedParam& param = params[std::min(i, params.size() - 1)];
      const InferType* type = inference_.type(*values[i]);
      if (type == nullptr) continue;
      const DType elem = type->is_tensor() ? type->elem
                         : type->element != nullptr && type->element->is_tensor()
                             ? type->element->elem
                             : DType::kUndefined;
      if (elem == DType::kUndefined) continue;
      const bool fits =
          type->kind == Type::Kind::kTensor     ? param.allowed.has_tensor(elem)
          : type->kind == Type::Kind::kSequence ? param.allowed.has_sequence(elem)
          : type->kind == Type::Kind::kOptional
              ? param.allowed.has_optional(elem) || param.allowed.has_optional_sequence(elem)
              : true;
      if (!fits) return false;
    }
    return true;
  }

  /// Where the operator's meaning changed at this boundary: the node, read as the older version and
  /// brought up, must come out as it is.
  bool steps_to_itself(const Node& node, const OpDecl& op, const OpVersion& older,
                       const OpVersion& newer) {
    const bool has_step = std::any_of(op.up.begin(), op.up.end(), [&](const VersionStep& step) {
      return step.from == older.since && step.to == newer.since;
    });
    if (!has_step) return true;
    for (const Attribute& attribute : node.attributes())
      if (attribute.graph() != nullptr) return false;
    Model scratch = Model::create(older.since);
    scratch.opset_imports.clear();
    scratch.set_opset(domain_, older.since);
    scratch.ir_version = 14;
    Graph& graph = *scratch.graph;
    Node* copy = graph.add_node(node.op_type(), node.domain());
    for (const Value* input : node.inputs())
      copy->add_input(input ? stand_in(graph, *input) : nullptr);
    for (const Value* output : node.outputs()) {
      if (output != nullptr) {
        Value* value = copy->add_output(output->name());
        if (output->has_uses()) graph.add_output(value);
      } else {
        copy->add_absent_output();
      }
    }
    for (const Attribute& attribute : node.attributes())
      if (older.attribute(attribute.name) != nullptr && !passes::copy_attribute(attribute, *copy))
        return false;
    Diagnostics kept;
    const OpsetTarget target{domain_, newer.since};
    auto done = convert(scratch, {&target, 1}, kept);
    if (!done || done->kept != 0 || graph.node_count() != 1) return false;
    const Node& after = *graph.first_node();
    if (after.op_type() != node.op_type() || after.outputs().size() != node.outputs().size())
      return false;
    for (size_t i = 0; i < std::max(after.inputs().size(), node.inputs().size()); ++i) {
      const Value* a = after.input(i);
      const Value* b = node.input(i);
      if ((a == nullptr) != (b == nullptr) || (a != nullptr && a->name() != b->name()))
        return false;
    }
    const auto covered = [&](const Node& x, const Node& y) {
      for (const Attribute& attribute : x.attributes()) {
        const Attribute* other = y.attribute(attribute.name);
        const AttrDecl* decl = newer.attribute(attribute.name);
        if (other != nullptr ? !same_attribute(attribute, *other)
                             : decl == nullptr || !is_default(attribute, decl->spec))
          return false;
      }
      return true;
    };
    return covered(after, node) && covered(node, after);
  }

  Value* stand_in(Graph& graph, const Value& value) {
    if (Value* known = graph.find_value(value.name())) return known;
    if (const Constant* constant = value.initializer();
        constant != nullptr && !value.is_input() &&
        element_count(constant->dims.span()) <= kSmallConstant) {
      auto tensor = constant->value(model_.storage_ptr());
      if (tensor) return graph.add_initializer(value.name(), *tensor);
    }
    Value* input = graph.add_input(value.name());
    if (const InferType* type = inference_.type(value))
      input->set_type(to_declared(*type, graph.storage()));
    return input;
  }

  Model& model_;
  std::string_view domain_;
  const Inference& inference_;
};

void for_every_graph(Model& model, const auto& visit) {
  if (model.graph) for_each_graph(*model.graph, visit);
  for (TrainingInfo& training : model.training) {
    if (training.initialization) for_each_graph(*training.initialization, visit);
    if (training.algorithm) for_each_graph(*training.algorithm, visit);
  }
}

}  // namespace

OriginalImports remember_imports(const Model& model) {
  OriginalImports original{model.ir_version, model.opset_imports};
  if (original.imports.empty()) original.imports.push_back({"", true, 1, {}});
  return original;
}

Status lower(Model& model, const OriginalImports& original) {
  if (!model.functions.empty()) return ok();  // their bodies are read under their own imports
  Inference inference(model);
  Diagnostics ignored;
  inference.run(ignored);
  for (OpsetImport& import : model.opset_imports) {
    const std::string_view domain = canonical_domain(import.domain);
    const int newest = latest_opset(domain);
    if (newest == 0 || import.version != newest) continue;
    int floor = 0;
    for (const OpsetImport& before : original.imports)
      if (canonical_domain(before.domain) == domain) floor = static_cast<int>(before.version);
    if (floor <= 0) continue;
    Lowerer lowerer(model, domain, inference);
    int low = floor, high = INT_MAX;
    std::string highest_by;
    const auto nodes = [&](auto&& visit) {
      for_every_graph(model, [&](Graph& graph) {
        for (Node* node : graph.nodes())
          if (canonical_domain(node->domain()) == domain) visit(*node);
      });
    };
    nodes([&](Node& node) {
      const Range range = lowerer.range_of(node);
      low = std::max(low, range.low);
      if (range.high < high) highest_by = std::string(node.op_type());
      high = std::min(high, range.high);
    });
    if (low > high)
      return unsupported("no one operator set says both what " + highest_by +
                         " kept from an old version and what the other nodes say now")
          .with_help("run it as it is, or convert it to opset " + std::to_string(high) +
                     " with `tombolo convert`");
    import.version = low;
    nodes([&](Node& node) {
      node.set_opset_override(0);
      lowerer.drop_unknown_defaults(node, low);
    });
  }
  int64_t ir = std::max<int64_t>(original.ir_version, 4);
  ir = std::max(ir, int64_t(ir_version_for_opset(static_cast<int>(model.opset()))));
  model.ir_version = ir;
  model.has_ir_version = true;
  return ok();
}

}  // namespace tombolo
