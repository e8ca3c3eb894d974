#include "formats/common/operator_inference.h"

#include <algorithm>
#include <bit>

#include "analysis/only_member.h"
#include "formats/common/graph_builder.h"
#include "ops/kernel_context.h"
#include "ops/registry.h"

namespace tombolo {
namespace {

constexpr int64_t kMaxElements = 1024;  ///< of an integer constant whose elements count
constexpr int64_t kMaxFolded = 4096;    ///< elements of constants that are computed now

bool small_integers(const Tensor& tensor, SymShape& out) {
  const bool whole = is_integer(tensor.dtype()) || tensor.dtype() == DType::kBool;
  if (tensor.rank() > 1 || !whole || tensor.size() > kMaxElements) return false;
  for (int64_t i = 0; i < tensor.size(); ++i) out.emplace_back(tensor.get_int64(i));
  return true;
}

class FoldHost : public KernelHost {
 public:
  Result<std::vector<RunValue>> run_graph(const Graph&, std::vector<RunValue>) override {
    return unsupported("subgraphs are not run here");
  }
  Status reserve(uint64_t bytes) override {
    if (bytes > (1 << 22)) return resource_error("too large to compute now");
    return ok();
  }
  uint64_t seed() override { return 0; }
  void parallel_for(int64_t count, int64_t, void (*body)(void*, int64_t, int64_t),
                    void* argument) override {
    if (count > 0) body(argument, 0, count);
  }
};

/// Where the inference function left the element type to the schema: the one of the input that
/// shares the output's type variable, or the only one that the schema allows.
void fill_element_type(const OpVersion& version, std::span<const InferType* const> inputs,
                       size_t index, InferType& type) {
  if (version.outputs.empty() ||
      (type.kind != Type::Kind::kNone && !(type.is_tensor() && type.elem == DType::kUndefined)))
    return;
  const ResolvedParam& output = version.outputs[std::min(index, version.outputs.size() - 1)];
  if (const InferType only = only_member(output.allowed); only.kind != Type::Kind::kNone) {
    if (type.kind == Type::Kind::kNone) {
      type = only;
    } else if (only.is_tensor()) {
      type.elem = only.elem;
    }
    return;
  }
  if (output.type_var < 0) return;
  for (size_t i = 0; i < inputs.size() && !version.inputs.empty(); ++i) {
    const ResolvedParam& input = version.inputs[std::min(i, version.inputs.size() - 1)];
    if (inputs[i] == nullptr || input.type_var != output.type_var || !inputs[i]->is_tensor())
      continue;
    if (type.kind == Type::Kind::kNone) type.kind = Type::Kind::kTensor;
    type.elem = inputs[i]->elem;
    return;
  }
  // A variable that admits one type only: what comparisons give.
  const uint32_t tensors = output.allowed.tensors;
  if (tensors == 0 || (tensors & (tensors - 1)) != 0 || output.allowed.sequences != 0 ||
      output.allowed.optionals != 0)
    return;
  if (type.kind == Type::Kind::kNone) type.kind = Type::Kind::kTensor;
  type.elem = static_cast<DType>(std::countr_zero(tensors));
}

}  // namespace

InferType OperatorInference::type_of(const Value* value) const {
  const auto special = b_.special_.find(value);
  if (special != b_.special_.end()) return special->second;
  const auto facts = b_.facts_.find(value);
  if (facts != b_.facts_.end()) return InferType::tensor(facts->second.dtype, facts->second.shape);
  return {};
}

Result<std::vector<InferType>> OperatorInference::infer_graph(const Graph& graph,
                                                              std::span<const InferType>) {
  // Bodies are built, and so inferred, before the node that holds them is finished.
  std::vector<InferType> outputs;
  for (const GraphOutput& output : graph.outputs()) outputs.push_back(type_of(output.value));
  return outputs;
}

SymDim OperatorInference::fresh_symbol(std::string_view hint) {
  return SymDim::symbol(std::string(hint) + "_" + std::to_string(b_.next_symbol_++));
}

Status OperatorInference::infer(const Node& node) {
  const OpVersion* version =
      find_version(node.domain(), node.op_type(), static_cast<int>(kImportOpset));
  if (version == nullptr || version->decl->infer == nullptr) return ok();  // the caller sets it
  const size_t count = node.inputs().size();
  std::vector<InferType> types(count);
  std::vector<const InferType*> inputs(count);
  std::vector<const Tensor*> constants(count);
  std::vector<SymShape> integers(count);
  std::vector<const SymShape*> values(count);
  for (size_t i = 0; i < count; ++i) {
    const Value* value = node.inputs()[i];
    if (value == nullptr) continue;
    types[i] = type_of(value);
    inputs[i] = &types[i];
    if (const Tensor* tensor = b_.constant_value(value);
        tensor != nullptr && tensor->size() <= kMaxElements) {
      constants[i] = tensor;
      if (small_integers(*tensor, integers[i])) values[i] = &integers[i];
    } else {
      values[i] = b_.elements(value);
    }
  }
  std::vector<InferType> outputs(node.outputs().size());
  std::vector<std::optional<SymShape>> made(node.outputs().size());
  InferContext context{node,
                       static_cast<int>(kImportOpset),
                       AttributeReader(node),
                       *this,
                       inputs,
                       constants,
                       values,
                       outputs,
                       made};
  CHECK_OK(version->decl->infer(context));
  for (size_t i = 0; i < outputs.size(); ++i) fill_element_type(*version, inputs, i, outputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i) {
    Value* value = node.output(i);
    if (value == nullptr) continue;
    if (outputs[i].is_tensor() && outputs[i].shape) {
      b_.set_type(value, outputs[i].elem, *outputs[i].shape);
    } else if (outputs[i].kind != Type::Kind::kNone) {
      b_.special_[value] = outputs[i];
    }
    if (made[i] && made[i]->size() <= kMaxElements) b_.elements_[value] = *std::move(made[i]);
  }
  return ok();
}

std::optional<Tensor> fold_builder_node(GraphBuilder& builder, Node& node) {
  // An Identity is there for the sake of a name of its own.
  if (node.inputs().empty() || node.op_type() == "Identity") return std::nullopt;
  for (const Value* value : node.inputs()) {
    if (value == nullptr) continue;
    const Tensor* tensor = builder.constant_value(value);
    if (tensor == nullptr || tensor->size() > kMaxFolded) return std::nullopt;
  }
  for (const Attribute& attribute : node.attributes())
    if (attribute.graph() != nullptr) return std::nullopt;
  const OpVersion* version =
      find_version(node.domain(), node.op_type(), static_cast<int>(kImportOpset));
  if (version == nullptr || version->decl->reference == nullptr ||
      version->decl->determinism != Determinism::kDeterministic)
    return std::nullopt;
  std::vector<RunValue> values;
  std::vector<const RunValue*> inputs;
  values.reserve(node.inputs().size());
  for (const Value* value : node.inputs()) {
    inputs.push_back(nullptr);
    if (value == nullptr) continue;
    Tensor tensor = *builder.constant_value(value);
    if (!tensor.aligned()) {
      auto copy = tensor.clone();
      if (!copy) return std::nullopt;
      tensor = *std::move(copy);
    }
    values.emplace_back(std::move(tensor));
    inputs.back() = &values.back();
  }
  node.add_output("");
  FoldHost host;
  std::vector<RunValue> outputs(1);
  KernelContext context{node,    static_cast<int>(kImportOpset), inputs,
                        outputs, AttributeReader(node),          host};
  const Status done = version->decl->reference(context);
  node.remove_output(0);
  if (!done.ok() || !outputs[0].is_tensor()) return std::nullopt;
  const Tensor& result = outputs[0].tensor();
  if (result.size() > kMaxFolded) return std::nullopt;
  return result;
}

}  // namespace tombolo
