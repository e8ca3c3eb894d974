#include "runtime/images_apart.h"

#include <algorithm>

#include "ops/attributes.h"

namespace tombolo {

namespace {

using Check = bool (*)(const BatchedNode&);

size_t rank_of(const BatchedNode& n) { return n.inputs[0].dims.size(); }

/// Whether an axis, which may count from the end, is another than the first.
bool is_inner(int64_t axis, size_t rank) {
  const auto count = static_cast<int64_t>(rank);
  return axis >= -count && axis < count && axis != 0 && axis != -count;
}

bool is_inner(const BatchedNode& n, int64_t fallback) {
  return is_inner(AttributeReader(n.node).get_int("axis", fallback), rank_of(n));
}

/// The elements of a constant input of integers; nothing where it is absent, or no constant.
std::optional<std::vector<int64_t>> integers(const BatchedNode& n, size_t index) {
  if (index >= n.inputs.size() || n.inputs[index].constant == nullptr) return std::nullopt;
  const Tensor& tensor = *n.inputs[index].constant;
  if (tensor.dtype() != DType::kInt64 && tensor.dtype() != DType::kInt32) return std::nullopt;
  std::vector<int64_t> values;
  for (int64_t i = 0; i < tensor.size(); ++i) values.push_back(tensor.get_int64(i));
  return values;
}

bool has_input(const BatchedNode& n, size_t index) {
  return index < n.inputs.size() && n.inputs[index].present;
}

/// Whether input `index` names axes, and not the first one.
bool names_inner_axes(const BatchedNode& n, size_t index, size_t rank) {
  const auto axes = integers(n, index);
  return axes && !axes->empty() && std::all_of(axes->begin(), axes->end(), [&](int64_t axis) {
           return is_inner(axis, rank);
         });
}

/// An operand of broadcasting: a batch of the output's rank, or the same for all images.
bool is_operand(const BatchedNode& n, size_t index) {
  if (!has_input(n, index)) return true;
  const BatchedNode::Input& input = n.inputs[index];
  if (input.images) return input.dims.size() == n.output.size();
  return input.dims.size() < n.output.size() || input.dims[0] == 1;
}

bool any(const BatchedNode&) { return true; }

bool broadcasts(const BatchedNode& n) {
  for (size_t i = 0; i < n.inputs.size(); ++i)
    if (!is_operand(n, i)) return false;
  return true;
}

bool along_last(const BatchedNode& n) { return is_inner(n, -1); }
bool along_first(const BatchedNode& n) { return is_inner(n, 0); }

bool all_images(const BatchedNode& n) {
  return std::all_of(n.inputs.begin(), n.inputs.end(),
                     [](const BatchedNode::Input& input) { return input.images; });
}

bool concat(const BatchedNode& n) { return all_images(n) && along_first(n); }

/// Scales for all, or for each entry of an axis within images.
bool quantize(const BatchedNode& n) {
  const AttributeReader attributes(n.node);
  if (attributes.get_int("block_size", 0) != 0 || !has_input(n, 1)) return false;
  return element_count(n.inputs[1].dims) == 1 || is_inner(n, 1);
}

/// Indices of a MaxPool count through the whole batch.
bool one_output(const BatchedNode& n) { return n.node.output(1) == nullptr; }

bool inference_alone(const BatchedNode& n) {
  return AttributeReader(n.node).get_int("training_mode", 0) == 0 && one_output(n);
}

bool concat_bytes(const BatchedNode& n) {
  if (n.inputs.size() < 3 ||
      !is_inner(AttributeReader(n.node).get_int("axis", 0), n.inputs[2].dims.size()))
    return false;
  for (size_t i = 2; i < n.inputs.size(); i += 3)
    if (!n.inputs[i].images) return false;
  return true;
}

bool add_bytes(const BatchedNode& n) { return is_operand(n, 0) && is_operand(n, 3); }

/// What is added to the sums is of the output's shape.
bool conv_and_sum(const BatchedNode& n) { return !has_input(n, 3) || n.inputs[3].images; }
bool conv_and_sum_of_bytes(const BatchedNode& n) { return !has_input(n, 9) || n.inputs[9].images; }

bool first_stays(const BatchedNode& n, Text name) {
  const auto perm = AttributeReader(n.node).get_ints(name);
  return perm.empty() || perm[0] == 0;
}

bool transpose(const BatchedNode& n) {
  return !AttributeReader(n.node).get_ints("perm").empty() && first_stays(n, "perm");
}

/// Rows of A are images where it is a matrix; else matrices are.
bool product(const BatchedNode& n) {
  const size_t rank = n.output.size();
  if (n.inputs[0].dims.size() < 2 || n.inputs[1].dims.size() < 2) return false;
  if (rank == 2) return n.inputs[0].images && !n.inputs[1].images;
  return is_operand(n, 0) && is_operand(n, 1);
}

bool product_and_more(const BatchedNode& n) {
  const AttributeReader attributes(n.node);
  if (!product(n) || !is_operand(n, 2) || !is_operand(n, 3) || !first_stays(n, "perm_y"))
    return false;
  if (n.output.size() == 2) return attributes.get_int("transA", 0) == 0 && first_stays(n, "perm_a");
  return (!n.inputs[0].images || first_stays(n, "perm_a")) &&
         (!n.inputs[1].images || first_stays(n, "perm_b"));
}

bool gemm(const BatchedNode& n) {
  return AttributeReader(n.node).get_int("transA", 0) == 0 && is_operand(n, 2);
}

/// Without axes a sum goes over all of them, and one image alone would lose that of the batch.
bool of_inner_axes(const BatchedNode& n) { return names_inner_axes(n, 1, rank_of(n)); }

/// The size of the batch is copied, or what is left.
bool reshape(const BatchedNode& n) {
  const auto target = integers(n, 1);
  if (!target || target->empty()) return false;
  return target->front() == -1 ||
         (target->front() == 0 && AttributeReader(n.node).get_int("allowzero", 0) == 0);
}

bool flatten(const BatchedNode& n) { return AttributeReader(n.node).get_int("axis", 1) == 1; }

bool unsqueeze(const BatchedNode& n) { return names_inner_axes(n, 1, n.output.size()); }

bool slice(const BatchedNode& n) {
  return integers(n, 1) && integers(n, 2) && names_inner_axes(n, 3, rank_of(n));
}

bool pad(const BatchedNode& n) {
  if (has_input(n, 3)) return names_inner_axes(n, 3, rank_of(n));
  const auto pads = integers(n, 1);
  return pads && pads->size() == 2 * rank_of(n) && (*pads)[0] == 0 && (*pads)[rank_of(n)] == 0;
}

bool resize(const BatchedNode& n) {
  const AttributeReader attributes(n.node);
  if (attributes.get_string("coordinate_transformation_mode", "") == "tf_crop_and_resize")
    return false;
  if (attributes.has("axes")) {
    const auto axes = attributes.get_ints("axes");
    return std::all_of(axes.begin(), axes.end(),
                       [&](int64_t axis) { return is_inner(axis, rank_of(n)); });
  }
  // Sizes would name that of the whole batch.
  if (has_input(n, 3) || !has_input(n, 2) || n.inputs[2].constant == nullptr) return false;
  const Tensor& scales = *n.inputs[2].constant;
  return scales.dtype() == DType::kFloat32 && scales.size() > 0 && scales.get_double(0) == 1;
}

bool two_images(const BatchedNode& n) { return n.inputs[0].images && n.inputs[1].images; }

bool deform(const BatchedNode& n) {
  return n.inputs[0].images && n.inputs[2].images && (!has_input(n, 4) || n.inputs[4].images);
}

struct Rule {
  Text domain, op;
  uint32_t images;  ///< bit i: input i may be a batch; all others are constant
  Check check = any;
};

constexpr uint32_t kAll = ~uint32_t{0};

constexpr Rule kRules[] = {
    {"", "Abs", 1},
    {"", "Acos", 1},
    {"", "Acosh", 1},
    {"", "Add", kAll, broadcasts},
    {"", "And", kAll, broadcasts},
    {"", "ArgMax", 1, along_first},
    {"", "ArgMin", 1, along_first},
    {"", "Asin", 1},
    {"", "Asinh", 1},
    {"", "Atan", 1},
    {"", "Atanh", 1},
    {"", "AveragePool", 1},
    {"", "BatchNormalization", 1, inference_alone},
    {"", "Cast", 1},
    {"", "Ceil", 1},
    {"", "Celu", 1},
    {"", "Clip", 1},
    {"", "Concat", kAll, concat},
    {"", "Conv", 1},
    {"", "ConvTranspose", 1},
    {"", "Cos", 1},
    {"", "Cosh", 1},
    {"", "DeformConv", 1 | 1 << 2 | 1 << 4, deform},
    {"", "DepthToSpace", 1},
    {"", "DequantizeLinear", 1, quantize},
    {"", "Div", kAll, broadcasts},
    {"", "Elu", 1},
    {"", "Equal", kAll, broadcasts},
    {"", "Erf", 1},
    {"", "Exp", 1},
    {"", "Flatten", 1, flatten},
    {"", "Floor", 1},
    {"", "Gather", 1, along_first},
    {"", "Gelu", 1},
    {"", "Gemm", 1, gemm},
    {"", "GlobalAveragePool", 1},
    {"", "GlobalLpPool", 1},
    {"", "GlobalMaxPool", 1},
    {"", "Greater", kAll, broadcasts},
    {"", "GreaterOrEqual", kAll, broadcasts},
    {"", "GridSample", 3, two_images},
    {"", "GroupNormalization", 1},
    {"", "HardSigmoid", 1},
    {"", "HardSwish", 1},
    {"", "Hardmax", 1, along_last},
    {"", "Identity", 1},
    {"", "InstanceNormalization", 1},
    {"", "LRN", 1},
    {"", "LayerNormalization", 1, along_last},
    {"", "LeakyRelu", 1},
    {"", "Less", kAll, broadcasts},
    {"", "LessOrEqual", kAll, broadcasts},
    {"", "Log", 1},
    {"", "LogSoftmax", 1, along_last},
    {"", "LpNormalization", 1, along_last},
    {"", "LpPool", 1},
    {"", "MatMul", 3, product},
    {"", "Max", kAll, broadcasts},
    {"", "MaxPool", 1, one_output},
    {"", "Mean", kAll, broadcasts},
    {"", "Min", kAll, broadcasts},
    {"", "Mish", 1},
    {"", "Mul", kAll, broadcasts},
    {"", "Neg", 1},
    {"", "Not", 1},
    {"", "Or", kAll, broadcasts},
    {"", "PRelu", kAll, broadcasts},
    {"", "Pad", 1, pad},
    {"", "Pow", kAll, broadcasts},
    {"", "QLinearConv", 1},
    {"", "QuantizeLinear", 1, quantize},
    {"", "RMSNormalization", 1, along_last},
    {"", "Reciprocal", 1},
    {"", "ReduceL1", 1, of_inner_axes},
    {"", "ReduceL2", 1, of_inner_axes},
    {"", "ReduceLogSum", 1, of_inner_axes},
    {"", "ReduceLogSumExp", 1, of_inner_axes},
    {"", "ReduceMax", 1, of_inner_axes},
    {"", "ReduceMean", 1, of_inner_axes},
    {"", "ReduceMin", 1, of_inner_axes},
    {"", "ReduceProd", 1, of_inner_axes},
    {"", "ReduceSum", 1, of_inner_axes},
    {"", "ReduceSumSquare", 1, of_inner_axes},
    {"", "Relu", 1},
    {"", "Reshape", 1, reshape},
    {"", "Resize", 1, resize},
    {"", "Round", 1},
    {"", "Selu", 1},
    {"", "Shrink", 1},
    {"", "Sigmoid", 1},
    {"", "Sign", 1},
    {"", "Sin", 1},
    {"", "Sinh", 1},
    {"", "Slice", 1, slice},
    {"", "Softmax", 1, along_last},
    {"", "Softplus", 1},
    {"", "Softsign", 1},
    {"", "SpaceToDepth", 1},
    {"", "Split", 1, along_first},
    {"", "Sqrt", 1},
    {"", "Squeeze", 1, of_inner_axes},
    {"", "Sub", kAll, broadcasts},
    {"", "Sum", kAll, broadcasts},
    {"", "Swish", 1},
    {"", "Tan", 1},
    {"", "Tanh", 1},
    {"", "ThresholdedRelu", 1},
    {"", "Transpose", 1, transpose},
    {"", "Unsqueeze", 1, unsqueeze},
    {"", "Where", kAll, broadcasts},
    {"", "Xor", kAll, broadcasts},
    {"ai.tombolo", "BlockChannels", 1},
    {"ai.tombolo", "BlockConcat", kAll, all_images},
    {"ai.tombolo", "BlockConv", 1 | 1 << 3, conv_and_sum},
    {"ai.tombolo", "BlockConvTranspose", 1},
    {"ai.tombolo", "BlockLRN", 1},
    {"ai.tombolo", "BlockPool", 1},
    {"ai.tombolo", "ByteTable", 1},
    {"ai.tombolo", "Conv", 1 | 1 << 3, conv_and_sum},
    {"ai.tombolo", "ConvIntegerToFloat", 1},
    {"ai.tombolo", "Elementwise", kAll, broadcasts},
    {"ai.tombolo", "MatMul", 15, product_and_more},
    {"ai.tombolo", "QLinearAffine", 1},
    {"ai.tombolo", "QLinearConvLast", 1 | 1 << 9, conv_and_sum_of_bytes},
    {"ai.tombolo", "QLinearConvTranspose", 1},
    {"ai.tombolo", "QLinearInstanceNormalization", 1},
    {"ai.tombolo", "UnblockChannels", 1},
    {"com.microsoft", "NhwcMaxPool", 1},
    {"com.microsoft", "QLinearAdd", 1 | 1 << 3, add_bytes},
    {"com.microsoft", "QLinearAveragePool", 1},
    {"com.microsoft", "QLinearConcat", kAll, concat_bytes},
    {"com.microsoft", "QLinearConv", 1},
    {"com.microsoft", "QLinearGlobalAveragePool", 1},
    {"com.microsoft", "QLinearLeakyRelu", 1},
    {"com.microsoft", "QLinearMul", 1 | 1 << 3, add_bytes},
    {"com.microsoft", "QLinearSigmoid", 1},
};

}  // namespace

bool keeps_images_apart(const BatchedNode& n) {
  if (n.node.opset_override() != 0) return false;  // rules are those of the newest set
  const Text domain = canonical_domain(n.node.domain());
  const Rule* rule = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& row) {
    return row.op == n.node.op_type() && row.domain == domain;
  });
  if (rule == std::end(kRules) || n.inputs.empty() || n.output.empty()) return false;
  bool images = false;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    const BatchedNode::Input& input = n.inputs[i];
    if (!input.present) continue;
    const bool may = i >= 32 ? rule->images == kAll : (rule->images >> i & 1) != 0;
    if (input.images ? !may : input.constant == nullptr && rule->check != broadcasts) return false;
    images |= input.images;
  }
  return images && rule->check(n);
}

}  // namespace tombolo
