// Layers with several inputs.

#include <algorithm>

#include "formats/keras/layer.h"

namespace tombolo::keras {
namespace {

/// The inputs at one rank: Keras gives lower ones axes of 1 behind the batch.
std::vector<Value*> same_rank(LayerCall& call) {
  int64_t rank = 0;
  for (const KerasTensor& input : call.inputs) rank = std::max(rank, call.b.rank(input.value));
  std::vector<Value*> result;
  for (const KerasTensor& input : call.inputs) {
    std::vector<int64_t> axes;
    for (int64_t i = call.b.rank(input.value); i < rank; ++i) {
      axes.push_back(static_cast<int64_t>(axes.size()) + 1);
    }
    result.push_back(axes.empty() ? input.value : call.b.unsqueeze(input.value, axes));
  }
  return result;
}

/// A chain of two-operand nodes: what every runtime does fast.
template <const char* kOp>
Status chain(LayerCall& call) {
  const auto inputs = same_rank(call);
  Value* y = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) y = call.b.op(kOp, {y, inputs[i]});
  return call.out(y);
}
template <const char* kOp>
Status variadic(LayerCall& call) {
  const auto inputs = same_rank(call);
  return call.out(inputs.size() == 1 ? inputs[0] : call.b.op(kOp, inputs));
}
constexpr char kAdd[] = "Add", kMul[] = "Mul", kMax[] = "Max", kMin[] = "Min", kMean[] = "Mean";

Status subtract(LayerCall& call) {
  const auto inputs = same_rank(call);
  if (inputs.size() != 2) return parse_error("Subtract needs two inputs");
  return call.out(call.b.op("Sub", {inputs[0], inputs[1]}));
}

Status concatenate(LayerCall& call) {
  TRY(const int64_t axis, call.axis("axis", -1, call.rank()));
  std::vector<Value*> inputs;
  for (const KerasTensor& input : call.inputs) inputs.push_back(input.value);
  return call.out(inputs.size() == 1 ? inputs[0] : call.b.op("Concat", inputs, {{"axis", axis}}));
}

/// Sum over one axis of each, sample by sample.
Status dot(LayerCall& call) {
  GraphBuilder& b = call.b;
  if (call.inputs.size() != 2) return parse_error("Dot needs two inputs");
  const Json given = call.config["axes"];
  int64_t axes[2];
  for (size_t i = 0; i < 2; ++i) {
    const auto axis = given.is_array() ? given.at(i).as_int() : given.as_int();
    if (!axis) return not_supported(call, "axes");
    const int64_t rank = call.rank(i);
    axes[i] = *axis < 0 ? *axis + rank : *axis;
    if (axes[i] < 1 || axes[i] >= rank || rank > 3) return not_supported(call, "axes");
  }
  Value* sides[2] = {call.x(0), call.x(1)};
  if (call.flag("normalize", false)) {
    for (size_t i = 0; i < 2; ++i) {
      Value* square = b.op("ReduceSumSquare", {sides[i], b.ints({axes[i]})});
      Value* norm = b.op("Sqrt", {b.op("Max", {square, b.scalar(1e-12, call.dtype())})});
      sides[i] = b.op("Div", {sides[i], norm});
    }
  }
  if (call.rank(0) == 2 && call.rank(1) == 2) {
    return call.out(b.op("ReduceSum", {b.op("Mul", {sides[0], sides[1]}), b.ints({1})}));
  }
  // [batch, rows, sum] x [batch, sum, columns]; a missing axis is added and taken away again.
  std::vector<int64_t> extra;
  if (call.rank(0) == 2) {
    sides[0] = b.unsqueeze(sides[0], {1});
    extra.push_back(1);
  } else if (axes[0] == 1) {
    sides[0] = b.transpose(sides[0], {0, 2, 1});
  }
  if (call.rank(1) == 2) {
    sides[1] = b.unsqueeze(sides[1], {2});
    extra.push_back(2);
  } else if (axes[1] == 2) {
    sides[1] = b.transpose(sides[1], {0, 2, 1});
  }
  Value* y = b.op("MatMul", {sides[0], sides[1]});
  return call.out(extra.empty() ? y : b.squeeze(y, extra));
}

constexpr LayerRow kMergingRows[] = {
    {"Add", chain<kAdd>, MaskRule::kMerge},         {"Subtract", subtract, MaskRule::kMerge},
    {"Multiply", chain<kMul>, MaskRule::kMerge},    {"Average", variadic<kMean>, MaskRule::kMerge},
    {"Maximum", variadic<kMax>, MaskRule::kMerge},  {"Minimum", variadic<kMin>, MaskRule::kMerge},
    {"Concatenate", concatenate, MaskRule::kMerge}, {"Dot", dot},
};

}  // namespace

std::span<const LayerRow> merging_layers() { return kMergingRows; }

}  // namespace tombolo::keras
