#include "formats/common/graph_builder.h"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "formats/common/operator_inference.h"
#include "formats/common/shape_rules.h"

namespace tombolo {

Attr::Attr(const Attr& other) = default;
Attr::Attr(Attr&& other) noexcept = default;
Attr& Attr::operator=(const Attr& other) = default;
Attr& Attr::operator=(Attr&& other) noexcept = default;
Attr::~Attr() = default;

Dim to_dim(const SymDim& value, Storage& storage) {
  if (value.is_value()) return Dim::of(value.value());
  if (value.is_unknown()) return Dim();
  return Dim::named(storage.copy(value.to_string()));
}

Result<Tensor> transposed(const Tensor& tensor, std::span<const int64_t> perm) {
  const size_t rank = tensor.rank(), width = bytes_of(tensor.dtype());
  if (perm.size() != rank || width == 0) return unsupported("a constant cannot be transposed");
  Dims dims;
  std::vector<int64_t> strides(rank), steps(rank);
  for (size_t i = rank, stride = 1; i-- > 0; stride *= static_cast<size_t>(tensor.dim(i))) {
    strides[i] = static_cast<int64_t>(stride);
  }
  for (size_t i = 0; i < rank; ++i) {
    dims.push_back(tensor.dim(static_cast<size_t>(perm[i])));
    steps[i] = strides[static_cast<size_t>(perm[i])];
  }
  TRY(Tensor result, Tensor::allocate(tensor.dtype(), dims.span()));
  const std::byte* from = tensor.bytes().data();
  std::byte* to = result.mutable_bytes().data();
  std::vector<int64_t> index(rank, 0);
  int64_t at = 0;
  for (int64_t i = 0; i < result.size(); ++i) {
    std::memcpy(to + static_cast<size_t>(i) * width, from + static_cast<size_t>(at) * width, width);
    for (size_t axis = rank; axis-- > 0;) {
      at += steps[axis];
      if (++index[axis] < dims[axis]) break;
      at -= steps[axis] * dims[axis];
      index[axis] = 0;
    }
  }
  return result;
}

GraphBuilder::GraphBuilder(Model& model) : model_(model) {}

std::string GraphBuilder::fresh_name(const std::string& hint) {
  std::string name;
  for (const char c : hint) {
    const bool legal = static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
    name += legal ? c : '_';
  }
  if (name.empty()) name = "value";
  if (names_.insert(name).second) return name;
  size_t& suffix = next_suffix_[name];
  for (;;) {
    std::string candidate = name + "_" + std::to_string(++suffix);
    if (names_.insert(candidate).second) return candidate;
  }
}

void GraphBuilder::rename(Value* value, std::string_view name) {
  // A node keeps the name that it got from its output: nobody else may have it.
  const Node* made = value->producer();
  if (made == nullptr || made->name() != value->name()) names_.erase(std::string(value->name()));
  if (value->name() == name) return;
  value->set_name(fresh_name(std::string(name)));
}

void GraphBuilder::set_type(Value* value, DType dtype, const SymShape& shape) {
  special_.erase(value);
  if (dtype == DType::kUndefined && shape.empty()) {
    // Nothing is known: of a new value too, which may lie where one of a discarded body lay.
    facts_.erase(value);
    elements_.erase(value);
    constants_.erase(value);
    return;
  }
  // What follows counts with lengths.
  for (const SymDim& dim : shape)
    if (dim.is_value() && dim.value() < 0 && status_.ok())
      status_ = parse_error("an axis of length " + std::to_string(dim.value()));
  facts_[value] = {dtype, shape};
  std::vector<Dim> dims;
  for (const SymDim& dim : shape) dims.push_back(to_dim(dim, model_.storage()));
  value->set_type(Type::tensor(dtype, std::move(dims)));
}

void GraphBuilder::set_sequence_type(Value* value, DType dtype, const SymShape* shape) {
  InferType element = shape ? InferType::tensor(dtype, *shape) : InferType::tensor(dtype);
  facts_.erase(value);
  elements_.erase(value);
  special_[value] = InferType::sequence(std::move(element));
  Type type = Type::tensor(dtype);
  if (shape) {
    std::vector<Dim> dims;
    for (const SymDim& dim : *shape) dims.push_back(to_dim(dim, model_.storage()));
    type = Type::tensor(dtype, std::move(dims));
  }
  value->set_type(Type::sequence(model_.storage().intern(std::move(type))));
}

DType GraphBuilder::dtype(const Value* value) const {
  const auto found = facts_.find(value);
  if (found != facts_.end()) return found->second.dtype;
  // Of unknown rank.
  const auto special = special_.find(value);
  return special != special_.end() && special->second.is_tensor() ? special->second.elem
                                                                  : DType::kUndefined;
}

const SymShape& GraphBuilder::shape(const Value* value) const {
  static const SymShape kEmpty;
  const auto found = facts_.find(value);
  return found == facts_.end() ? kEmpty : found->second.shape;
}

SymDim GraphBuilder::dim(const Value* value, int64_t axis) const {
  const SymShape& all = shape(value);
  if (axis < 0) axis += static_cast<int64_t>(all.size());
  if (axis < 0 || axis >= static_cast<int64_t>(all.size())) return SymDim();
  return all[static_cast<size_t>(axis)];
}

const Tensor* GraphBuilder::constant_value(const Value* value) const {
  const auto found = constants_.find(value);
  return found == constants_.end() ? nullptr : &found->second;
}

Value* GraphBuilder::input(std::string_view name, DType dtype, const SymShape& shape) {
  Value* value = graph().add_input(fresh_name(std::string(name)));
  set_type(value, dtype, shape);
  return value;
}

Value* GraphBuilder::constant(const Tensor& tensor, std::string_view hint) {
  const auto bytes = tensor.bytes();
  // A sample is enough to tell candidates apart; equality decides.
  const std::string_view sample(reinterpret_cast<const char*>(bytes.data()),
                                std::min<size_t>(bytes.size(), 256));
  const size_t key = std::hash<std::string_view>()(sample) * 31 + bytes.size();
  const auto [from, to] = constant_index_.equal_range(key);
  for (auto at = from; at != to; ++at) {
    if (constants_.at(at->second) == tensor) return at->second;
  }
  Value* value =
      weight(tensor, scope_.empty() ? std::string(hint) : scope_ + "/" + std::string(hint));
  constants_.emplace(value, tensor);
  constant_index_.emplace(key, value);
  return value;
}

Value* GraphBuilder::weight(const Tensor& tensor, std::string_view name) {
  Value* value = model_.graph->add_initializer(fresh_name(std::string(name)), tensor);
  SymShape shape;
  for (const int64_t dim : tensor.dims().span()) shape.emplace_back(dim);
  facts_[value] = {tensor.dtype(), shape};
  return value;
}

const SymShape* GraphBuilder::elements(const Value* value) const {
  const auto found = elements_.find(value);
  return found == elements_.end() ? nullptr : &found->second;
}

Value* GraphBuilder::ints(std::span<const int64_t> values) {
  return constant(Tensor::int64s(values), "ints");
}

Value* GraphBuilder::int_scalar(int64_t value) {
  return constant(Tensor::scalar_int64(value), "int");
}

Value* GraphBuilder::scalar(double value, DType dtype) {
  auto tensor = Tensor::allocate(dtype, {});
  if (!tensor) {
    status_ = tensor.error();
    return int_scalar(0);
  }
  tensor->set_double(0, value);
  return constant(*tensor, "scalar");
}

namespace {

void set_attribute(Node& node, const Attr& attr) {
  struct {
    Node& node;
    Text name;
    void operator()(int64_t value) { node.set_int(name, value); }
    void operator()(float value) { node.set_float(name, value); }
    void operator()(const std::string& value) { node.set_string(name, value); }
    void operator()(const std::vector<int64_t>& value) { node.set_ints(name, value); }
    void operator()(const std::vector<float>& value) { node.set_floats(name, value); }
    void operator()(const std::vector<std::string>& value) {
      std::vector<Text> copies;
      for (const std::string& text : value) copies.push_back(node.graph().storage().copy(text));
      node.set_attribute(Attribute(name, AttrType::kStrings, std::move(copies)));
    }
  } visitor{node, attr.name};
  std::visit(visitor, attr.value);
}

}  // namespace

Node* GraphBuilder::add_node(Text type, std::span<Value* const> inputs, const Attrs& attrs) {
  Node* node = graph().add_node(type);
  size_t count = inputs.size();
  while (count > 0 && !inputs[count - 1]) --count;
  for (size_t i = 0; i < count; ++i) node->add_input(inputs[i]);
  for (const Attr& attr : attrs) set_attribute(*node, attr);
  if (!metadata_.empty()) node->ensure_extra().metadata = metadata_;
  return node;
}

void GraphBuilder::add_outputs(Node* node, size_t outputs) {
  const std::string type(node->op_type()), base = scope_.empty() ? type : scope_ + "/" + type;
  for (size_t i = 0; i < outputs; ++i)
    set_type(node->add_output(fresh_name(base + (i == 0 ? "" : ":" + std::to_string(i)))),
             DType::kUndefined, {});
  if (outputs != 0) node->set_name(node->outputs().front()->name());
}

std::vector<Value*> GraphBuilder::op_many(Text type, std::initializer_list<Value*> inputs,
                                          size_t outputs, const Attrs& attrs) {
  return finish(begin(type, {inputs.begin(), inputs.size()}, attrs), outputs);
}

Node* GraphBuilder::begin(Text type, std::span<Value* const> inputs, const Attrs& attrs) {
  return add_node(type, inputs, attrs);
}

std::vector<Value*> GraphBuilder::finish(Node* node, size_t outputs) {
  add_outputs(node, outputs);
  // The standard wants a name of every graph.
  for (Attribute& attribute : node->attributes())
    if (Graph* body = attribute.graph(); body && body->name.empty()) body->name = attribute.name;
  infer(*node);
  return {node->outputs().begin(), node->outputs().end()};
}

Value* GraphBuilder::op(Text type, std::span<Value* const> inputs, const Attrs& attrs) {
  Node* node = add_node(type, inputs, attrs);
  if (operator_inference_) {
    if (auto folded = fold_builder_node(*this, *node)) {
      graph().erase(node);
      return constant(*folded, type);
    }
  }
  add_outputs(node, 1);
  infer(*node);
  return node->outputs().front();
}

void GraphBuilder::infer(const Node& node) {
  const Status done =
      operator_inference_ ? OperatorInference(*this).infer(node) : infer_builder_node(*this, node);
  if (!done.ok() && status_.ok()) {
    Error error = done.error();
    status_ =
        std::move(error).at(std::string(node.name()) + " (" + std::string(node.op_type()) + ")");
  }
}

Value* GraphBuilder::transpose(Value* x, std::vector<int64_t> perm) {
  bool same = static_cast<int64_t>(perm.size()) == rank(x);
  for (size_t i = 0; i < perm.size(); ++i) same = same && perm[i] == static_cast<int64_t>(i);
  if (same) return x;
  return op("Transpose", {x}, {{"perm", std::move(perm)}});
}

Value* GraphBuilder::reshape(Value* x, std::vector<int64_t> shape) {
  return op("Reshape", {x, ints(shape)});
}

Value* GraphBuilder::squeeze(Value* x, std::vector<int64_t> axes) {
  return op("Squeeze", {x, ints(axes)});
}

Value* GraphBuilder::unsqueeze(Value* x, std::vector<int64_t> axes) {
  return op("Unsqueeze", {x, ints(axes)});
}

Value* GraphBuilder::slice(Value* x, int64_t axis, int64_t start, int64_t end, int64_t step) {
  return op("Slice", {x, ints({start}), ints({end}), ints({axis}), ints({step})});
}

Value* GraphBuilder::cast(Value* x, DType to) {
  return dtype(x) == to ? x : op("Cast", {x}, {{"to", static_cast<int64_t>(to)}});
}

}  // namespace tombolo
