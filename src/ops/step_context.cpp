#include "ops/step_context.h"

#include <algorithm>

#include "ir/borrowed.h"

namespace tombolo {

Status StepHost::expand(Node&, int, int, std::string_view) {
  return unsupported("nodes are only replaced on the way down");
}

int64_t StepContext::get_int(Text name, int64_t fallback) const {
  const Attribute* attribute = node.attribute(name);
  const int64_t* value = attribute != nullptr ? attribute->i() : nullptr;
  return value != nullptr ? *value : fallback;
}

float StepContext::get_float(Text name, float fallback) const {
  const Attribute* attribute = node.attribute(name);
  const float* value = attribute != nullptr ? attribute->f() : nullptr;
  return value != nullptr ? *value : fallback;
}

Text StepContext::get_string(Text name, Text fallback) const {
  const Attribute* attribute = node.attribute(name);
  const Text* value = attribute != nullptr ? attribute->s() : nullptr;
  return value != nullptr ? *value : fallback;
}

std::optional<std::vector<int64_t>> StepContext::get_ints(Text name) const {
  const Attribute* attribute = node.attribute(name);
  if (attribute == nullptr || attribute->type != AttrType::kInts) return std::nullopt;
  const auto values = attribute->ints();
  return std::vector<int64_t>(values.begin(), values.end());
}

std::optional<std::vector<float>> StepContext::get_floats(Text name) const {
  const Attribute* attribute = node.attribute(name);
  if (attribute == nullptr || attribute->type != AttrType::kFloats) return std::nullopt;
  const auto values = attribute->floats();
  return std::vector<float>(values.begin(), values.end());
}

void StepContext::rename_attribute(Text name, Text to_name) {
  if (Attribute* attribute = node.attribute(name))
    attribute->name = graph().storage().copy(to_name);
}

DType StepContext::dtype(size_t input) const {
  return has_input(input) ? host.facts(*node.input(input)).dtype : DType::kUndefined;
}

std::optional<size_t> StepContext::rank(size_t input) const {
  return has_input(input) ? host.facts(*node.input(input)).rank : std::nullopt;
}

std::optional<int64_t> StepContext::dim(size_t input, size_t axis) const {
  if (!has_input(input)) return std::nullopt;
  const Value& value = *node.input(input);
  if (const Constant* constant = value.initializer()) {
    if (axis < constant->dims.size()) return constant->dims[static_cast<uint32_t>(axis)];
    return std::nullopt;
  }
  if (const std::optional<int64_t> known = host.dim(value, axis)) return known;
  const Type* type = value.type();
  if (type == nullptr || !type->is_tensor() || !type->has_shape || axis >= type->dims.size())
    return std::nullopt;
  const Dim& dim = type->dims[axis];
  if (dim.kind != Dim::Kind::kValue || dim.value < 0) return std::nullopt;
  return dim.value;
}

std::optional<Tensor> StepContext::constant_value(size_t input) const {
  if (!has_input(input)) return std::nullopt;
  const Value& value = *node.input(input);
  const StoragePtr storage = borrowed(graph().storage_ptr());
  auto read = [&](const Constant& constant) -> std::optional<Tensor> {
    constexpr int64_t kMost = 4096;  // what a step asks for is a list of axes, sizes or scales
    if (element_count(constant.dims.span()) > kMost) return std::nullopt;
    Result<Tensor> tensor = constant.value(storage);
    if (!tensor) return std::nullopt;
    return *std::move(tensor);
  };
  if (value.initializer() != nullptr)
    return value.is_input() ? std::nullopt : read(*value.initializer());
  const Node* producer = value.producer();
  if (producer == nullptr || producer->op_type() != "Constant") return std::nullopt;
  if (const Attribute* attribute = producer->attribute("value");
      attribute != nullptr && attribute->tensor() != nullptr)
    return read(*attribute->tensor());
  if (const Attribute* attribute = producer->attribute("value_ints");
      attribute != nullptr && !attribute->is_reference())
    return Tensor::int64s(attribute->ints());
  if (const Attribute* attribute = producer->attribute("value_int");
      attribute != nullptr && attribute->i() != nullptr && !attribute->is_reference())
    return Tensor::scalar_int64(*attribute->i());
  return std::nullopt;
}

std::optional<std::vector<int64_t>> StepContext::constant_ints(size_t input) const {
  const std::optional<Tensor> tensor = constant_value(input);
  if (!tensor) return has_input(input) ? host.known_ints(*node.input(input)) : std::nullopt;
  if (tensor->is_string()) return std::nullopt;
  std::vector<int64_t> values;
  for (int64_t i = 0; i < tensor->size(); ++i) values.push_back(tensor->get_int64(i));
  return values;
}

std::optional<std::vector<int64_t>> StepContext::dims(size_t input) const {
  const std::optional<size_t> axes = rank(input);
  if (!axes) return std::nullopt;
  std::vector<int64_t> found;
  for (size_t axis = 0; axis < *axes; ++axis) {
    const std::optional<int64_t> length = dim(input, axis);
    if (!length) return std::nullopt;
    found.push_back(*length);
  }
  return found;
}

Status StepContext::ints_to_attribute(uint32_t index, Text name) {
  if (!has_input(index)) return ok();
  const std::optional<std::vector<int64_t>> values = constant_ints(index);
  if (!values) return cannot(std::string(name) + " must be constant there");
  node.set_ints(name, *values);
  node.set_input(index, nullptr);
  return ok();
}

Value* StepContext::constant(const Tensor& tensor, std::string_view hint) {
  return host.constant(graph(), &node, tensor, hint);
}

Value* StepContext::ints(std::span<const int64_t> values, std::string_view hint) {
  return constant(Tensor::int64s(values), hint);
}

Value* StepContext::ints(std::initializer_list<int64_t> values, std::string_view hint) {
  return ints(std::span(values.begin(), values.size()), hint);
}

Value* StepContext::scalar(int64_t value, std::string_view hint) {
  return constant(Tensor::scalar_int64(value), hint);
}

Result<Value*> StepContext::scalar(DType type, double value, std::string_view hint) {
  TRY(Tensor tensor, Tensor::allocate(type, {}));
  tensor.set_double(0, value);
  return constant(tensor, hint);
}

void StepContext::ints_to_input(Text name, uint32_t index) {
  const std::optional<std::vector<int64_t>> values = get_ints(name);
  if (!values) return;
  Value* input = ints(*values, name);
  node.remove_attribute(name);
  node.set_input(index, input);
}

Node& StepContext::before(Text op_type, std::initializer_list<Value*> inputs,
                          std::string_view hint) {
  Node& made = *graph().add_node(op_type, {}, &node);
  for (Value* input : inputs) made.add_input(input);
  made.add_output(host.unique_name(graph(), hint));
  host.created(&made, to);
  return made;
}

Node& StepContext::after(Text op_type, uint32_t index) {
  Node& made = add(op_type, {});
  // The outputs from `index` on leave the node and come back behind a new one.
  std::vector<Value*> rest;
  for (uint32_t i = static_cast<uint32_t>(node.outputs().size()); i-- > index;) {
    rest.push_back(node.output(i));
    node.remove_output(i);
  }
  Value* const given = rest.back();
  rest.pop_back();
  made.add_input(node.add_output(host.unique_name(graph(), given->name())));
  for (; !rest.empty(); rest.pop_back()) {
    if (rest.back() != nullptr)
      graph().define_output(&node, rest.back());
    else
      node.add_absent_output();
  }
  graph().define_output(&made, given);
  return made;
}

Node& StepContext::add(Text op_type, std::initializer_list<Value*> inputs, Node* place) {
  Node* const behind = place != nullptr ? place : &node;
  Node& made = *graph().add_node(op_type, {}, behind->next());
  for (Value* input : inputs) made.add_input(input);
  host.created(&made, to);
  return made;
}

}  // namespace tombolo
