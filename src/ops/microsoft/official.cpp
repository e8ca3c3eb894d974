#include "ops/microsoft/official.h"

#include <string>

#include "ops/kernels/movement.h"
#include "ops/registry.h"

namespace tombolo::ops {

Status run_as(KernelContext& context, const char* op_type, int opset) {
  const OpDecl* op = find_operator("", op_type);
  if (op == nullptr || op->reference == nullptr)
    return unsupported("there is no kernel for " + std::string(op_type));
  KernelContext official{context.node,       opset,        context.inputs, context.outputs,
                         context.attributes, context.host, context.binding};
  return op->reference(official);
}

Status infer_as(InferContext& context, const char* op_type, int opset) {
  const OpDecl* op = find_operator("", op_type);
  if (op == nullptr || op->infer == nullptr) return ok();
  InferContext official{context.node,         opset,           context.attributes,
                        context.host,         context.inputs,  context.constants,
                        context.input_values, context.outputs, context.output_values};
  return op->infer(official);
}

Official::Official(const KernelContext& context)
    : context_(context), scratch_(std::make_shared<Storage>()) {}

Node& Official::node(const char* op_type, int outputs) {
  Node* node = scratch_.add_node(op_type);
  for (int i = 0; i < outputs; ++i) node->add_output(i == 0 ? "y" : "y" + std::to_string(i));
  return *node;
}

Node& Official::node_with(const char* op_type, std::initializer_list<const char*> attributes,
                          int outputs) {
  Node& made = node(op_type, outputs);
  const AttributeReader& given = context_.attributes;
  for (const char* name : attributes) {
    const Attribute* attribute = given.find(name);
    if (attribute == nullptr) continue;
    if (attribute->type == AttrType::kInt) made.set_int(name, given.get_int(name, 0));
    if (attribute->type == AttrType::kFloat) made.set_float(name, given.get_float(name, 0));
    if (attribute->type == AttrType::kString) made.set_string(name, given.get_string(name, ""));
    if (attribute->type == AttrType::kInts) made.set_ints(name, given.get_ints(name));
    if (attribute->type == AttrType::kFloats) made.set_floats(name, given.get_floats(name));
  }
  return made;
}

Result<std::vector<RunValue>> Official::run(const Node& node, std::span<const Tensor> inputs,
                                            int opset) {
  const OpDecl* op = find_operator("", node.op_type());
  if (op == nullptr || op->reference == nullptr)
    return unsupported("there is no kernel for " + std::string(node.op_type()));
  std::vector<RunValue> values;
  for (const Tensor& input : inputs)
    values.push_back(input.dtype() == DType::kUndefined ? RunValue() : RunValue(input));
  std::vector<const RunValue*> pointers;
  for (const RunValue& value : values) pointers.push_back(value.is_none() ? nullptr : &value);
  std::vector<RunValue> outputs(node.outputs().size());
  KernelContext context{node,          opset,           pointers, outputs, AttributeReader(node),
                        context_.host, context_.binding};
  CHECK_OK(op->reference(context));
  return outputs;
}

Result<Tensor> Official::call(const Node& node, std::initializer_list<Tensor> inputs, int opset) {
  TRY(std::vector<RunValue> outputs, run(node, std::span(inputs.begin(), inputs.size()), opset));
  if (!outputs[0].is_tensor()) return context_.error(std::string(node.op_type()) + " gave nothing");
  return outputs[0].tensor();
}

Result<Tensor> transposed(const KernelContext& context, const Tensor& tensor,
                          std::span<const int64_t> perm) {
  Dims dims, strides;
  const Dims own = contiguous_strides(tensor.dims());
  for (const int64_t axis : perm) {
    dims.push_back(tensor.dim(static_cast<size_t>(axis)));
    strides.push_back(own[static_cast<size_t>(axis)]);
  }
  TRY(Tensor result, context.allocate(tensor.dtype(), dims));
  if (result.size() != 0) copy_box(tensor, 0, strides, result, 0, contiguous_strides(dims), dims);
  return result;
}

Result<Tensor> channels_first(const KernelContext& context, const Tensor& tensor) {
  const auto rank = static_cast<int64_t>(tensor.rank());
  if (rank < 2)
    return context.error("channels need a rank of at least 2, not " + to_string(tensor));
  std::vector<int64_t> perm = {0, rank - 1};
  for (int64_t axis = 1; axis + 1 < rank; ++axis) perm.push_back(axis);
  return transposed(context, tensor, perm);
}

Result<Tensor> channels_last(const KernelContext& context, const Tensor& tensor) {
  const auto rank = static_cast<int64_t>(tensor.rank());
  if (rank < 2)
    return context.error("channels need a rank of at least 2, not " + to_string(tensor));
  std::vector<int64_t> perm = {0};
  for (int64_t axis = 2; axis < rank; ++axis) perm.push_back(axis);
  perm.push_back(1);
  return transposed(context, tensor, perm);
}

SymShape channels_first(const SymShape& shape) {
  SymShape result = shape;
  if (shape.size() < 2) return result;
  result.insert(result.begin() + 1, result.back());
  result.pop_back();
  return result;
}

SymShape channels_last(const SymShape& shape) {
  SymShape result = shape;
  if (shape.size() < 2) return result;
  result.push_back(result[1]);
  result.erase(result.begin() + 1);
  return result;
}

Result<Tensor> tensor_or_absent(const KernelContext& context, size_t index) {
  TRY(const Tensor* tensor, context.optional_input(index));
  return tensor == nullptr ? Tensor() : *tensor;
}

Result<Tensor> tensor_at(const KernelContext& context, size_t index) {
  TRY(const Tensor* tensor, context.input(index));
  return *tensor;
}

}  // namespace tombolo::ops
