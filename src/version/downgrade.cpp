#include "version/downgrade.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "analysis/infer.h"
#include "ir/borrowed.h"
#include "ir/splice.h"
#include "ir/text/parser.h"
#include "ops/function_text.h"
#include "ops/registry.h"
#include "ops/step_context.h"
#include "version/fit.h"
#include "version/node_place.h"

namespace tombolo {
namespace {

void for_all_graphs(Model& model, const auto& visit) {
  if (model.graph) for_each_graph(*model.graph, visit);
  for (const auto& function : model.functions) for_each_graph(function->body, visit);
  for (TrainingInfo& training : model.training) {
    if (training.initialization) for_each_graph(*training.initialization, visit);
    if (training.algorithm) for_each_graph(*training.algorithm, visit);
  }
}

/// Wider types that compute the same, for operators that did not take `dtype` yet: best first.
std::vector<DType> wider(DType dtype, std::string_view op) {
  static constexpr std::string_view kOfIntegers[] = {
      "Add", "Clip", "Div", "Max", "Min", "Mul", "Relu", "ReduceMax", "ReduceMin", "Sub"};
  switch (dtype) {
    case DType::kBFloat16:
    case DType::kFloat16:
      return {DType::kFloat32};
    case DType::kBool:
      if (op != "ReduceMax" && op != "ReduceMin") return {};
      return {DType::kUInt8, DType::kInt32};
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kInt16:
    case DType::kUInt16:
    case DType::kInt32:
      if (std::find(std::begin(kOfIntegers), std::end(kOfIntegers), op) == std::end(kOfIntegers))
        return {};
      // Products of integers wrap; that of a wider integer, cast back, wraps the same.
      if (op == "Max" || op == "Min" || op == "Relu" || op == "Clip")
        return {DType::kInt32, DType::kInt64, DType::kFloat64};
      return {DType::kInt32, DType::kInt64};
    default:
      return {};
  }
}

class Downgrader final : public StepHost, public NameSource {
 public:
  Downgrader(Model& model, Diagnostics& diagnostics) : model_(model), diagnostics_(diagnostics) {
    for (const auto& function : model.functions)
      if (find_operator(function->domain, function->name) != nullptr)
        shadowing_.insert(function->name);
  }

  Result<Conversion> run(std::string_view domain, int target) {
    domain_ = domain;
    target_ = target;
    if (const int64_t import = model_.opset(domain_); import > target_) {
      if (model_.graph) collect(*model_.graph, static_cast<int>(import));
      for (TrainingInfo& training : model_.training) {
        if (training.initialization) collect(*training.initialization, static_cast<int>(import));
        if (training.algorithm) collect(*training.algorithm, static_cast<int>(import));
      }
    }
    for (auto& function : model_.functions)
      for (const OpsetImport& import : function->opset_imports)
        if (canonical_domain(import.domain) == domain_ && import.version > target_)
          collect(function->body, static_cast<int>(import.version));
    while (!pending_.empty()) {
      std::vector<Pending> round;
      round.swap(pending_);
      for (const Pending& one : round) CHECK_OK(advance(one));
      if (stale_) inference_.reset();
      stale_ = false;
    }
    bool below = false;
    for (Node* node : settled_) {
      if (node->opset_override() == target_) node->set_opset_override(0);
      below |= node->opset_override() != 0 && node->opset_override() < target_;
    }
    lower(model_.opset_imports);
    for (const auto& function : model_.functions) lower(function->opset_imports);
    if (below) {  // bodies written in an operator set below the target
      const OpsetTarget reached{domain_, target_};
      TRY(const Conversion up, convert(model_, {&reached, 1}, diagnostics_));
      done_.kept += up.kept;
    }
    return done_;
  }

  // StepHost
  ValueFacts facts(const Value& value) override {
    ValueFacts facts;
    if (const InferType* type = known(value); type != nullptr && type->is_tensor()) {
      facts.dtype = type->elem;
      if (type->shape) facts.rank = type->shape->size();
    }
    return facts;
  }
  std::optional<int64_t> dim(const Value& value, size_t axis) override {
    const InferType* type = known(value);
    if (type == nullptr || !type->shape || axis >= type->shape->size()) return std::nullopt;
    return (*type->shape)[axis].constant();
  }
  bool same_dim(const Value& a, size_t a_axis, const Value& b, size_t b_axis) override {
    const InferType *x = known(a), *y = known(b);
    return x != nullptr && y != nullptr && x->shape && y->shape && a_axis < x->shape->size() &&
           b_axis < y->shape->size() && (*x->shape)[a_axis].equals((*y->shape)[b_axis]);
  }
  std::optional<std::vector<int64_t>> known_ints(const Value& value) override {
    const SymShape* elements = inference().elements(value);
    if (elements == nullptr) return std::nullopt;
    std::vector<int64_t> numbers;
    for (const SymDim& element : *elements) {
      if (!element.is_value()) return std::nullopt;
      numbers.push_back(element.value());
    }
    return numbers;
  }
  Text unique_name(Graph&, std::string_view hint) override { return fresh_name(hint); }
  Value* constant(Graph& graph, Node* before, const Tensor& tensor,
                  std::string_view hint) override {
    const Text name = fresh_name(hint);
    if (in_function(graph)) {
      Node& made = *graph.add_node("Constant", {}, before);
      made.set_tensor("value", tensor);
      created(&made, target_);
      return made.add_output(name);
    }
    Value* value = graph.new_value_view(name);
    graph.define_initializer(
        value, std::make_unique<Constant>(Constant::from_tensor(tensor, name, graph.storage())));
    return value;
  }
  void created(Node* node, int version) override {
    stale_ = true;
    if (node->opset_override() == 0) enter(node, version);
  }
  Status expand(Node& node, int from, int opset, std::string_view nodes) override {
    const OpVersion* version = find_version(domain_, node.op_type(), from);
    if (version == nullptr) return unsupported("no such operator");
    return put_in_place(node, function_text(*version, opset, nodes), opset);
  }

  // NameSource
  Text fresh_name(std::string_view hint) override {
    if (!names_collected_) collect_names();
    std::string name(hint.empty() ? "value" : hint);
    const std::string stem = name;
    auto [entry, fresh] = next_suffix_.try_emplace(name, 0);
    while (names_.contains(name)) name = stem + "_" + std::to_string(++entry->second);
    const Text kept = model_.storage().copy(name);
    names_.insert(kept);
    return kept;
  }

 private:
  struct Pending {
    Node* node;
    int opset;
  };

  const Inference& inference() {
    if (!inference_) {
      inference_ = std::make_unique<Inference>(model_);
      Diagnostics ignored;
      inference_->run(ignored);
    }
    return *inference_;
  }
  const InferType* known(const Value& value) { return inference().type(value); }

  bool in_function(const Graph& graph) const {
    const Graph* top = &graph;
    while (top->parent_node() != nullptr) top = &top->parent_node()->graph();
    return std::any_of(model_.functions.begin(), model_.functions.end(),
                       [&](const auto& function) { return &function->body == top; });
  }

  void collect(Graph& graph, int import) {
    for_each_graph(graph, [&](Graph& inner) {
      for (Node* node : inner.nodes())
        enter(node, node->opset_override() > 0 ? node->opset_override() : import);
    });
  }
  void enter(Node* node, int opset) {
    if (canonical_domain(node->domain()) != domain_ || shadowing_.contains(node->op_type())) return;
    if (find_operator(domain_, node->op_type()) == nullptr) return;
    node->set_opset_override(opset);
    settled_.push_back(node);
    if (opset > target_) pending_.push_back({node, opset});
  }

  /// One version down.
  Status advance(const Pending& one) {
    Node& node = *one.node;
    const OpDecl* op = find_operator(domain_, node.op_type());
    const OpVersion* version = op != nullptr ? resolve(*op, one.opset) : nullptr;
    if (version == nullptr) {
      block(node, one.opset, "nothing is known of the operator there");
      return ok();
    }
    if (version->since <= target_) {
      node.set_opset_override(target_);
      return ok();
    }
    const std::span<const OpVersion> all = versions_of(*op);
    const OpVersion* older = version == all.data() ? nullptr : version - 1;
    Status status = cross(node, *version, older);
    if (status) return ok();
    if (status.error().kind != ErrorKind::kUnsupported) return status;
    block(node, version->since, status.error().message);
    return ok();
  }

  Status cross(Node& node, const OpVersion& version, const OpVersion* older) {
    std::string why = "the operator is new";
    const VersionStep* step = nullptr;
    for (const VersionStep& row : version.decl->down)
      if (row.from == version.since) step = &row;
    if (step != nullptr && has_references(node))
      why = "its attributes are given where the function is called";
    else if (step != nullptr) {
      const std::string op(node.op_type());
      StepContext context{node, version.since, version.since - 1, target_, *this};
      replaced_ = false;
      Status status = step->step(context);
      if (status) {
        ++done_.steps;
        stale_ = true;
        if (replaced_) return ok();
        if (node.op_type() != op || older == nullptr) {
          const OpVersion* now = find_version(domain_, node.op_type(), version.since - 1);
          if (now == nullptr) return unsupported("the operator is new");
          return land(node, version.since - 1);
        }
        if (auto found = misfit(node, *older, version, inference());
            !found || widen(node, *older, *found)) {
          adopt(node, *older, version);
          return land(node, version.since - 1);
        } else {
          why = found->why;
        }
      } else {
        if (status.error().kind != ErrorKind::kUnsupported) return status;
        why = status.error().message;
      }
    } else if (older != nullptr) {
      if (changed_meaning(version, *older)) {
        why = "its meaning changed";
      } else if (auto found = misfit(node, *older, version, inference());
                 !found || widen(node, *older, *found)) {
        adopt(node, *older, version);
        return land(node, version.since - 1);
      } else {
        why = found->why;
      }
    }
    return by_body(node, version, why);
  }

  static bool has_references(const Node& node) {
    return std::any_of(node.attributes().begin(), node.attributes().end(),
                       [](const Attribute& attribute) { return attribute.is_reference(); });
  }
  /// A step up without its step down.
  static bool changed_meaning(const OpVersion& version, const OpVersion& older) {
    const auto& up = version.decl->up;
    return std::any_of(up.begin(), up.end(), [&](const VersionStep& row) {
      return row.from == older.since && row.to == version.since;
    });
  }

  void lower(std::vector<OpsetImport>& imports) const {
    for (OpsetImport& import : imports)
      if (canonical_domain(import.domain) == domain_ && import.version > target_)
        import.version = target_;
  }

  void collect_names() {
    names_collected_ = true;
    const auto note = [&](const Value* value) {
      if (value != nullptr) names_.insert(value->name());
    };
    const auto visit = [&](Graph& graph) {
      for (const Value* value : graph.inputs()) note(value);
      for (const Value* value : graph.initializers()) note(value);
      for (const Value* value : graph.sparse_initializers()) note(value);
      for (const Value* value : graph.value_infos()) note(value);
      for (const Node* node : graph.nodes()) {
        for (const Value* value : node->outputs()) note(value);
        for (const Value* value : node->inputs()) note(value);
      }
    };
    for_all_graphs(model_, visit);
  }

  Status land(Node& node, int opset) {
    node.set_opset_override(opset);
    if (opset > target_) pending_.push_back({&node, opset});
    return ok();
  }

  /// Casts around the node, when all that is in the way is a type that a wider one stands for.
  bool widen(Node& node, const OpVersion& older, const Misfit& found) {
    if (found.dtype == DType::kUndefined || node.op_type() == "Cast" ||
        node.attribute("dtype") != nullptr)
      return false;
    const auto param_of = [](std::span<const ResolvedParam> params, size_t i) {
      return params.empty() ? nullptr : &params[std::min(i, params.size() - 1)];
    };
    const auto in_the_way = [&](const Value* value, const ResolvedParam* param) {
      if (value == nullptr || param == nullptr) return false;
      const InferType* type = known(*value);
      return type != nullptr && type->is_tensor() && type->elem == found.dtype &&
             !param->allowed.has_tensor(found.dtype);
    };
    for (const DType wide : wider(found.dtype, node.op_type())) {
      bool possible = true;
      for (size_t i = 0; i < node.inputs().size(); ++i)
        if (const ResolvedParam* param = param_of(older.inputs, i);
            in_the_way(node.input(i), param))
          possible = possible && param->allowed.has_tensor(wide);
      for (size_t i = 0; i < node.outputs().size(); ++i)
        if (const ResolvedParam* param = param_of(older.outputs, i);
            in_the_way(node.output(i), param))
          possible = possible && param->allowed.has_tensor(wide);
      const OpVersion* cast = find_version("", "Cast", older.until);
      if (!possible || cast == nullptr || !cast->inputs[0].allowed.has_tensor(found.dtype))
        continue;
      StepContext step{node, older.until, older.until, target_, *this};
      std::vector<size_t> outputs;
      for (size_t i = 0; i < node.outputs().size(); ++i)
        if (in_the_way(node.output(i), param_of(older.outputs, i))) outputs.push_back(i);
      std::unordered_map<Value*, Value*> cast_of;
      for (uint32_t i = 0; i < node.inputs().size(); ++i) {
        if (!in_the_way(node.input(i), param_of(older.inputs, i))) continue;
        Value*& made = cast_of[node.input(i)];
        if (made == nullptr) {
          Node& widened = step.before("Cast", {node.input(i)}, node.input(i)->name());
          widened.set_int("to", static_cast<int64_t>(wide));
          made = widened.output(0);
        }
        node.set_input(i, made);
      }
      for (const size_t i : outputs)
        step.after("Cast", static_cast<uint32_t>(i))
            .set_int("to", static_cast<int64_t>(found.dtype));
      return true;
    }
    return false;
  }

  /// The body that the specification gives the operator, in the place of the node.
  Status by_body(Node& node, const OpVersion& version, const std::string& why) {
    const FunctionBody* best = nullptr;
    for (const FunctionBody* row : version.functions) {
      if (row->text.empty() && row->builder == nullptr) continue;
      // Written in the lowest operator set that need not go up again.
      const bool better =
          best == nullptr ||
          (row->opset >= target_ ? best->opset < target_ || row->opset < best->opset
                                 : row->opset > best->opset && best->opset < target_);
      if (better) best = row;
    }
    if (best == nullptr) return unsupported(why);
    std::vector<DType> types;
    for (const Value* input : node.inputs())
      types.push_back(input != nullptr ? element_type(known(*input)) : DType::kUndefined);
    const std::unique_ptr<bool[]> wanted(new bool[node.outputs().size()]);
    for (size_t i = 0; i < node.outputs().size(); ++i)
      wanted[i] = node.output(i) != nullptr && node.output(i)->has_uses();
    FunctionContext context{version, best->opset, AttributeReader(node), types,
                            std::span<const bool>(wanted.get(), node.outputs().size())};
    Result<std::string> text = function_text(*best, context);
    if (!text) return unsupported(text.error().message);
    ++done_.steps;
    return put_in_place(node, *text, best->opset);
  }

  Status put_in_place(Node& node, std::string_view text, int opset) {
    TRY(std::unique_ptr<Function> function, parse_function(text, model_.storage_ptr()));
    Graph& graph = node.graph();
    const std::vector<Value*> given(node.inputs().begin(), node.inputs().end());
    std::vector<Node*> made;
    const std::vector<Value*> outputs =
        splice(model_.storage_ptr(), *this, function->body, given, node, &made);
    for (Node* one : made) {
      bind_attributes(model_.storage_ptr(), *one, node, *function);
      if (!node.name().empty() && !one->outputs().empty() && one->output(0) != nullptr)
        one->set_name(std::string(node.name()) + "/" + std::string(one->output(0)->name()));
      if (node.extra() != nullptr) one->ensure_extra().metadata = node.extra()->metadata;
    }
    // The values that stood there keep their names, uses and types.
    std::vector<Value*> own(node.outputs().begin(), node.outputs().end());
    while (!node.outputs().empty())
      node.remove_output(static_cast<uint32_t>(node.outputs().size() - 1));
    std::unordered_map<Value*, Value*> taken;
    for (size_t i = 0; i < own.size(); ++i) {
      if (own[i] == nullptr) continue;
      Value* from = i < outputs.size() ? outputs[i] : nullptr;
      if (const auto found = taken.find(from); found != taken.end()) from = found->second;
      if (from == nullptr || from->is_undefined()) {
        if (!own[i]->has_uses()) continue;
        return unsupported("its output " + std::to_string(i) + " has no other form");
      }
      const bool is_made = from->producer() != nullptr &&
                           std::find(made.begin(), made.end(), from->producer()) != made.end() &&
                           std::find(own.begin(), own.end(), from) == own.end();
      if (!is_made) {
        Node* identity = graph.add_node("Identity", {}, &node);
        identity->add_input(from);
        graph.define_output(identity, own[i]);
        made.push_back(identity);
        continue;
      }
      take_over(*from, *own[i]);
      taken[from] = own[i];
    }
    graph.erase(&node);
    replaced_ = true;
    for (Node* one : made) {
      if (fold(*one)) continue;
      created(one, opset);
      for (Attribute& attribute : one->attributes())
        if (Graph* inner = attribute.graph()) collect(*inner, opset);
    }
    return ok();
  }

  /// `given` becomes what the producer of `made` gives.
  static void take_over(Value& made, Value& given) {
    Node& producer = *made.producer();
    const uint32_t index = made.producer_index();
    std::vector<Value*> rest(producer.outputs().begin() + index, producer.outputs().end());
    while (producer.outputs().size() > index)
      producer.remove_output(static_cast<uint32_t>(producer.outputs().size() - 1));
    made.replace_all_uses_with(given);
    rest[0] = &given;
    for (Value* value : rest) {
      if (value != nullptr)
        producer.graph().define_output(&producer, value);
      else
        producer.add_absent_output();
    }
  }

  /// A Constant node of a body becomes an initialiser where there can be one.
  bool fold(Node& node) {
    if (node.op_type() != "Constant" || node.attributes().size() != 1 || in_function(node.graph()))
      return false;
    Value* output = node.output(0);
    if (output == nullptr || output->output_uses() != 0) return false;
    const Attribute& attribute = node.attributes()[0];
    Tensor tensor;
    if (attribute.name == "value_int" && attribute.i() != nullptr) {
      tensor = Tensor::scalar_int64(*attribute.i());
    } else if (attribute.name == "value_float" && attribute.f() != nullptr) {
      tensor = Tensor::scalar_float(*attribute.f());
    } else if (attribute.name == "value_ints") {
      tensor = Tensor::int64s(attribute.ints());
    } else if (attribute.name == "value" && attribute.tensor() != nullptr) {
      Result<Tensor> value = attribute.tensor()->value(borrowed(model_.storage_ptr()));
      if (!value) return false;
      tensor = *std::move(value);
    } else {
      return false;
    }
    Graph& graph = node.graph();
    Value* const value = graph.new_value_view(output->name());
    graph.define_initializer(value, std::make_unique<Constant>(Constant::from_tensor(
                                        tensor, value->name(), graph.storage())));
    output->replace_all_uses_with(*value);
    graph.erase(&node);
    return true;
  }

  void block(Node& node, int opset, const std::string& why) {
    ++done_.kept;
    done_.lowest = std::max(done_.lowest, opset);
    diagnostics_.add({Severity::kNote,
                      "kept-version",
                      node_place(node),
                      "needs operator set " + std::to_string(opset) + ": " + why,
                      {}});
  }

  Model& model_;
  Diagnostics& diagnostics_;
  std::string_view domain_;
  int target_ = 0;
  std::unordered_set<std::string_view> shadowing_;
  std::unique_ptr<Inference> inference_;
  Conversion done_;
  std::vector<Pending> pending_;
  std::vector<Node*> settled_;
  bool stale_ = false, replaced_ = false;
  bool names_collected_ = false;
  std::unordered_set<std::string_view> names_;
  std::unordered_map<std::string, int> next_suffix_;
};

/// The lowest IR version that has the element type.
int ir_version_of(DType dtype) {
  switch (dtype) {
    case DType::kBFloat16:
      return 4;
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2FNUZ:
      return 9;
    case DType::kInt4:
    case DType::kUInt4:
      return 10;
    case DType::kFloat4E2M1:
      return 11;
    case DType::kFloat8E8M0:
      return 12;
    case DType::kInt2:
    case DType::kUInt2:
      return 13;
    case DType::kFloat6E2M3:
    case DType::kFloat6E3M2:
      return 14;
    default:
      return 3;
  }
}

int64_t ir_version_of(const Type* type) {
  if (type == nullptr) return 3;
  switch (type->kind) {
    case Type::Kind::kTensor:
      return ir_version_of(type->dtype());
    case Type::Kind::kSequence:
      return std::max<int64_t>(6, ir_version_of(type->element));
    case Type::Kind::kMap:
      return 3;
    default:
      return std::max<int64_t>(8, type->element != nullptr ? ir_version_of(type->element) : 8);
  }
}

}  // namespace

int64_t least_ir_version(const Model& model) {
  int64_t least = std::max<int64_t>(3, ir_version_for_opset(static_cast<int>(model.opset())));
  const auto need = [&](int64_t version) { least = std::max(least, version); };
  const auto visit = [&](Graph& graph) {
    for (const Value* value : graph.inputs()) need(ir_version_of(value->type()));
    for (const Value* value : graph.initializers()) {
      if (!value->is_input()) need(4);
      need(ir_version_of(value->initializer()->dtype()));
    }
    if (!graph.sparse_initializers().empty()) need(6);
    for (const Node* node : graph.nodes()) {
      if (!node->overload().empty()) need(10);
      if (node->extra() != nullptr && !node->extra()->devices.empty()) need(11);
      for (const Value* value : node->outputs())
        if (value != nullptr) need(ir_version_of(value->type()));
      for (const Attribute& attribute : node->attributes())
        if (attribute.tensor() != nullptr) need(ir_version_of(attribute.tensor()->dtype()));
    }
  };
  if (model.graph) for_each_graph(*model.graph, visit);
  for (const auto& function : model.functions) {
    need(function->overload.empty() ? 8 : 10);
    if (!function->attribute_protos.empty()) need(9);
    for_each_graph(function->body, visit);
  }
  for (const TrainingInfo& training : model.training) {
    need(7);
    if (training.initialization) for_each_graph(*training.initialization, visit);
    if (training.algorithm) for_each_graph(*training.algorithm, visit);
  }
  if (!model.configurations.empty()) need(11);
  return least;
}

Result<Conversion> downgrade(Model& model, std::span<const OpsetTarget> targets,
                             Diagnostics& diagnostics) {
  Conversion all;
  bool lowered = false;
  std::unordered_set<const Value*> unused;  // initialisers that the file keeps for no use
  for_all_graphs(model, [&](Graph& graph) {
    for (const Value* value : graph.initializers())
      if (!value->has_uses()) unused.insert(value);
  });
  for (const OpsetTarget& target : targets) {
    const std::string_view domain = canonical_domain(target.domain);
    const auto above = [&](const std::vector<OpsetImport>& imports) {
      return std::any_of(imports.begin(), imports.end(), [&](const OpsetImport& import) {
        return canonical_domain(import.domain) == domain && import.version > target.version;
      });
    };
    bool any = above(model.opset_imports);
    for (const auto& function : model.functions) any = any || above(function->opset_imports);
    if (!any) continue;
    lowered = true;
    TRY(const Conversion done, Downgrader(model, diagnostics).run(domain, target.version));
    all.steps += done.steps;
    all.kept += done.kept;
    all.lowest = std::max(all.lowest, done.lowest);
  }
  if (lowered && all.kept == 0) {
    for_all_graphs(model, [&](Graph& graph) {
      const std::vector<Value*> values = graph.initializers();
      for (Value* value : values)
        if (!value->has_uses() && !value->is_input() && !unused.contains(value))
          graph.remove_initializer(value);
    });
    const int64_t least = least_ir_version(model);
    if (least < model.ir_version) model.ir_version = least;
  }
  return all;
}

}  // namespace tombolo
