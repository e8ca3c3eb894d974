// For the runtime: networks of float16 and bfloat16 are computed in float32, rounded where their
// inputs, outputs and other types are met, not after each operator. Weights stay at 16 bits:
// convolutions and products widen them when they are packed.

#include <algorithm>
#include <map>

#include "passes/attributes.h"
#include "passes/passes.h"
#include "passes/runtime_operators.h"

namespace tombolo::passes {
namespace {

/// Operators that compute, whose float tensors all have one type (or those of one type stay one).
constexpr Text kComputes[] = {"Abs",
                              "Acos",
                              "Acosh",
                              "Add",
                              "Asin",
                              "Asinh",
                              "Atan",
                              "Atanh",
                              "Attention",
                              "AveragePool",
                              "BatchNormalization",
                              "Ceil",
                              "Celu",
                              "Clip",
                              "Col2Im",
                              "Conv",
                              "ConvTranspose",
                              "Cos",
                              "Cosh",
                              "CumSum",
                              "DFT",
                              "DeformConv",
                              "Div",
                              "Einsum",
                              "Elu",
                              "Erf",
                              "Exp",
                              "Floor",
                              "GRU",
                              "Gelu",
                              "Gemm",
                              "GlobalAveragePool",
                              "GlobalLpPool",
                              "GlobalMaxPool",
                              "GridSample",
                              "GroupNormalization",
                              "HardSigmoid",
                              "HardSwish",
                              "InstanceNormalization",
                              "LRN",
                              "LSTM",
                              "LayerNormalization",
                              "LeakyRelu",
                              "Log",
                              "LogSoftmax",
                              "LpNormalization",
                              "LpPool",
                              "MatMul",
                              "Max",
                              "MaxPool",
                              "MaxRoiPool",
                              "Mean",
                              "MeanVarianceNormalization",
                              "Min",
                              "Mish",
                              "Mul",
                              "Neg",
                              "NegativeLogLikelihoodLoss",
                              "PRelu",
                              "Pow",
                              "RMSNormalization",
                              "RNN",
                              "Reciprocal",
                              "ReduceL1",
                              "ReduceL2",
                              "ReduceLogSum",
                              "ReduceLogSumExp",
                              "ReduceMax",
                              "ReduceMean",
                              "ReduceMin",
                              "ReduceProd",
                              "ReduceSum",
                              "ReduceSumSquare",
                              "Relu",
                              "Resize",
                              "RoiAlign",
                              "RotaryEmbedding",
                              "Round",
                              "STFT",
                              "Selu",
                              "Sigmoid",
                              "Sign",
                              "SimplifiedLayerNormalization",
                              "Sin",
                              "Sinh",
                              "Softmax",
                              "SoftmaxCrossEntropyLoss",
                              "Softplus",
                              "Softsign",
                              "Sqrt",
                              "Sub",
                              "Sum",
                              "Swish",
                              "Tan",
                              "Tanh",
                              "ThresholdedRelu",
                              "Where"};
/// The same of com.microsoft.
constexpr Text kMicrosoftComputes[] = {"Attention",
                                       "BiasAdd",
                                       "BiasGelu",
                                       "BiasSplitGelu",
                                       "DecoderMaskedMultiHeadAttention",
                                       "FastGelu",
                                       "FusedConv",
                                       "FusedGemm",
                                       "FusedMatMul",
                                       "Gelu",
                                       "GroupNorm",
                                       "GroupQueryAttention",
                                       "Inverse",
                                       "LinearAttention",
                                       "MultiHeadAttention",
                                       "QuickGelu",
                                       "RotaryEmbedding",
                                       "SkipGroupNorm",
                                       "SkipLayerNormalization",
                                       "SkipSimplifiedLayerNormalization"};
/// Operators that move elements of all their float inputs: they follow what comes in.
constexpr Text kMoves[] = {"Concat",   "DepthToSpace", "Expand",  "Flatten",   "Gather",
                           "Identity", "Pad",          "Reshape", "Slice",     "SpaceToDepth",
                           "Split",    "Squeeze",      "Tile",    "Transpose", "Unsqueeze"};

/// Operators that compare, search or take apart: which element it is depends on each bit, so that
/// they see what was rounded.
constexpr Text kOrders[] = {"ArgMax", "ArgMin", "Hardmax", "NonZero", "TopK", "Unique"};

/// What has a kernel that widens and rounds on its way: by itself it reads and writes half as much.
constexpr Text kAlone[] = {"Abs",       "Add",         "Div",
                           "Elu",       "Erf",         "Exp",
                           "Gelu",      "HardSigmoid", "LayerNormalization",
                           "LeakyRelu", "Log",         "Max",
                           "Mean",      "Min",         "Mish",
                           "Mul",       "Neg",         "RMSNormalization",
                           "Relu",      "Sigmoid",     "Sign",
                           "Softmax",   "Softplus",    "Sqrt",
                           "Sub",       "Sum",         "Swish",
                           "Tanh"};

constexpr int64_t kLarge = 1 << 12;  ///< elements from which on a weight stays as it is

template <size_t kN>
bool contains(const Text (&list)[kN], Text op) {
  return std::find(std::begin(list), std::end(list), op) != std::end(list);
}

class Widen {
 public:
  Widen(Rewriter& rewriter, Graph& graph) : r_(rewriter), graph_(graph) {}

  size_t run() {
    size_t count = 0;
    for (Node* node : graph_.nodes()) {
      const Text op = node->op_type();
      if (node->outputs().empty()) continue;
      if (contains(kMicrosoftComputes, op) && r_.is(node, op, kMicrosoft)) {
        count += computes(*node);
        continue;
      }
      if (!r_.is(node, op)) continue;
      const bool combines = (op == "ScatterND" || op == "ScatterElements") &&
                            AttributeReader(*node).get_string("reduction", "none") != "none";
      if (contains(kMoves, op) || picks(*node))
        count += moves(*node);
      else if (combines || contains(kComputes, op))
        count += computes(*node);
      else if (contains(kOrders, op) && half(node->input(0)))
        count += orders(*node);
    }
    for (Node* node : made_)
      if (!node->output(0)->has_uses()) r_.erase(*node);
    return count;
  }

 private:
  bool half(const Value* value) const {
    return value != nullptr && is_short_float(r_.dtype(value));
  }

  /// The value as float32, by a node before `before` if it is not there yet.
  Value* wide(Value* value, Node& before) {
    if (const auto found = wide_.find(value); found != wide_.end()) return found->second;
    if (const Tensor* constant = small_constant(value)) {
      std::vector<float> numbers(static_cast<size_t>(constant->size()));
      for (int64_t i = 0; i < constant->size(); ++i)
        numbers[static_cast<size_t>(i)] = static_cast<float>(constant->get_double(i));
      Value* made = r_.initializer(
          graph_, Tensor::of<float>(DType::kFloat32, constant->dims(), numbers), value->name());
      // A constant may belong to a graph around this one; the copy belongs to this one.
      return wide_[value] = made;
    }
    Node& cast = r_.add(before, "Cast", {value}, value->name());
    cast.set_int("to", static_cast<int64_t>(DType::kFloat32));
    r_.touch(cast);
    made_.push_back(&cast);
    return wide_[value] = cast.output(0);
  }
  const Tensor* small_constant(const Value* value) const {
    if (!r_.is_constant(value)) return nullptr;
    if (value->initializer() != nullptr &&
        element_count(value->initializer()->dims.span()) >= kLarge)
      return nullptr;
    return r_.constant(value);
  }

  /// A weight that the kernel widens itself.
  bool stays(const Node& node, size_t index) const {
    const Value* value = node.input(index);
    if (index != 1 || !r_.is_constant(value) || small_constant(value) != nullptr) return false;
    if (r_.is(&node, "Conv")) {
      const auto rank = r_.rank(value);
      return rank && *rank >= 3 && *rank <= 5;
    }
    // What fuse-epilogues takes in any case: an operator of ai.tombolo can have two types.
    if (r_.is(&node, "MatMul"))
      return r_.rank(value) == 2u && r_.rank(node.input(0)).value_or(0) >= 2;
    const Value* bias = node.input(2);
    return r_.is(&node, "Gemm") &&
           (bias == nullptr ||
            (r_.rank(bias).value_or(9) <= 1 && AttributeReader(node).get_float("beta", 1) == 1));
  }

  /// Nothing before or after it is computed in float32.
  bool alone(const Node& node) const {
    if (!contains(kAlone, node.op_type()) || !r_.is(&node, node.op_type())) return false;
    for (const Value* input : node.inputs())
      if (wide_.contains(input)) return false;
    // Sums along another axis than the last need all of them as floats.
    const auto rank = r_.rank(node.input(0));
    const int64_t axis = AttributeReader(node).get_int("axis", -1);
    if (r_.is(&node, "Softmax") && axis != -1 && (!rank || axis != static_cast<int64_t>(*rank) - 1))
      return false;
    for (const Value* output : node.outputs())
      for (const Use& use : output == nullptr ? std::span<const Use>() : output->uses()) {
        const Text op = use.node->op_type();
        if (contains(kComputes, op) || contains(kMoves, op)) return false;
      }
    return true;
  }

  size_t computes(Node& node) {
    if (alone(node)) return 0;
    bool any = false;
    for (const Value* output : node.outputs()) any |= half(output);
    if (!any) return 0;
    for (const Attribute& attribute : node.attributes())
      if (attribute.graph() != nullptr || attribute.tensor() != nullptr) return 0;
    std::vector<Value*> inputs;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      Value* value = node.input(i);
      inputs.push_back(half(value) && !stays(node, i) ? wide(value, node) : value);
    }
    rebuild(node, inputs);
    return 1;
  }

  /// A Resize that gives elements as they are.
  bool picks(const Node& node) const {
    const AttributeReader attributes(node);
    return node.op_type() == "Resize" && attributes.get_string("mode", "nearest") == "nearest" &&
           attributes.get_string("coordinate_transformation_mode", "") != "tf_crop_and_resize";
  }

  size_t moves(Node& node) {
    if (!half(node.output(0))) return 0;
    // Where at least one input is wide already and the rest is small.
    bool any = false;
    for (Value* value : node.inputs()) {
      if (!half(value)) continue;
      const bool known = wide_.contains(value);
      any |= known;
      if (!known && small_constant(value) == nullptr && node.op_type() != "Concat") return 0;
    }
    if (!any) return 0;
    std::vector<Value*> inputs;
    for (Value* value : node.inputs()) inputs.push_back(half(value) ? wide(value, node) : value);
    rebuild(node, inputs);
    return 1;
  }

  size_t orders(Node& node) {
    std::vector<Value*> inputs(node.inputs().begin(), node.inputs().end());
    // A Cast of its own, of what other operators may have at hand before it was rounded.
    Node& cast = r_.add(node, "Cast", {inputs[0]}, inputs[0]->name());
    cast.set_int("to", static_cast<int64_t>(DType::kFloat32));
    r_.touch(cast);
    inputs[0] = cast.output(0);
    rebuild(node, inputs);
    return 1;
  }

  /// The same node on wide inputs; outputs that were short are rounded behind it.
  void rebuild(Node& node, const std::vector<Value*>& inputs) {
    std::vector<bool> was_half;
    std::vector<DType> types;
    for (const Value* output : node.outputs()) {
      was_half.push_back(half(output));
      types.push_back(output != nullptr ? r_.dtype(output) : DType::kUndefined);
    }
    Text hint;
    for (const Value* output : node.outputs())
      if (hint.empty() && output != nullptr) hint = output->name();
    Node& made = r_.add(node, node.op_type(), inputs, hint, node.outputs().size(), node.domain());
    copy_attributes(node, made);
    r_.touch(made);
    for (size_t i = 0; i < was_half.size(); ++i) {
      Value* old = node.output(i);
      if (old == nullptr) continue;
      if (!was_half[i]) {
        r_.replace(*old, *made.output(i));
        continue;
      }
      Node& cast = r_.add(node, "Cast", {made.output(i)}, old->name());
      cast.set_int("to", static_cast<int64_t>(types[i]));
      r_.touch(cast);
      r_.replace(*old, *cast.output(0));
      wide_[cast.output(0)] = made.output(i);
      made_.push_back(&cast);
    }
    r_.erase(node);
  }

  Rewriter& r_;
  Graph& graph_;
  std::map<const Value*, Value*> wide_;
  std::vector<Node*> made_;  ///< Casts
};

}  // namespace

Result<size_t> widen_halves(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) { count += Widen(rewriter, graph).run(); });
  if (count != 0) CHECK_OK(remove_dead_code(rewriter));
  return count;
}

}  // namespace tombolo::passes
