#include "version/value_facts.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace tombolo {
namespace {

/// How the rank of an operator's outputs follows from its inputs.
enum class RankRule : uint8_t {
  kUnknown,
  kSame,       ///< of input 0
  kBroadcast,  ///< the largest of the inputs
  kZero,
  kOne,
  kTwo,
  kThree,
  kReduce,  ///< of input 0, less the reduced axes unless keepdims
  kArg,     ///< likewise, one axis
  kSqueeze,
  kUnsqueeze,
  kReshape,
  kExpand,  ///< as many as the target has, or of input 0
  kFilled,  ///< ConstantOfShape: as many as input 0 lists
  kGather,
  kMatMul,
  kOneHot,
  kRecurrent,  ///< 4 for the sequence, 3 for states
  kConstant,
};

struct RankRow {
  std::string_view op;
  RankRule rule;
};

// Sorted by name.
constexpr RankRow kRankRows[] = {
    {"Abs", RankRule::kSame},
    {"Acos", RankRule::kSame},
    {"Acosh", RankRule::kSame},
    {"Add", RankRule::kBroadcast},
    {"And", RankRule::kBroadcast},
    {"ArgMax", RankRule::kArg},
    {"ArgMin", RankRule::kArg},
    {"Asin", RankRule::kSame},
    {"Asinh", RankRule::kSame},
    {"Atan", RankRule::kSame},
    {"Atanh", RankRule::kSame},
    {"AveragePool", RankRule::kSame},
    {"BatchNormalization", RankRule::kSame},
    {"Bernoulli", RankRule::kSame},
    {"BitShift", RankRule::kBroadcast},
    {"BitwiseAnd", RankRule::kBroadcast},
    {"BitwiseNot", RankRule::kSame},
    {"BitwiseOr", RankRule::kBroadcast},
    {"BitwiseXor", RankRule::kBroadcast},
    {"Cast", RankRule::kSame},
    {"CastLike", RankRule::kSame},
    {"Ceil", RankRule::kSame},
    {"Celu", RankRule::kSame},
    {"Clip", RankRule::kSame},
    {"Concat", RankRule::kSame},
    {"Constant", RankRule::kConstant},
    {"ConstantOfShape", RankRule::kFilled},
    {"Conv", RankRule::kSame},
    {"ConvInteger", RankRule::kSame},
    {"ConvTranspose", RankRule::kSame},
    {"Cos", RankRule::kSame},
    {"Cosh", RankRule::kSame},
    {"CumSum", RankRule::kSame},
    {"DepthToSpace", RankRule::kSame},
    {"DequantizeLinear", RankRule::kSame},
    {"Div", RankRule::kBroadcast},
    {"Dropout", RankRule::kSame},
    {"Elu", RankRule::kSame},
    {"Equal", RankRule::kBroadcast},
    {"Erf", RankRule::kSame},
    {"Exp", RankRule::kSame},
    {"Expand", RankRule::kExpand},
    {"EyeLike", RankRule::kSame},
    {"Flatten", RankRule::kTwo},
    {"Floor", RankRule::kSame},
    {"GRU", RankRule::kRecurrent},
    {"Gather", RankRule::kGather},
    {"GatherElements", RankRule::kSame},
    {"Gelu", RankRule::kSame},
    {"Gemm", RankRule::kTwo},
    {"GlobalAveragePool", RankRule::kSame},
    {"GlobalLpPool", RankRule::kSame},
    {"GlobalMaxPool", RankRule::kSame},
    {"Greater", RankRule::kBroadcast},
    {"GreaterOrEqual", RankRule::kBroadcast},
    {"GroupNormalization", RankRule::kSame},
    {"HardSigmoid", RankRule::kSame},
    {"HardSwish", RankRule::kSame},
    {"Hardmax", RankRule::kSame},
    {"Identity", RankRule::kSame},
    {"InstanceNormalization", RankRule::kSame},
    {"IsInf", RankRule::kSame},
    {"IsNaN", RankRule::kSame},
    {"LRN", RankRule::kSame},
    {"LSTM", RankRule::kRecurrent},
    {"LayerNormalization", RankRule::kSame},
    {"LeakyRelu", RankRule::kSame},
    {"Less", RankRule::kBroadcast},
    {"LessOrEqual", RankRule::kBroadcast},
    {"Log", RankRule::kSame},
    {"LogSoftmax", RankRule::kSame},
    {"LpNormalization", RankRule::kSame},
    {"LpPool", RankRule::kSame},
    {"MatMul", RankRule::kMatMul},
    {"MatMulInteger", RankRule::kMatMul},
    {"Max", RankRule::kBroadcast},
    {"MaxPool", RankRule::kSame},
    {"Mean", RankRule::kBroadcast},
    {"MeanVarianceNormalization", RankRule::kSame},
    {"Min", RankRule::kBroadcast},
    {"Mish", RankRule::kSame},
    {"Mod", RankRule::kBroadcast},
    {"Mul", RankRule::kBroadcast},
    {"Neg", RankRule::kSame},
    {"NonMaxSuppression", RankRule::kTwo},
    {"NonZero", RankRule::kTwo},
    {"Not", RankRule::kSame},
    {"OneHot", RankRule::kOneHot},
    {"Or", RankRule::kBroadcast},
    {"PRelu", RankRule::kSame},
    {"Pad", RankRule::kSame},
    {"Pow", RankRule::kBroadcast},
    {"QLinearConv", RankRule::kSame},
    {"QuantizeLinear", RankRule::kSame},
    {"RMSNormalization", RankRule::kSame},
    {"RNN", RankRule::kRecurrent},
    {"RandomNormalLike", RankRule::kSame},
    {"RandomUniformLike", RankRule::kSame},
    {"Range", RankRule::kOne},
    {"Reciprocal", RankRule::kSame},
    {"ReduceL1", RankRule::kReduce},
    {"ReduceL2", RankRule::kReduce},
    {"ReduceLogSum", RankRule::kReduce},
    {"ReduceLogSumExp", RankRule::kReduce},
    {"ReduceMax", RankRule::kReduce},
    {"ReduceMean", RankRule::kReduce},
    {"ReduceMin", RankRule::kReduce},
    {"ReduceProd", RankRule::kReduce},
    {"ReduceSum", RankRule::kReduce},
    {"ReduceSumSquare", RankRule::kReduce},
    {"Relu", RankRule::kSame},
    {"Reshape", RankRule::kReshape},
    {"Resize", RankRule::kSame},
    {"ReverseSequence", RankRule::kSame},
    {"Round", RankRule::kSame},
    {"Scatter", RankRule::kSame},
    {"ScatterElements", RankRule::kSame},
    {"ScatterND", RankRule::kSame},
    {"Selu", RankRule::kSame},
    {"Shape", RankRule::kOne},
    {"Shrink", RankRule::kSame},
    {"Sigmoid", RankRule::kSame},
    {"Sign", RankRule::kSame},
    {"Sin", RankRule::kSame},
    {"Sinh", RankRule::kSame},
    {"Size", RankRule::kZero},
    {"Slice", RankRule::kSame},
    {"Softmax", RankRule::kSame},
    {"Softplus", RankRule::kSame},
    {"Softsign", RankRule::kSame},
    {"SpaceToDepth", RankRule::kSame},
    {"Split", RankRule::kSame},
    {"Sqrt", RankRule::kSame},
    {"Squeeze", RankRule::kSqueeze},
    {"Sub", RankRule::kBroadcast},
    {"Sum", RankRule::kBroadcast},
    {"Swish", RankRule::kSame},
    {"Tan", RankRule::kSame},
    {"Tanh", RankRule::kSame},
    {"ThresholdedRelu", RankRule::kSame},
    {"Tile", RankRule::kSame},
    {"TopK", RankRule::kSame},
    {"Transpose", RankRule::kSame},
    {"Trilu", RankRule::kSame},
    {"Unsqueeze", RankRule::kUnsqueeze},
    {"Upsample", RankRule::kSame},
    {"Where", RankRule::kBroadcast},
    {"Xor", RankRule::kBroadcast},
};

RankRule rank_rule(std::string_view op) {
  const RankRow* row = std::lower_bound(
      std::begin(kRankRows), std::end(kRankRows), op,
      [](const RankRow& candidate, std::string_view name) { return candidate.op < name; });
  return row != std::end(kRankRows) && row->op == op ? row->rule : RankRule::kUnknown;
}

const Constant* constant_of(const Value* value) {
  if (value == nullptr) return nullptr;
  if (value->initializer() != nullptr) return value->initializer();
  const Node* producer = value->producer();
  if (producer == nullptr || producer->op_type() != "Constant") return nullptr;
  const Attribute* attribute = producer->attribute("value");
  return attribute != nullptr ? attribute->tensor() : nullptr;
}

/// Number of entries of a list: of a constant, a declared one, or one that is put together of
/// sizes, as exporters write the target of Reshape.
std::optional<size_t> length_of(const FactTable& table, const Value* value, int depth = 0) {
  constexpr int kMaxDepth = 8;
  if (value == nullptr || depth > kMaxDepth) return std::nullopt;
  if (const Constant* constant = constant_of(value))
    return constant->dims.size() == 1 && constant->dims[0] >= 0
               ? std::optional<size_t>(static_cast<size_t>(constant->dims[0]))
               : std::nullopt;
  const Type* type = value->type();
  if (type != nullptr && type->has_shape && type->dims.size() == 1 &&
      type->dims[0].kind == Dim::Kind::kValue && type->dims[0].value >= 0)
    return static_cast<size_t>(type->dims[0].value);
  const Node* node = value->producer();
  if (node == nullptr || !canonical_domain(node->domain()).empty() || node->input(0) == nullptr)
    return std::nullopt;
  const auto rank = table.facts(*node->input(0)).rank;
  const std::string_view op = node->op_type();
  if (op == "Cast" || op == "Identity")
    return rank == 1u ? length_of(table, node->input(0), depth + 1) : std::nullopt;
  if (op == "Shape")
    return node->attribute("start") == nullptr && node->attribute("end") == nullptr ? rank
                                                                                    : std::nullopt;
  if (op == "Unsqueeze") return rank == 0u ? std::optional<size_t>(1) : std::nullopt;
  if (op != "Concat") return std::nullopt;
  size_t total = 0;
  for (const Value* input : node->inputs()) {
    const auto part = length_of(table, input, depth + 1);
    if (!part) return std::nullopt;
    total += *part;
  }
  return total;
}

/// Number of entries of the list that `node` takes as attribute `name` or as input `index`.
std::optional<size_t> list_length(const FactTable& table, const Node& node, Text name,
                                  size_t index) {
  if (const Attribute* attribute = node.attribute(name);
      attribute != nullptr && !attribute->is_reference())
    return attribute->ints().size();
  return length_of(table, node.input(index));
}

bool keeps_dims(const Node& node) {
  const Attribute* attribute = node.attribute("keepdims");
  const int64_t* value = attribute != nullptr ? attribute->i() : nullptr;
  return value == nullptr || *value != 0;
}

}  // namespace

ValueFacts FactTable::facts(const Value& value) const {
  ValueFacts facts = value.id() < found_.size() ? found_[value.id()] : ValueFacts{};
  if (const Constant* constant = value.initializer())
    return {constant->dtype(), constant->dims.size()};
  if (const Type* type = value.type(); type != nullptr && type->is_tensor()) {
    if (type->dtype() != DType::kUndefined) facts.dtype = type->dtype();
    if (type->has_shape) facts.rank = type->dims.size();
  }
  return facts;
}

void FactTable::note(const Value* value, ValueFacts facts) {
  if (value->id() >= found_.size()) found_.resize(std::max<size_t>(value->id() + 1, 64) * 2);
  found_[value->id()] = facts;
}

namespace {

std::optional<size_t> output_rank(const FactTable& table, const Node& node, RankRule rule,
                                  size_t output) {
  auto of = [&](size_t index) -> std::optional<size_t> {
    return node.input(index) != nullptr ? table.facts(*node.input(index)).rank : std::nullopt;
  };
  const std::optional<size_t> first = of(0);
  switch (rule) {
    case RankRule::kSame:
      return first;
    case RankRule::kBroadcast: {
      size_t most = 0;
      for (size_t i = 0; i < node.inputs().size(); ++i) {
        const std::optional<size_t> rank = of(i);
        if (!rank) return std::nullopt;
        most = std::max(most, *rank);
      }
      return most;
    }
    case RankRule::kZero:
      return 0;
    case RankRule::kOne:
      return 1;
    case RankRule::kTwo:
      return 2;
    case RankRule::kThree:
      return 3;
    case RankRule::kRecurrent:
      return output == 0 ? 4 : 3;
    case RankRule::kReduce: {
      if (keeps_dims(node)) return first;
      const std::optional<size_t> axes = list_length(table, node, "axes", 1);
      if (!first || (!axes && node.input(1) != nullptr)) return std::nullopt;
      return axes && *axes != 0 ? *first - std::min(*first, *axes) : 0;
    }
    case RankRule::kArg:
      if (!first || keeps_dims(node)) return first;
      return *first - std::min<size_t>(*first, 1);
    case RankRule::kSqueeze: {
      const std::optional<size_t> axes = list_length(table, node, "axes", 1);
      if (!first || !axes || *axes > *first) return std::nullopt;
      return *first - *axes;
    }
    case RankRule::kUnsqueeze: {
      const std::optional<size_t> axes = list_length(table, node, "axes", 1);
      if (!first || !axes) return std::nullopt;
      return *first + *axes;
    }
    case RankRule::kReshape:
      return list_length(table, node, "shape", 1);
    case RankRule::kExpand: {
      const std::optional<size_t> target = length_of(table, node.input(1));
      if (!first || !target) return std::nullopt;
      return std::max(*first, *target);
    }
    case RankRule::kFilled:
      return length_of(table, node.input(0));
    case RankRule::kGather:
      if (!first || !of(1) || *first == 0) return std::nullopt;
      return *first + *of(1) - 1;
    case RankRule::kMatMul:
      if (!first || !of(1) || *first < 2 || *of(1) < 2) return std::nullopt;
      return std::max(*first, *of(1));
    case RankRule::kOneHot:
      if (!first) return std::nullopt;
      return *first + 1;
    case RankRule::kConstant:
    case RankRule::kUnknown:
      break;
  }
  return std::nullopt;
}

DType fixed_type(std::string_view type) {
  if (type == "tensor(int64)") return DType::kInt64;
  if (type == "tensor(bool)") return DType::kBool;
  if (type == "tensor(float)") return DType::kFloat32;
  return DType::kUndefined;
}

/// The element type that the schema binds an output to.
DType output_dtype(const FactTable& table, const Node& node, const OpVersion& version,
                   const ResolvedParam& output) {
  if (output.type_var < 0) return fixed_type(output.type);
  for (size_t i = 0; i < node.inputs().size() && !version.inputs.empty(); ++i) {
    const ResolvedParam& input = version.inputs[std::min(i, version.inputs.size() - 1)];
    if (input.type_var != output.type_var || !input.homogeneous || node.input(i) == nullptr)
      continue;
    const DType dtype = table.facts(*node.input(i)).dtype;
    if (dtype != DType::kUndefined) return dtype;
  }
  return DType::kUndefined;
}

}  // namespace

void FactTable::learn(const Node& node, const OpVersion& version) {
  const bool onnx = std::string_view(version.decl->domain).empty();
  const RankRule rule = onnx ? rank_rule(version.decl->name) : RankRule::kUnknown;
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    const Value* value = node.output(i);
    if (value == nullptr || version.outputs.empty()) continue;
    if (const Type* type = value->type(); type != nullptr && type->has_shape) continue;
    ValueFacts facts;
    const Attribute* to = node.attribute("to");
    if (rule == RankRule::kConstant) {
      if (const Constant* constant = constant_of(value))
        facts = {constant->dtype(), constant->dims.size()};
    } else {
      facts.rank = output_rank(*this, node, rule, i);
      facts.dtype = output_dtype(*this, node, version,
                                 version.outputs[std::min(i, version.outputs.size() - 1)]);
    }
    if (onnx && version.decl->name == "Cast" && to != nullptr && to->i() != nullptr &&
        *to->i() > 0 && *to->i() < static_cast<int64_t>(kDTypeCount))
      facts.dtype = static_cast<DType>(*to->i());
    note(value, facts);
  }
}

}  // namespace tombolo
