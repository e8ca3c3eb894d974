#include "passes/rewriter.h"

#include <algorithm>

#include "ir/borrowed.h"
#include "ops/registry.h"

namespace tombolo {

/// For nodes that are inferred alone: their subgraphs say nothing.
class Rewriter::Host final : public InferHost {
 public:
  explicit Host(uint64_t& next) : next_(next) {}
  Result<std::vector<InferType>> infer_graph(const Graph& graph,
                                             std::span<const InferType>) override {
    return std::vector<InferType>(graph.outputs().size());
  }
  SymDim fresh_symbol(std::string_view hint) override {
    return SymDim::symbol(kUnnamedMark + std::string(hint) + "_new_" + std::to_string(next_++));
  }

 private:
  uint64_t& next_;
};

Rewriter::Rewriter(Model& model, int level, RewriteLimits limits)
    : limits(limits), model_(model), level_(level) {
  functions_changed();
}

void Rewriter::functions_changed() {
  shadowed_.clear();
  for (const auto& function : model_.functions)
    shadowed_.insert(std::string(canonical_domain(function->domain)) + ":" +
                     std::string(function->name));
}

Rewriter::~Rewriter() = default;

// ---- facts

void Rewriter::refresh() {
  if (!stale_ && inference_) return;
  inference_ = std::make_unique<Inference>(model_);
  Diagnostics ignored;  // contradictions are the checker's to report
  inference_->run(ignored);
  own_types_.clear();
  own_elements_.clear();
  stale_ = false;
}

const InferType* Rewriter::type(const Value* value) const {
  if (value == nullptr) return nullptr;
  if (const auto own = own_types_.find(value->id()); own != own_types_.end()) return own->second;
  return inference_ ? inference_->type(*value) : nullptr;
}

DType Rewriter::dtype(const Value* value) const {
  const InferType* known = type(value);
  return known != nullptr && known->is_tensor() ? known->elem : DType::kUndefined;
}

const SymShape* Rewriter::shape(const Value* value) const {
  const InferType* known = type(value);
  return known != nullptr && known->is_tensor() && known->shape ? &*known->shape : nullptr;
}

std::optional<size_t> Rewriter::rank(const Value* value) const {
  const SymShape* known = shape(value);
  if (known == nullptr) return std::nullopt;
  return known->size();
}

std::optional<std::vector<int64_t>> Rewriter::dims(const Value* value) const {
  const SymShape* known = shape(value);
  if (known == nullptr) return std::nullopt;
  std::vector<int64_t> out;
  for (const SymDim& dim : *known) {
    if (!dim.is_value()) return std::nullopt;
    out.push_back(dim.value());
  }
  return out;
}

std::optional<int64_t> Rewriter::dim(const Value* value, int64_t axis) const {
  const SymShape* known = shape(value);
  if (known == nullptr) return std::nullopt;
  if (axis < 0) axis += static_cast<int64_t>(known->size());
  if (axis < 0 || axis >= static_cast<int64_t>(known->size())) return std::nullopt;
  return (*known)[static_cast<size_t>(axis)].constant();
}

const SymShape* Rewriter::elements(const Value* value) const {
  if (value == nullptr) return nullptr;
  if (const auto own = own_elements_.find(value->id()); own != own_elements_.end())
    return own->second;
  return inference_ ? inference_->elements(*value) : nullptr;
}

bool Rewriter::same_shape(const Value* a, const Value* b) const {
  const SymShape* x = shape(a);
  const SymShape* y = shape(b);
  if (x == nullptr || y == nullptr || x->size() != y->size()) return false;
  for (size_t i = 0; i < x->size(); ++i)
    if (!(*x)[i].equals((*y)[i])) return false;
  return true;
}

bool Rewriter::same_dtype(const Value* a, const Value* b) const {
  return dtype(a) != DType::kUndefined && dtype(a) == dtype(b);
}

bool Rewriter::is_overridable(const Value& value) const {
  return value.is_input() && model_.ir_version >= 4;
}

bool Rewriter::is_constant(const Value* value) const {
  if (value == nullptr) return false;
  if (value->initializer() != nullptr) return !is_overridable(*value);
  const Node* node = value->producer();
  return node != nullptr && is(node, "Constant") && !node->attributes().empty() &&
         node->attribute("sparse_value") == nullptr;
}

const Tensor* Rewriter::constant(const Value* value) const {
  if (!is_constant(value)) return nullptr;
  auto [entry, fresh] = constants_.try_emplace(value->id());
  if (!fresh) return entry->second ? &*entry->second : nullptr;
  std::optional<Tensor> found;
  const Constant* constant = value->initializer();
  if (constant == nullptr) {
    const AttributeReader attributes(*value->producer());
    constant = attributes.get_tensor("value");
    if (const auto number = attributes.get_int("value_int")) {
      found = Tensor::scalar_int64(*number);
    } else if (attributes.has("value_float")) {
      found = Tensor::scalar_float(attributes.get_float("value_float", 0));
    } else if (attributes.has("value_ints")) {
      found = Tensor::int64s(attributes.get_ints("value_ints"));
    } else if (attributes.has("value_floats")) {
      const auto values = attributes.get_floats("value_floats");
      const int64_t count[] = {static_cast<int64_t>(values.size())};
      found = Tensor::of<float>(DType::kFloat32, count, values);
    } else if (attributes.has("value_string") || attributes.has("value_strings")) {
      std::vector<std::string> strings;
      const bool one = attributes.has("value_string");
      if (one) strings.emplace_back(attributes.get_string("value_string", ""));
      for (const Text text : attributes.get_strings("value_strings")) strings.emplace_back(text);
      const int64_t count[] = {static_cast<int64_t>(strings.size())};
      found = Tensor::of_strings(one ? std::span<const int64_t>() : count, std::move(strings));
    }
  }
  if (!found && constant != nullptr) {
    auto tensor = constant->value(borrowed(model_.storage_ptr()));
    if (tensor) {
      if (!tensor->aligned()) {
        auto copy = tensor->clone();
        if (copy) found = *std::move(copy);
      } else {
        found = *std::move(tensor);
      }
    }
  }
  entry->second = std::move(found);
  return entry->second ? &*entry->second : nullptr;
}

std::optional<double> Rewriter::scalar(const Value* value) const {
  if (!is_constant(value)) return std::nullopt;
  if (value->initializer() != nullptr && element_count(value->initializer()->dims.span()) != 1)
    return std::nullopt;  // without reading a weight
  const Tensor* tensor = constant(value);
  if (tensor == nullptr || tensor->size() != 1 || tensor->is_string() ||
      is_complex(tensor->dtype()))
    return std::nullopt;
  return tensor->get_double(0);
}

std::optional<std::vector<int64_t>> Rewriter::ints(const Value* value) const {
  if (value == nullptr) return std::nullopt;
  if (is_constant(value)) {
    const Tensor* tensor = constant(value);
    if (tensor == nullptr || tensor->rank() > 1 || !is_integer(tensor->dtype()) ||
        tensor->size() > 4096)
      return std::nullopt;
    std::vector<int64_t> out;
    for (int64_t i = 0; i < tensor->size(); ++i) out.push_back(tensor->get_int64(i));
    return out;
  }
  const SymShape* known = elements(value);
  if (known == nullptr || !is_integer(dtype(value))) return std::nullopt;
  std::vector<int64_t> out;
  for (const SymDim& one : *known) {
    if (!one.is_value()) return std::nullopt;
    out.push_back(one.value());
  }
  return out;
}

bool Rewriter::is(const Node* node, Text op, Text domain) const {
  return node != nullptr && node->op_type() == op && canonical_domain(node->domain()) == domain &&
         node->opset_override() == 0 &&
         (shadowed_.empty() || !shadowed_.contains(std::string(domain) + ":" + std::string(op)));
}

Node* Rewriter::producer(const Value* value, Text op) const {
  if (value == nullptr || !is(value->producer(), op)) return nullptr;
  return value->producer();
}

bool Rewriter::single_use(const Value* value) {
  return value != nullptr && value->uses().size() == 1 && value->output_uses() == 0;
}

Node* Rewriter::only_reader(const Value* value, const Graph& graph) {
  if (!single_use(value)) return nullptr;
  Node* node = value->uses()[0].node;
  return &node->graph() == &graph && node->outputs().size() == 1 && node->output(0) != nullptr
             ? node
             : nullptr;
}

bool Rewriter::is_read(const Value* value) {
  return value != nullptr && (value->has_uses() || value->output_uses() != 0);
}

const OpDecl* Rewriter::declaration(const Node& node) const {
  if (!shadowed_.empty() && shadowed_.contains(std::string(canonical_domain(node.domain())) + ":" +
                                               std::string(node.op_type())))
    return nullptr;
  return find_operator(node.domain(), node.op_type());
}

// ---- edits

Node& Rewriter::add(Node& before, Text op, std::span<Value* const> inputs, Text hint,
                    size_t outputs, Text domain) {
  Graph& graph = before.graph();
  Node& node = *graph.add_node(op, domain, &before);
  if (!domain.empty() && model_.opset(domain) == 0)
    model_.set_opset(domain, latest_opset(domain) > 0 ? latest_opset(domain) : 1);
  for (Value* input : inputs) node.add_input(input);
  for (size_t i = 0; i < outputs; ++i) node.add_output(unique_name(hint.empty() ? op : hint));
  if (!before.name().empty()) node.set_name(before.name());
  if (before.extra() != nullptr && !before.extra()->metadata.empty())
    node.ensure_extra().metadata = before.extra()->metadata;  // where the source has it
  stale_ = true;
  touch(node);
  return node;
}

namespace {

/// The type variables of an operator as its inputs are, without shapes.
std::vector<InferType> bind_types(const OpVersion& version,
                                  std::span<const InferType* const> inputs) {
  std::vector<InferType> bound(version.types.size());
  for (size_t i = 0; i < inputs.size() && !version.inputs.empty(); ++i) {
    const ResolvedParam& param = version.inputs[std::min(i, version.inputs.size() - 1)];
    if (inputs[i] == nullptr || param.type_var < 0 || !param.homogeneous) continue;
    InferType& variable = bound[static_cast<size_t>(param.type_var)];
    if (variable.kind != Type::Kind::kNone && variable.elem != DType::kUndefined) continue;
    variable = *inputs[i];
    variable.shape.reset();
  }
  return bound;
}

}  // namespace

void Rewriter::touch(Node& node) {
  stale_ = true;
  const OpDecl* decl = declaration(node);
  if (decl == nullptr || decl->infer == nullptr) return;
  const int opset = node.opset_override() > 0
                        ? node.opset_override()
                        : static_cast<int>(std::min<int64_t>(model_.opset(node.domain()), 9999));
  const size_t count = node.inputs().size();
  std::vector<const InferType*> types(count);
  std::vector<const Tensor*> constants(count);
  std::vector<const SymShape*> values(count);
  std::vector<SymShape> numbers(count);
  static const InferType kNothing{};
  for (size_t i = 0; i < count; ++i) {
    const Value* input = node.inputs()[i];
    if (input == nullptr) continue;
    types[i] = type(input) != nullptr ? type(input) : &kNothing;
    const bool small =
        input->initializer() == nullptr || element_count(input->initializer()->dims.span()) <= 1024;
    if (small) constants[i] = constant(input);
    values[i] = elements(input);
    if (values[i] == nullptr && constants[i] != nullptr)
      if (const auto known = ints(input)) {
        for (const int64_t one : *known) numbers[i].push_back(SymDim(one));
        values[i] = &numbers[i];
      }
  }
  std::vector<InferType> outputs(node.outputs().size());
  std::vector<std::optional<SymShape>> output_values(outputs.size());
  Host host(next_symbol_);
  InferContext context{node,   opset,   AttributeReader(node), host, types, constants,
                       values, outputs, output_values};
  const bool fine = decl->infer(context).ok();
  if (const OpVersion* version = find_version(node.domain(), node.op_type(), opset)) {
    const std::vector<InferType> bound = bind_types(*version, types);
    for (size_t i = 0; i < outputs.size(); ++i) fill_from_schema(*version, i, bound, outputs[i]);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Value* output = node.outputs()[i];
    if (output == nullptr) continue;
    own_types_[output->id()] = fine ? pool_.intern(std::move(outputs[i])) : &kNothing;
    own_elements_[output->id()] =
        fine && output_values[i] ? pool_.intern(*std::move(output_values[i])) : nullptr;
  }
}

Value* Rewriter::initializer(Graph& graph, const Tensor& tensor, Text hint) {
  return define(graph, Constant::from_tensor(tensor, unique_name(hint), graph.storage()));
}

Value* Rewriter::initializer(Graph& graph, DType dtype, std::span<const int64_t> dims,
                             std::shared_ptr<const Deferred> elements, Text hint) {
  return define(graph, Constant::from_deferred(dtype, dims, std::move(elements), unique_name(hint),
                                               graph.storage()));
}

Value* Rewriter::define(Graph& graph, Constant constant) {
  Value* value = graph.new_value_view(constant.name);
  graph.define_initializer(value, std::make_unique<Constant>(std::move(constant)));
  own_types_[value->id()] = pool_.intern(from_constant(*value->initializer()));
  stale_ = true;
  return value;
}

Value* Rewriter::ints_initializer(Graph& graph, std::span<const int64_t> values, Text hint) {
  return initializer(graph, Tensor::int64s(values), hint);
}

Value* Rewriter::float_initializer(Graph& graph, std::span<const int64_t> dims,
                                   std::span<const double> values, Text hint) {
  const std::vector<float> floats(values.begin(), values.end());
  return initializer(graph, Tensor::of<float>(DType::kFloat32, dims, floats), hint);
}

Value* Rewriter::axis_length(Node& before, Value* x, int64_t axis, Text hint) {
  Node& shape = add(before, "Shape", {x}, hint);
  shape.set_int("start", axis);
  shape.set_int("end", axis + 1);
  touch(shape);
  return shape.output(0);
}

Value* Rewriter::byte_initializer(Graph& graph, DType dtype, int64_t number, Text hint) {
  const std::vector<uint8_t> code = {static_cast<uint8_t>(number)};
  const std::vector<int8_t> signed_code = {static_cast<int8_t>(number)};
  return initializer(graph,
                     dtype == DType::kInt8 ? Tensor::of<int8_t>(dtype, {}, signed_code)
                                           : Tensor::of<uint8_t>(dtype, {}, code),
                     hint);
}

bool Rewriter::replaceable(const Value& from, const Value& to) const {
  if (from.output_uses() == 0) return true;
  return to.producer() != nullptr && &to.graph() == &from.graph() && to.output_uses() == 0;
}

bool Rewriter::replace(Value& from, Value& to) {
  if (&from == &to) return true;
  stale_ = true;
  const bool whole = replaceable(from, to);
  const Node* keeper = !whole && is(from.producer(), "Identity") && from.producer()->input(0) == &to
                           ? from.producer()
                           : nullptr;
  const std::vector<Use> uses(from.uses().begin(), from.uses().end());
  for (const Use& use : uses)
    if (use.node != keeper) use.node->set_input(use.index, &to);
  if (from.output_uses() == 0) return true;
  if (!whole) {
    if (keeper != nullptr) return false;
    // The outputs keep their value; an Identity gives it.
    Node* maker = from.producer();
    Graph& graph = from.graph();
    Node& identity = *graph.add_node("Identity", {}, maker);
    identity.add_input(&to);
    Value* kept = identity.add_output(unique_name(from.name()));
    return replace(from, *kept) && false;
  }
  // `to` becomes the output, under its name.
  auto redirect = [&](auto&& self, Graph& graph) -> void {
    for (size_t i = 0; i < graph.outputs().size(); ++i)
      if (graph.outputs()[i].value == &from) graph.set_output(i, &to);
    for (Node* node : graph.nodes())
      for (Attribute& attribute : node->attributes()) {
        if (Graph* inner = attribute.graph()) self(self, *inner);
        if (auto* list = std::get_if<std::vector<std::unique_ptr<Graph>>>(&attribute.value))
          for (auto& inner : *list) self(self, *inner);
      }
  };
  redirect(redirect, from.graph());
  const Text name = from.name();
  from.set_name(to.name());
  to.set_name(name);
  if (from.type() != nullptr) to.set_type(from.type());
  if (from.info() != nullptr) to.ensure_info() = *from.info();
  return true;
}

void Rewriter::erase(Node& node) {
  stale_ = true;
  node.graph().erase(&node);
}

bool Rewriter::supersede(Value& from, Value& to) {
  Node* maker = from.producer();
  const bool whole = replace(from, to);
  if (maker != nullptr) {
    for (const Value* output : maker->outputs())
      if (output != nullptr && output->has_uses()) return whole;
    erase(*maker);
  }
  return whole;
}

Text Rewriter::unique_name(Text hint) {
  if (!names_collected_) collect_names();
  std::string name(hint.empty() ? Text("value") : hint);
  auto [entry, fresh] = next_suffix_.try_emplace(name, 0);
  const std::string stem = name;
  while (names_.contains(name)) name = stem + "_" + std::to_string(++entry->second);
  const Text kept = model_.storage().copy(name);
  names_.insert(kept);
  return kept;
}

void Rewriter::collect_names() {
  names_collected_ = true;
  auto collect = [&](Graph& graph) {
    for (const Value* value : graph.inputs()) names_.insert(value->name());
    for (const Value* value : graph.initializers()) names_.insert(value->name());
    for (const Value* value : graph.sparse_initializers()) names_.insert(value->name());
    for (const Value* value : graph.value_infos()) names_.insert(value->name());
    for (const Node* node : graph.nodes()) {
      for (const Value* value : node->outputs())
        if (value != nullptr) names_.insert(value->name());
      for (const Value* value : node->inputs())
        if (value != nullptr) names_.insert(value->name());
    }
  };
  if (model_.graph) for_each_graph(*model_.graph, collect);
  for (TrainingInfo& training : model_.training) {
    if (training.initialization) for_each_graph(*training.initialization, collect);
    if (training.algorithm) for_each_graph(*training.algorithm, collect);
  }
}

}  // namespace tombolo
