#include <algorithm>

#include "ops/kernels/derivatives.h"
#include "ops/registry.h"

namespace tombolo::ops {

Calculus::Calculus(KernelContext& context)
    : context_(context), scratch_(std::make_shared<Storage>()) {}

Result<std::vector<RunValue>> Calculus::run(const Node& node, int opset,
                                            const std::vector<RunValue>& inputs) {
  const OpDecl* op = find_operator(node.domain(), node.op_type());
  if (op == nullptr || op->reference == nullptr)
    return unsupported("no kernel for " + std::string(node.op_type()) +
                       ", which the differentiated graph needs");
  std::vector<const RunValue*> pointers;
  for (const RunValue& input : inputs) pointers.push_back(input.is_none() ? nullptr : &input);
  std::vector<RunValue> outputs(node.outputs().size());
  KernelContext context{
      node,          opset,           pointers, outputs, AttributeReader(node, context_.binding),
      context_.host, context_.binding};
  CHECK_OK(op->reference(context));
  return outputs;
}

Tensor Calculus::call(const char* op, std::initializer_list<Tensor> inputs, Configure configure,
                      const void* argument) {
  if (!status_.ok()) return {};
  Node* node = scratch_.add_node(op);
  node->add_output("y");
  if (configure != nullptr) configure(*node, argument);
  std::vector<RunValue> values;
  for (const Tensor& input : inputs) values.push_back(absent(input) ? RunValue() : RunValue(input));
  auto outputs = run(*node, latest_opset(""), values);
  if (!outputs) {
    fail(std::move(outputs).error().at(std::string("derivative by ") + op));
    return {};
  }
  return (*outputs)[0].tensor();
}

Tensor Calculus::filled(const Tensor& like, double value) {
  auto tensor = context_.allocate(like.dtype(), like.dims());
  if (!tensor) {
    fail(std::move(tensor).error());
    return {};
  }
  for (int64_t i = 0; i < tensor->size(); ++i) tensor->set_double(i, value);
  return *tensor;
}

Tensor Calculus::scalar(const Tensor& like, double value) {
  Tensor tensor = Tensor::scalar_float(static_cast<float>(value));
  if (like.dtype() == DType::kFloat32) return tensor;
  auto typed = context_.allocate(like.dtype(), {});
  if (!typed) {
    fail(std::move(typed).error());
    return {};
  }
  typed->set_double(0, value);
  return *typed;
}

Tensor Calculus::reduce_to(const Tensor& x, std::span<const int64_t> dims) {
  if (absent(x) || x.dims() == Dims(dims)) return x;
  std::vector<int64_t> axes;
  const size_t missing = x.rank() - dims.size();
  for (size_t axis = 0; axis < x.rank(); ++axis)
    if (axis < missing || (dims[axis - missing] == 1 && x.dim(axis) != 1))
      axes.push_back(static_cast<int64_t>(axis));
  if (axes.empty()) return reshape(x, dims);
  return reshape(call("ReduceSum", {x, Tensor::int64s(axes)}), dims);
}

Tensor Calculus::reshape(const Tensor& x, std::span<const int64_t> dims) {
  return absent(x) ? x : x.reshaped(dims);
}

Tensor Calculus::expand(const Tensor& x, std::span<const int64_t> dims) {
  return call("Expand", {x, Tensor::int64s(dims)});
}

Tensor Calculus::swap_last(const Tensor& x) {
  std::vector<int64_t> order(x.rank());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  if (order.size() >= 2) std::swap(order[order.size() - 1], order[order.size() - 2]);
  return call(
      "Transpose", {x},
      [](Node& node, const void* argument) {
        node.set_ints("perm", *static_cast<const std::vector<int64_t>*>(argument));
      },
      &order);
}

Tensor Calculus::to_type(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return call(
      "Cast", {x},
      [](Node& node, const void* argument) {
        node.set_int("to", static_cast<int64_t>(*static_cast<const DType*>(argument)));
      },
      &dtype);
}

}  // namespace tombolo::ops
