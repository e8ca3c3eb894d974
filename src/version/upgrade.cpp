#include "version/upgrade.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ops/registry.h"
#include "ops/step_context.h"
#include "version/downgrade.h"
#include "version/node_place.h"
#include "version/value_facts.h"

namespace tombolo {
namespace {

constexpr std::string_view kDomainNames[] = {"", "ai.onnx.ml", "ai.onnx.preview",
                                             "ai.onnx.preview.training", "ai.onnx.training"};
constexpr size_t kDomainCount = std::size(kDomainNames);

/// For each domain of kDomainNames the operator set that a graph is read under, 0: not imported.
struct Imports {
  int version[kDomainCount] = {};
};

int domain_index(std::string_view domain) {
  domain = canonical_domain(domain);
  for (size_t i = 0; i < kDomainCount; ++i)
    if (kDomainNames[i] == domain) return static_cast<int>(i);
  return -1;
}

class Converter final : public StepHost {
 public:
  Converter(Model& model, std::span<const OpsetTarget> targets, Diagnostics& diagnostics)
      : model_(model), diagnostics_(diagnostics) {
    for (const OpsetTarget& target : targets)
      if (const int at = domain_index(target.domain); at >= 0) target_[at] = target.version;
    for (const auto& function : model.functions)
      if (domain_index(function->domain) >= 0) shadowing_.insert(function->name);
  }

  Result<Conversion> run() {
    Imports main;
    for (size_t i = 0; i < kDomainCount; ++i) {
      TRY(main.version[i], check(i, model_.opset(kDomainNames[i])));
    }
    std::vector<Imports> functions;
    for (const auto& function : model_.functions) {
      Imports& imports = functions.emplace_back();
      for (size_t i = 0; i < kDomainCount; ++i) {
        TRY(imports.version[i], check(i, opset_of(*function, kDomainNames[i])));
      }
    }

    if (model_.graph) walk(*model_.graph, main);
    for (TrainingInfo& training : model_.training) {
      if (training.initialization) walk(*training.initialization, main);
      if (training.algorithm) walk(*training.algorithm, main);
    }
    for (size_t f = 0; f < model_.functions.size(); ++f) {
      function_body_ = &model_.functions[f]->body;
      walk(*function_body_, functions[f]);
    }

    if (model_.opset_imports.empty() && main.version[0] != 0) model_.set_opset("", 1);
    raise(model_.opset_imports);
    for (const auto& function : model_.functions) raise(function->opset_imports);
    int64_t ir = made_initializer_ ? 4 : 0;  // before, each initialiser had to be an input
    if (target_[0] != 0 && main.version[0] != 0)
      ir = std::max<int64_t>({ir, 3, ir_version_for_opset(target_[0])});
    if (ir > model_.ir_version) {
      model_.ir_version = ir;
      model_.has_ir_version = true;
    }
    return done_;
  }

  // StepHost
  ValueFacts facts(const Value& value) override { return facts_.facts(value); }

  Text unique_name(Graph& graph, std::string_view hint) override {
    if (!names_collected_) collect_names();
    std::string name(hint.empty() ? "value" : hint);
    auto [entry, fresh] = next_suffix_.try_emplace(name, 0);
    const std::string stem = name;
    while (names_.contains(name)) name = stem + "_" + std::to_string(++entry->second);
    const Text kept = graph.storage().copy(name);
    names_.insert(kept);
    return kept;
  }

  Value* constant(Graph& graph, Node* before, const Tensor& tensor,
                  std::string_view hint) override {
    const Text name = unique_name(graph, hint);
    if (&graph != function_body_) {
      made_initializer_ = true;
      Value* value = graph.new_value_view(name);
      graph.define_initializer(
          value, std::make_unique<Constant>(Constant::from_tensor(tensor, name, graph.storage())));
      return value;
    }
    Node& made = *graph.add_node("Constant", {}, before);
    made.set_tensor("value", tensor);
    return made.add_output(name);
  }

  void created(Node* node, int version) override { created_.push_back({node, version}); }

 private:
  struct Created {
    Node* node;
    int version;
  };

  /// The version under which nodes of the domain stand now; 0 when there is nothing to convert.
  Result<int> check(size_t domain, int64_t version) const {
    const int target = target_[domain];
    const int newest = latest_opset(kDomainNames[domain]);
    const std::string name(domain == 0 ? "ai.onnx" : kDomainNames[domain]);
    if (target == 0 || version <= 0) return 0;
    if (target > newest)
      return unsupported(name + " has no operator set " + std::to_string(target) +
                         "; the newest known is " + std::to_string(newest));
    if (version > newest)
      return unsupported("the model imports " + name + " " + std::to_string(version) +
                         "; the newest known operator set is " + std::to_string(newest));
    if (version > target) return 0;  // downgrade() has been there, or a function stays as it is
    return static_cast<int>(version);
  }

  static int64_t opset_of(const Function& function, std::string_view domain) {
    for (const OpsetImport& import : function.opset_imports)
      if (canonical_domain(import.domain) == domain) return import.version;
    return 0;
  }

  void raise(std::vector<OpsetImport>& imports) const {
    for (OpsetImport& import : imports) {
      const int at = domain_index(import.domain);
      if (at < 0 || import.version <= 0 || import.version > target_[at]) continue;
      import.version = target_[at];
      import.has_version = true;
    }
  }

  void walk(Graph& graph, const Imports& imports) {
    // Nodes that a step puts before or behind a node are not visited again: `next` is taken first.
    for (Node *node = graph.first_node(), *next; node != nullptr; node = next) {
      next = node->next();
      for (Attribute& attribute : node->attributes()) {
        if (Graph* inner = attribute.graph()) walk(*inner, imports);
        if (auto* list = std::get_if<std::vector<std::unique_ptr<Graph>>>(&attribute.value))
          for (auto& inner : *list) walk(*inner, imports);
      }
      const int domain = domain_index(node->domain());
      if (domain < 0) continue;
      int version = imports.version[domain];
      if (node->opset_override() > 0) version = node->opset_override();
      if (version == 0 || shadowing_.contains(node->op_type())) continue;
      step(*node, version, domain, true);
      while (!created_.empty()) {
        const Created made = created_.back();
        created_.pop_back();
        step(*made.node, made.version, domain, false);
      }
    }
  }

  /// Walks one node from operator set `opset` up to the target.
  void step(Node& node, int opset, int domain, bool learn) {
    const OpDecl* op = find_operator(kDomainNames[domain], node.op_type());
    const OpVersion* version = op != nullptr ? resolve(*op, opset) : nullptr;
    if (version == nullptr) return;
    if (learn) facts_.learn(node, *version);
    const int target = target_[domain];
    while (version->until < target) {
      const int boundary = version->until + 1;
      const OpVersion& newer = *(version + 1);
      Status status = cross(node, *version, newer, target);
      if (!status) {
        keep(node, version->until, status.error());
        return;
      }
      // A step may have made another operator of the node.
      if (node.op_type() != std::string_view(op->name)) {
        op = find_operator(kDomainNames[domain], node.op_type());
        version = op != nullptr ? resolve(*op, boundary) : nullptr;
        if (version == nullptr) break;
      } else {
        version = &newer;
      }
    }
    node.set_opset_override(0);
  }

  Status cross(Node& node, const OpVersion& version, const OpVersion& newer, int target) {
    CHECK_OK(take_step(node, version, newer, target));
    if (version.attribute("consumed_inputs") != nullptr &&
        newer.attribute("consumed_inputs") == nullptr)
      node.remove_attribute("consumed_inputs");  // a hint for memory reuse, without meaning
    return ok();
  }

  Status take_step(Node& node, const OpVersion& version, const OpVersion& newer, int target) {
    for (const VersionStep& row : version.decl->up) {
      if (row.from != version.since || row.to != newer.since) continue;
      for (const Attribute& attribute : node.attributes())
        if (attribute.is_reference())
          return unsupported("its attributes are given where the function is called");
      StepContext context{node, row.from, row.to, target, *this};
      ++done_.steps;
      return row.step(context);
    }
    return ok();
  }

  void keep(Node& node, int opset, const Error& why) {
    ++done_.kept;
    node.set_opset_override(opset);
    diagnostics_.add({Severity::kNote,
                      "kept-version",
                      node_place(node),
                      "stays at operator set " + std::to_string(opset) + ": " + why.message,
                      {}});
  }

  void collect_names() {
    names_collected_ = true;
    auto collect = [&](Graph& graph) {
      for (const Value* value : graph.inputs()) names_.insert(value->name());
      for (const Value* value : graph.initializers()) names_.insert(value->name());
      for (const Value* value : graph.sparse_initializers()) names_.insert(value->name());
      for (const Node* node : graph.nodes()) {
        for (const Value* value : node->outputs())
          if (value != nullptr) names_.insert(value->name());
        for (const Value* value : node->inputs())  // a name that nothing defines, too
          if (value != nullptr) names_.insert(value->name());
      }
      for (const Value* value : graph.value_infos()) names_.insert(value->name());
    };
    if (model_.graph) for_each_graph(*model_.graph, collect);
    for (const auto& function : model_.functions) for_each_graph(function->body, collect);
    for (TrainingInfo& training : model_.training) {
      if (training.initialization) for_each_graph(*training.initialization, collect);
      if (training.algorithm) for_each_graph(*training.algorithm, collect);
    }
  }

  Model& model_;
  Diagnostics& diagnostics_;
  int target_[kDomainCount] = {};
  std::unordered_set<std::string_view> shadowing_;  ///< model functions named as operators of ONNX
  FactTable facts_;
  Conversion done_;
  Graph* function_body_ = nullptr;
  bool made_initializer_ = false;
  std::vector<Created> created_;
  bool names_collected_ = false;
  std::unordered_set<std::string_view> names_;
  std::unordered_map<std::string, int> next_suffix_;
};

}  // namespace

Result<Conversion> convert(Model& model, std::span<const OpsetTarget> targets,
                           Diagnostics& diagnostics) {
  TRY(const Conversion up, Converter(model, targets, diagnostics).run());
  TRY(Conversion done, downgrade(model, targets, diagnostics));
  done.steps += up.steps;
  done.kept += up.kept;
  return done;
}

Status upgrade(Model& model, Diagnostics& diagnostics) {
  OpsetTarget targets[kDomainCount];
  for (size_t i = 0; i < kDomainCount; ++i)
    targets[i] = {kDomainNames[i], latest_opset(kDomainNames[i])};
  Result<Conversion> done = convert(model, targets, diagnostics);
  if (!done) return std::move(done).error();
  return ok();
}

}  // namespace tombolo
