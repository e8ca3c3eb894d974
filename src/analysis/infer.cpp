#include "analysis/infer.h"

#include <unordered_set>

#include "analysis/only_member.h"
#include "analysis/place.h"
#include "analysis/rules.h"
#include "ops/registry.h"

namespace tombolo {

namespace {

constexpr int64_t kMaxConstant = 1024;     ///< elements of a constant that inference looks at
constexpr int64_t kMaxFloatConstant = 16;  ///< likewise, of a float tensor read as integers
constexpr int kMaxGraphDepth = 64;
constexpr size_t kSpareVisits = 1'000'000;  ///< repeated visits of loop bodies and functions

/// What a node sees of the function or graph around it.
struct Frame {
  const Place* place = nullptr;
  const Function* function = nullptr;  ///< null in the main graph
  const AttributeBinding* binding = nullptr;
  const Frame* caller = nullptr;  ///< of the function
  int call_depth = 0;
  int graph_depth = 0;
  bool in_branch = false;  ///< inside an If: what is wrong here may never run
};

struct Slot {
  const InferType* type = nullptr;
  const SymShape* elements = nullptr;
  const Value* alias = nullptr;  ///< input of a function body: the value of the call
};

/// The type variable's view of a type: is it among the allowed ones? Unknown parts allow.
bool allowed(const TypeSet& set, const InferType& type) {
  const auto elem_of = [](const InferType& t) { return t.elem; };
  switch (type.kind) {
    case Type::Kind::kTensor:
      return type.elem == DType::kUndefined || set.has_tensor(type.elem);
    case Type::Kind::kSequence:
    case Type::Kind::kOptional: {
      if (type.element == nullptr) return true;
      const InferType& inner = *type.element;
      const bool optional = type.kind == Type::Kind::kOptional;
      if (inner.kind == Type::Kind::kTensor && elem_of(inner) != DType::kUndefined)
        return optional ? set.has_optional(inner.elem) : set.has_sequence(inner.elem);
      if (optional && inner.kind == Type::Kind::kSequence && inner.element != nullptr &&
          inner.element->is_tensor() && inner.element->elem != DType::kUndefined)
        return set.has_optional_sequence(inner.element->elem);
      if (inner.kind == Type::Kind::kNone || inner.elem == DType::kUndefined) {
        if (inner.kind != Type::Kind::kMap) return true;
      }
      break;
    }
    case Type::Kind::kMap:
      break;
    case Type::Kind::kSparseTensor:
    case Type::Kind::kOpaque:
      return false;
    case Type::Kind::kNone:
      return true;
  }
  const auto member = type_set_of(kind_text(type));
  return member && set.covers(*member);
}

std::string allowed_text(const TypeSet& set) {
  const std::vector<std::string> names = type_strings(set);
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i != 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace

InferType only_member(const TypeSet& set) {
  const auto single = [](uint32_t word) { return word != 0 && (word & (word - 1)) == 0; };
  const auto dtype = [](uint32_t word) { return static_cast<DType>(__builtin_ctz(word)); };
  if (set == TypeSet{.tensors = set.tensors} && single(set.tensors))
    return InferType::tensor(dtype(set.tensors));
  if (set == TypeSet{.sequences = set.sequences} && single(set.sequences))
    return InferType::sequence(InferType::tensor(dtype(set.sequences)));
  return {};
}

class Inference::Engine : public InferHost {
 public:
  explicit Engine(const Model& model) : model_(model) {}

  void run(Diagnostics& diagnostics) {
    diagnostics_ = &diagnostics;
    for (const auto& function : model_.functions)
      functions_.emplace(function_key(function->domain, function->name, function->overload),
                         function.get());
    if (model_.graph == nullptr) return;
    const Graph& graph = *model_.graph;
    collect_names(graph);
    visits_left_ = kSpareVisits + count_nodes(graph, 0);
    for (const Value* input : graph.inputs()) name_unknown_dims(*input);
    const Place place = Place::text("graph");
    Frame frame;
    frame.place = &place;
    walk(graph, frame);
    diagnostics_ = nullptr;
  }

  const InferType* type(const Value& value) {
    Slot& slot = slot_of(value);
    if (slot.type == nullptr) slot.type = declared(value);
    return slot.type->kind == Type::Kind::kNone ? nullptr : slot.type;
  }
  const SymShape* elements(const Value& value) { return slot_of(value).elements; }

  // InferHost
  Result<std::vector<InferType>> infer_graph(const Graph& graph,
                                             std::span<const InferType> inputs) override {
    std::vector<InferType> outputs(graph.outputs().size());
    if (frame_ == nullptr || frame_->graph_depth >= kMaxGraphDepth) return outputs;
    const Frame* const outer = frame_;
    const Node* const node = node_;
    const int64_t index = index_;
    const Place node_place = Place::of_node(*node, index, outer->place);
    Text attribute_name = "body";
    for (const Attribute& attribute : node->attributes())
      if (attribute.graph() == &graph) attribute_name = attribute.name;
    const Place place = Place::text(attribute_name, &node_place);
    Frame frame = *outer;
    frame.place = &place;
    ++frame.graph_depth;
    frame.in_branch |= node->op_type() == "If";

    if (!inputs.empty() && inputs.size() != graph.inputs().size())
      return parse_error(std::string(attribute_name) + " has " +
                         std::to_string(graph.inputs().size()) + " inputs, but " +
                         std::string(node->op_type()) + " gives it " +
                         std::to_string(inputs.size()));
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      const Value& value = *graph.inputs()[i];
      Slot& slot = slot_of(value);
      slot = {};
      const InferType* known = declared(value);
      if (i < inputs.size()) {
        Merge merged = merge_types(*known, inputs[i]);
        if (merged.conflict == Merge::Conflict::kKind)
          return parse_error("input " + quote_name(value.name()) + " of " +
                             std::string(attribute_name) + " is declared " + type_text(*known) +
                             ", but the node gives it " + type_text(inputs[i]));
        // A loop-carried value may change its shape from one iteration to the next: what the
        // engine is told counts, and a declared shape only where that says nothing.
        slot_of(value).type = pool_.intern(
            merged.conflict == Merge::Conflict::kNone ? std::move(merged.type) : inputs[i]);
      } else {
        slot_of(value).type = known;
      }
    }
    walk(graph, frame);
    frame_ = outer;
    node_ = node;
    index_ = index;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const GraphOutput& output = graph.outputs()[i];
      if (output.value != nullptr)
        if (const InferType* known = type(*output.value)) outputs[i] = *known;
    }
    return outputs;
  }

  SymDim fresh_symbol(std::string_view hint) override {
    for (;;) {
      std::string name = std::string(hint) + "_" + std::to_string(next_symbol_++);
      if (!names_.contains(name)) return SymDim::symbol(name);
    }
  }

 private:
  static std::string function_key(Text domain, Text name, Text overload) {
    std::string key(canonical_domain(domain));
    key += '\0';
    key += name;
    key += '\0';
    key += overload;
    return key;
  }

  Slot& slot_of(const Value& value) {
    if (value.id() >= slots_.size()) slots_.resize(value.id() + 1 + value.id() / 2);
    return slots_[value.id()];
  }

  /// Every name of a dimension, so that new symbols do not collide.
  void collect_names(const Graph& graph) {
    const auto add = [this](const Type* type) {
      for (; type != nullptr; type = type->element)
        for (const Dim& dim : type->dims)
          if (dim.kind == Dim::Kind::kParam) names_.insert(dim.param);
    };
    const Type* last = nullptr;
    const auto add_value = [&](const Value* value) {
      if (value == nullptr || value->type() == last) return;
      last = value->type();
      add(last);
    };
    for (const Value* value : graph.inputs()) add_value(value);
    for (const Value* value : graph.value_infos()) add_value(value);
    for (const GraphOutput& output : graph.outputs()) add_value(output.value);
  }

  static size_t count_nodes(const Graph& graph, int depth) {
    size_t count = graph.node_count();
    if (depth > kMaxGraphDepth) return count;
    for (const Node* node : graph.nodes())
      for (const Attribute& attribute : node->attributes())
        if (const Graph* inner = attribute.graph()) count += count_nodes(*inner, depth + 1);
    return count;
  }

  /// What the file says of a value: its ValueInfo, and the type of its initialiser.
  const InferType* declared(const Value& value) {
    if (const Constant* constant = value.initializer())
      if (constant->dtype() != DType::kUndefined) return pool_.intern(from_constant(*constant));
    if (const SparseConstant* sparse = value.sparse_initializer()) {
      SymShape shape;
      for (const int64_t dim : sparse->dims.span()) shape.push_back(SymDim(dim));
      return pool_.intern(InferType::tensor(sparse->values.dtype(), std::move(shape)));
    }
    if (value.type() == nullptr) return &kNothing;
    if (value.type() == last_declared_) return last_declared_as_;
    last_declared_ = value.type();
    return last_declared_as_ = pool_.intern(from_declared(*value.type()));
  }

  /// Unnamed dimensions of graph inputs are told apart by symbols that are not written.
  void name_unknown_dims(const Value& input) {
    InferType named = *declared(input);
    if (input.initializer() != nullptr || !named.shape) return;
    for (SymDim& dim : *named.shape)
      if (dim.is_unknown())
        dim = SymDim::symbol(std::string(1, kUnnamedMark) + std::to_string(next_unnamed_++));
    slot_of(input).type = pool_.intern(std::move(named));
  }

  int opset_of(Text domain) const {
    domain = canonical_domain(domain);
    int64_t version = 0;
    if (frame_->function != nullptr) {
      for (const OpsetImport& import : frame_->function->opset_imports)
        if (canonical_domain(import.domain) == domain) version = import.version;
    }
    if (version == 0) version = model_.opset(domain);
    if (version <= 0) return latest_opset(domain);
    return static_cast<int>(std::min<int64_t>(version, 9999));
  }

  void walk(const Graph& graph, const Frame& frame) {
    int64_t index = 0;
    for (const Node* node : graph.nodes()) {
      if (visits_left_ == 0) {
        if (!budget_reported_)
          report(*diagnostics_, rules::kInferBudget, to_string(*frame.place),
                 "functions and loops expand to too many nodes; inference stopped here");
        budget_reported_ = true;
        return;
      }
      --visits_left_;
      frame_ = &frame;
      node_ = node;
      index_ = index++;
      infer_node(*node, frame);
    }
  }

  // ---- reports ----

  /// A node inside a loop or function is visited more than once: say each thing once.
  bool may_report(const Node& node) {
    if (last_reported_ == &node && last_visit_ == visits_left_) return true;
    last_reported_ = &node;
    last_visit_ = visits_left_;
    if (reported_.size() > 100'000) return false;
    return reported_.insert(&node).second;
  }
  void report_node(const Rule& rule, const std::string& input, std::string message,
                   std::string help = {}) {
    if (!may_report(*node_)) return;
    const Place place = Place::of_node(*node_, index_, frame_->place);
    std::string where = to_string(place);
    if (!input.empty()) where += " > " + input;
    report(*diagnostics_, frame_->in_branch ? rules::kInvalidNodeInBranch : rule, std::move(where),
           std::move(message), std::move(help));
  }

  static std::string source_of(const Value& value) {
    std::string text = quote_name(value.name());
    if (value.producer() != nullptr)
      text += ", made by " + std::string(value.producer()->op_type()) +
              (value.producer()->name().empty() ? std::string()
                                                : " " + quote_name(value.producer()->name()));
    else if (value.is_initializer())
      text += ", an initialiser";
    else if (value.is_input())
      text += ", a graph input";
    return text;
  }

  // ---- constants ----

  static bool is_constant_initializer(const Value& value, int64_t ir_version) {
    // From IR 4 on an initialiser that is also an input is only a default.
    return value.initializer() != nullptr && (!value.is_input() || ir_version < 4);
  }

  /// The value of a small constant, wherever it is defined.
  bool constant_of(const Value* value, const Frame* frame, Tensor& out) {
    for (int depth = 0; depth < kMaxCallDepth && frame != nullptr; ++depth) {
      const Value* alias = slot_of(*value).alias;
      if (alias == nullptr) break;
      value = alias;
      frame = frame->caller;
    }
    if (frame == nullptr) return false;
    const Constant* constant = nullptr;
    if (is_constant_initializer(*value, model_.ir_version)) constant = value->initializer();
    const Node* producer = value->producer();
    if (producer != nullptr && producer->op_type() == "Constant" &&
        canonical_domain(producer->domain()).empty()) {
      const AttributeReader attributes(*producer, frame->binding);
      constant = attributes.get_tensor("value");
      if (constant == nullptr) return constant_attribute(attributes, out);
    }
    if (constant == nullptr) return false;
    const int64_t count = element_count(constant->dims.span());
    if (count < 0 || count > kMaxConstant) return false;
    auto tensor = constant->value(model_.storage_ptr());
    if (!tensor) return false;  // the checker says why
    out = std::move(*tensor);
    return true;
  }
  static bool constant_attribute(const AttributeReader& attributes, Tensor& out) {
    if (const auto value = attributes.get_int("value_int")) {
      out = Tensor::scalar_int64(*value);
    } else if (attributes.has("value_float")) {
      out = Tensor::scalar_float(attributes.get_float("value_float", 0));
    } else if (attributes.has("value_ints")) {
      const auto values = attributes.get_ints("value_ints");
      if (values.size() > kMaxConstant) return false;
      out = Tensor::int64s(values);
    } else if (attributes.has("value_floats")) {
      const auto values = attributes.get_floats("value_floats");
      if (values.size() > kMaxConstant) return false;
      const int64_t dims[] = {static_cast<int64_t>(values.size())};
      out = Tensor::of<float>(DType::kFloat32, dims, values);
    } else {
      return false;
    }
    return true;
  }
  /// The elements of a tensor of rank 0 or 1 when all are whole numbers.
  static bool elements_of(const Tensor& tensor, SymShape& out) {
    if (tensor.rank() > 1 || tensor.is_string() || is_complex(tensor.dtype())) return false;
    const bool whole = is_integer(tensor.dtype()) || tensor.dtype() == DType::kBool;
    if (tensor.size() > (whole ? kMaxConstant : kMaxFloatConstant)) return false;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (whole) {
        out.push_back(tensor.get_int64(i));
        continue;
      }
      const double number = tensor.get_double(i);
      if (!(number > -9e15 && number < 9e15) ||
          number != static_cast<double>(static_cast<int64_t>(number)))
        return false;
      out.push_back(static_cast<int64_t>(number));
    }
    return true;
  }

  // ---- one node ----

  void infer_node(const Node& node, const Frame& frame) {
    if (const Function* function = find_function(node)) {
      call(node, *function, frame);
      return;
    }
    const int opset = node.opset_override() > 0 ? node.opset_override() : opset_of(node.domain());
    const OpVersion* version = find_version(node.domain(), node.op_type(), opset);
    if (version == nullptr) {
      infer_subgraphs(node);
      for (const Value* output : node.outputs())
        if (output != nullptr) type(*output);
      return;
    }
    std::vector<const InferType*> inputs(node.inputs().size());
    for (size_t i = 0; i < inputs.size(); ++i)
      if (node.inputs()[i] != nullptr) {
        inputs[i] = type(*node.inputs()[i]);
        if (inputs[i] == nullptr) inputs[i] = &kNothing;
      }

    std::vector<InferType> bound(version->types.size());
    check_types(node, *version, inputs, bound);

    std::vector<InferType> outputs(node.outputs().size());
    std::vector<std::optional<SymShape>> values(node.outputs().size());
    if (version->decl->infer != nullptr)
      run_infer(node, *version, opset, frame, inputs, outputs, values);
    else
      infer_subgraphs(node);
    frame_ = &frame;

    for (size_t i = 0; i < outputs.size(); ++i) {
      if (node.outputs()[i] == nullptr) continue;
      fill_from_schema(*version, i, bound, outputs[i]);
      if (values[i] && values[i]->size() > kMaxConstant) values[i].reset();
      assign(*node.outputs()[i], std::move(outputs[i]), std::move(values[i]));
    }
  }

  void run_infer(const Node& node, const OpVersion& version, int opset, const Frame& frame,
                 std::span<const InferType* const> inputs, std::span<InferType> outputs,
                 std::span<std::optional<SymShape>> values) {
    std::vector<Tensor> tensors(inputs.size());
    std::vector<SymShape> integers(inputs.size());
    std::vector<const Tensor*> constants(inputs.size());
    std::vector<const SymShape*> elements(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Value* value = node.inputs()[i];
      if (value == nullptr) continue;
      elements[i] = slot_of(*value).elements;
      if (!constant_of(value, &frame, tensors[i])) continue;
      constants[i] = &tensors[i];
      if (elements[i] == nullptr && elements_of(tensors[i], integers[i]))
        elements[i] = &integers[i];
    }
    InferContext context{node,     opset,   AttributeReader(node, frame.binding),
                         *this,    inputs,  constants,
                         elements, outputs, values};
    const Status status = version.decl->infer(context);
    frame_ = &frame;
    if (!status) {
      report_node(rules::kInvalidNode, status.error().where, status.error().message,
                  status.error().help);
      for (InferType& output : outputs) output = {};
      for (auto& value : values) value.reset();
    }
  }

  /// Subgraphs of an operator that has no inference function: from what they declare.
  void infer_subgraphs(const Node& node) {
    for (const Attribute& attribute : node.attributes())
      if (const Graph* graph = attribute.graph()) (void)infer_graph(*graph, {}).ok();
  }

  /// Checks the inputs against the schema and binds the type variables.
  void check_types(const Node& node, const OpVersion& version,
                   std::span<const InferType* const> inputs, std::vector<InferType>& bound) {
    std::vector<size_t> binder(bound.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == nullptr || inputs[i]->kind == Type::Kind::kNone) continue;
      if (version.inputs.empty()) return;
      const ResolvedParam& param = version.inputs[std::min(i, version.inputs.size() - 1)];
      if (i >= version.inputs.size() && param.option != Option::kVariadic) return;
      InferType type = *inputs[i];
      type.shape.reset();
      if (!allowed(param.allowed, type)) {
        report_node(rules::kTypeMismatch, input_place(param, i),
                    "input " + source_of(*node.inputs()[i]) + ", is " + kind_text(type) + ", but " +
                        std::string(node.op_type()) + "-" + std::to_string(version.since) +
                        " takes " + allowed_text(param.allowed),
                    "convert it with Cast, or use an operator set that takes this type");
        continue;
      }
      if (param.type_var < 0 || !param.homogeneous) continue;
      InferType& variable = bound[static_cast<size_t>(param.type_var)];
      if (variable.kind == Type::Kind::kNone || variable.elem == DType::kUndefined) {
        if (variable.kind == Type::Kind::kNone || type.elem != DType::kUndefined) variable = type;
        binder[static_cast<size_t>(param.type_var)] = i;
      } else if (type.is_tensor() && type.elem == DType::kUndefined) {
        continue;
      } else if (!same_kind(variable, type)) {
        const size_t first = binder[static_cast<size_t>(param.type_var)];
        report_node(rules::kMixedTypes, input_place(param, i),
                    "input " + source_of(*node.inputs()[i]) + ", is " + kind_text(type) +
                        ", but input " + source_of(*node.inputs()[first]) + ", is " +
                        kind_text(variable) + "; " + std::string(node.op_type()) +
                        " needs one type for both",
                    "convert one of them with Cast");
      }
    }
  }
  static std::string input_place(const ResolvedParam& param, size_t index) {
    std::string text = "input " + std::string(param.name);
    if (param.option == Option::kVariadic) text += " (" + std::to_string(index) + ")";
    return text;
  }

  void assign(const Value& value, InferType inferred, std::optional<SymShape> elements) {
    Slot& slot = slot_of(value);
    const InferType* known = declared(value);
    if (known->kind == Type::Kind::kNone) {
      slot.type = pool_.intern(std::move(inferred));
    } else {
      Merge merged = merge_types(*known, inferred);
      if (merged.conflict != Merge::Conflict::kNone)
        report_conflict(value, *known, inferred, merged);
      slot.type = pool_.intern(merged.conflict == Merge::Conflict::kNone ||
                                       merged.conflict == Merge::Conflict::kDim
                                   ? std::move(merged.type)
                                   : std::move(inferred));
    }
    slot.elements = elements ? pool_.intern(*std::move(elements)) : nullptr;
  }

  void report_conflict(const Value& value, const InferType& known, const InferType& inferred,
                       const Merge& merged) {
    const bool kind = merged.conflict == Merge::Conflict::kKind;
    const bool doubtful = merged.conflict == Merge::Conflict::kDim && !merged.provable;
    std::string message = "value " + quote_name(value.name()) + " is declared " + type_text(known) +
                          ", but its producer gives " + type_text(inferred);
    if (merged.conflict == Merge::Conflict::kDim)
      message += " (they differ at axis " + std::to_string(merged.axis) + ")";
    if (doubtful && frame_->in_branch) return;
    report_node(kind       ? rules::kDeclaredType
                : doubtful ? rules::kDoubtfulShape
                           : rules::kDeclaredShape,
                "output " + std::string(value.name().substr(0, 120)), std::move(message),
                "correct the declaration, or remove it and let it be inferred");
  }

  // ---- functions ----

  const Function* find_function(const Node& node) {
    if (functions_.empty()) return nullptr;
    const auto it = functions_.find(function_key(node.domain(), node.op_type(), node.overload()));
    return it != functions_.end() ? it->second : nullptr;
  }

  struct CallResult {
    std::vector<const InferType*> inputs, outputs;
    std::vector<const SymShape*> input_elements, output_elements;
    const Frame* frame = nullptr;
  };

  void call(const Node& node, const Function& function, const Frame& frame) {
    const Graph& body = function.body;
    for (const Frame* f = &frame; f != nullptr; f = f->caller)
      if (f->function == &function || f->call_depth >= kMaxCallDepth) return;  // checker reports

    CallResult result;
    for (size_t i = 0; i < body.inputs().size(); ++i) {
      const Value* given = node.input(i);
      result.inputs.push_back(given != nullptr ? type(*given) : nullptr);
      result.input_elements.push_back(given != nullptr ? slot_of(*given).elements : nullptr);
    }
    const bool memoise = node.attributes().empty() && !takes_constants(node);
    std::vector<CallResult>& memo = memo_[&function];
    if (memoise)
      for (const CallResult& known : memo)
        if (known.inputs == result.inputs && known.input_elements == result.input_elements) {
          assign_outputs(node, known, frame);
          return;
        }

    AttributeBinding binding;
    for (const Attribute& attribute : node.attributes()) binding.given.push_back(&attribute);
    binding.defaults = function.attribute_protos;
    binding.outer = frame.binding;
    const Place node_place = Place::of_node(node, index_, frame.place);
    const Place place = Place::named("function", function.name, &node_place);
    Frame inner;
    inner.place = &place;
    inner.function = &function;
    inner.binding = &binding;
    inner.caller = &frame;
    inner.call_depth = frame.call_depth + 1;
    inner.graph_depth = frame.graph_depth;
    inner.in_branch = frame.in_branch;
    const int64_t index = index_;
    for (size_t i = 0; i < body.inputs().size(); ++i) {
      Slot& slot = slot_of(*body.inputs()[i]);
      slot.type = result.inputs[i] != nullptr ? result.inputs[i] : &kNothing;
      slot.elements = result.input_elements[i];
      slot.alias = node.input(i);
    }
    walk(body, inner);
    frame_ = &frame;
    node_ = &node;
    index_ = index;
    for (const GraphOutput& output : body.outputs()) {
      result.outputs.push_back(output.value != nullptr ? type(*output.value) : nullptr);
      result.output_elements.push_back(output.value != nullptr ? slot_of(*output.value).elements
                                                               : nullptr);
    }
    assign_outputs(node, result, frame);
    constexpr size_t kMaxMemo = 16;
    if (memoise && memo.size() < kMaxMemo) memo.push_back(std::move(result));
  }
  /// A call that is given float constants (scales ...) may depend on more than types and integers.
  bool takes_constants(const Node& node) {
    for (const Value* value : node.inputs())
      if (value != nullptr &&
          (value->initializer() != nullptr || slot_of(*value).alias != nullptr ||
           (value->producer() != nullptr && value->producer()->op_type() == "Constant")))
        return true;
    return false;
  }
  void assign_outputs(const Node& node, const CallResult& result, const Frame& frame) {
    frame_ = &frame;
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      if (node.outputs()[i] == nullptr) continue;
      const bool known = i < result.outputs.size() && result.outputs[i] != nullptr;
      std::optional<SymShape> elements;
      if (known && result.output_elements[i] != nullptr) elements = *result.output_elements[i];
      assign(*node.outputs()[i], known ? *result.outputs[i] : InferType(), std::move(elements));
    }
  }

  static inline const InferType kNothing{};

  const Model& model_;
  Diagnostics* diagnostics_ = nullptr;
  TypePool pool_;
  std::vector<Slot> slots_;
  std::unordered_map<std::string, const Function*> functions_;
  std::unordered_map<const Function*, std::vector<CallResult>> memo_;
  std::unordered_set<std::string_view> names_;
  std::unordered_set<const Node*> reported_;
  const Node* last_reported_ = nullptr;
  size_t last_visit_ = 0;
  const Type* last_declared_ = nullptr;
  const InferType* last_declared_as_ = nullptr;
  const Frame* frame_ = nullptr;
  const Node* node_ = nullptr;
  int64_t index_ = 0;
  size_t visits_left_ = 0;
  bool budget_reported_ = false;
  uint64_t next_symbol_ = 0, next_unnamed_ = 0;
};

void fill_from_schema(const OpVersion& version, size_t index, std::span<const InferType> bound,
                      InferType& type) {
  if (version.outputs.empty()) return;
  if (type.kind != Type::Kind::kNone && !(type.is_tensor() && type.elem == DType::kUndefined))
    return;
  const ResolvedParam& param = version.outputs[std::min(index, version.outputs.size() - 1)];
  InferType known;
  if (param.type_var >= 0 && param.homogeneous) known = bound[static_cast<size_t>(param.type_var)];
  if (known.kind == Type::Kind::kNone) known = only_member(param.allowed);
  known.shape.reset();
  if (type.kind == Type::Kind::kNone)
    type = std::move(known);
  else if (known.is_tensor())
    type.elem = known.elem;
}

Inference::Inference(const Model& model) : engine_(std::make_unique<Engine>(model)) {}
Inference::~Inference() = default;
void Inference::run(Diagnostics& diagnostics) { engine_->run(diagnostics); }
const InferType* Inference::type(const Value& value) const { return engine_->type(value); }
const SymShape* Inference::elements(const Value& value) const { return engine_->elements(value); }

namespace {

/// The declared type with what is known beside it. The same pointer when nothing is new.
const Type* refine(const Type* declared, const InferType& known, Storage& storage) {
  if (declared == nullptr || declared->kind == Type::Kind::kNone)
    return storage.intern(to_declared(known, storage));
  if (declared->kind != known.kind ||
      !(known.is_tensor() || known.kind == Type::Kind::kSparseTensor))
    return declared;
  Type inferred = to_declared(known, storage);
  Type out = *declared;
  if (out.dtype() == DType::kUndefined && !out.has_elem_type) {
    out.elem_type = inferred.elem_type;
    out.has_elem_type = true;
  }
  if (!out.has_shape) {
    out.has_shape = inferred.has_shape;
    out.dims = std::move(inferred.dims);
  } else if (inferred.has_shape && inferred.dims.size() == out.dims.size()) {
    for (size_t i = 0; i < out.dims.size(); ++i) {
      Dim& dim = out.dims[i];
      const Dim& better = inferred.dims[i];
      const bool unknown =
          dim.kind == Dim::Kind::kUnknown || (dim.kind == Dim::Kind::kParam && dim.param.empty());
      if (better.kind == Dim::Kind::kValue ? dim.kind != Dim::Kind::kValue
                                           : better.kind == Dim::Kind::kParam && unknown) {
        dim.kind = better.kind;
        dim.value = better.value;
        dim.param = better.param;
      }
    }
  }
  return out == *declared ? declared : storage.intern(std::move(out));
}

}  // namespace

void infer_types(Model& model, Diagnostics& diagnostics) {
  if (model.graph == nullptr) return;
  Inference inference(model);
  inference.run(diagnostics);
  std::unordered_map<const InferType*, const Type*> written;
  for_each_graph(*model.graph, [&](Graph& graph) {
    std::unordered_set<const Value*> listed(graph.value_infos().begin(), graph.value_infos().end());
    for (const GraphOutput& output : graph.outputs()) listed.insert(output.value);
    for (Node* node : graph.nodes())
      for (Value* value : node->outputs()) {
        if (value == nullptr) continue;
        const InferType* known = inference.type(*value);
        if (known == nullptr) continue;
        if (value->type() == nullptr) {
          const Type*& type = written[known];
          if (type == nullptr) type = refine(nullptr, *known, model.storage());
          value->set_type(type);
        } else {
          value->set_type(refine(value->type(), *known, model.storage()));
        }
        if (!listed.contains(value)) graph.add_value_info(value);
      }
  });
}

}  // namespace tombolo
