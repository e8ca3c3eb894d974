#include "ops/kernels/calculus.h"

#include <algorithm>

#include "ops/registry.h"

namespace tombolo::ops {

Tape::Tape(KernelContext& context) : context_(context), scratch_(std::make_shared<Storage>()) {}

int Tape::add(RunValue value, bool active) {
  values_.push_back(std::move(value));
  active_.push_back(active);
  return static_cast<int>(values_.size()) - 1;
}

Var Tape::var(int id) const {
  if (id < 0 || !value(id).is_tensor()) return {};
  return {id, value(id).tensor()};
}

KernelContext Tape::context_of(const Node& node, int opset, const AttributeBinding* binding) const {
  return {node, opset, {}, {}, AttributeReader(node, binding), context_.host, binding};
}

Result<std::vector<RunValue>> Tape::run_aside(const Node& node, int opset,
                                              const AttributeBinding* binding,
                                              std::span<const RunValue> inputs, size_t outputs) {
  const OpDecl* op = find_operator(node.domain(), node.op_type());
  if (op == nullptr || op->reference == nullptr)
    return unsupported("no kernel for " + std::string(node.op_type()) +
                       ", which the differentiated graph needs");
  std::vector<const RunValue*> pointers;
  for (const RunValue& input : inputs) pointers.push_back(input.is_none() ? nullptr : &input);
  std::vector<RunValue> results(outputs);
  KernelContext context{node,          opset,  pointers, results, AttributeReader(node, binding),
                        context_.host, binding};
  CHECK_OK(op->reference(context));
  return results;
}

Result<std::vector<int>> Tape::run(const Node& node, int opset, const AttributeBinding* binding,
                                   std::span<const int> inputs) {
  std::vector<RunValue> values;
  bool any = false;
  for (const int id : inputs) {
    values.push_back(id < 0 ? RunValue() : value(id));
    any = any || active(id);
  }
  TRY(std::vector<RunValue> results,
      run_aside(node, opset, binding, values, node.outputs().size()));
  std::vector<int> outputs;
  for (RunValue& result : results)
    outputs.push_back(result.is_none() ? -1 : add(std::move(result), any && recording));
  if (any && recording)
    entries_.push_back({&node, opset, binding, {inputs.begin(), inputs.end()}, outputs});
  return outputs;
}

std::vector<Var> Tape::call_all(const char* op, std::span<const Var> inputs, size_t outputs,
                                Configure configure, const void* argument) {
  std::vector<Var> results(outputs);
  if (!status_.ok()) return results;
  Node* node = scratch_.add_node(op);
  for (size_t i = 0; i < outputs; ++i) node->add_output("y" + std::to_string(i));
  if (configure != nullptr) configure(*node, argument);
  std::vector<int> ids;
  for (const Var& input : inputs) ids.push_back(input.id);
  auto done = run(*node, latest_opset(""), nullptr, ids);
  if (!done) {
    fail(std::move(done).error().at(std::string("derivative by ") + op));
    return results;
  }
  for (size_t i = 0; i < outputs; ++i) results[i] = var((*done)[i]);
  return results;
}

Var Tape::call(const char* op, std::initializer_list<Var> inputs, Configure configure,
               const void* argument) {
  return call_all(op, {inputs.begin(), inputs.size()}, 1, configure, argument)[0];
}

Var Tape::call(const char* op, std::initializer_list<Var> inputs,
               std::initializer_list<std::pair<const char*, int64_t>> attributes) {
  return call(
      op, inputs,
      [](Node& node, const void* argument) {
        using List = std::initializer_list<std::pair<const char*, int64_t>>;
        for (const auto& [name, number] : *static_cast<const List*>(argument))
          node.set_int(name, number);
      },
      &attributes);
}

Var Tape::filled(const Var& like, std::span<const int64_t> dims, double value) {
  auto tensor = context_.allocate(like.dtype(), dims);
  if (!tensor) {
    fail(std::move(tensor).error());
    return {};
  }
  for (int64_t i = 0; i < tensor->size(); ++i) tensor->set_double(i, value);
  return constant(*tensor);
}

Var Tape::scalar(const Var& like, double value) { return filled(like, {}, value); }

Var Tape::reduce_to(const Var& x, std::span<const int64_t> dims) {
  if (absent(x) || x.dims() == Dims(dims)) return x;
  std::vector<int64_t> axes;
  const size_t missing = x.rank() - dims.size();
  for (size_t axis = 0; axis < x.rank(); ++axis)
    if (axis < missing || (dims[axis - missing] == 1 && x.dim(axis) != 1))
      axes.push_back(static_cast<int64_t>(axis));
  if (axes.empty()) return reshape(x, dims);
  return reshape(call("ReduceSum", {x, constant(axes)}), dims);
}

Var Tape::reshape(const Var& x, std::span<const int64_t> dims) {
  if (absent(x) || x.dims() == Dims(dims)) return x;
  return call("Reshape", {x, constant(dims)}, {{"allowzero", 1}});
}

Var Tape::expand(const Var& x, std::span<const int64_t> dims) {
  return call("Expand", {x, constant(dims)});
}

Var Tape::transpose(const Var& x, const std::vector<int64_t>& order) {
  return call(
      "Transpose", {x},
      [](Node& node, const void* argument) {
        node.set_ints("perm", *static_cast<const std::vector<int64_t>*>(argument));
      },
      &order);
}

Var Tape::swap_last(const Var& x) {
  std::vector<int64_t> order(x.rank());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  if (order.size() >= 2) std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transpose(x, order);
}

Var Tape::to_type(const Var& x, DType dtype) {
  if (absent(x) || x.dtype() == dtype) return x;
  return call("Cast", {x}, {{"to", static_cast<int64_t>(dtype)}});
}

Var Tape::scatter_sum(const Var& flat, const Tensor& places, int64_t count) {
  if (absent(flat)) return flat;
  const int64_t dims[] = {count + 1};
  const Var sums = call("ScatterElements", {filled(flat, dims, 0), constant(places), flat},
                        [](Node& node, const void*) { node.set_string("reduction", "add"); });
  const int64_t begin[] = {0}, end[] = {count};
  return call("Slice", {sums, constant(begin), constant(end)});
}

}  // namespace tombolo::ops
