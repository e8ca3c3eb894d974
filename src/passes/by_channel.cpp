#include "passes/by_channel.h"

#include <cmath>

#include "passes/attributes.h"
#include "passes/evaluate.h"

namespace tombolo::passes {

namespace {

/// The DequantizeLinear that makes `value` of constants, or null.
const Node* dequantised_constant(const Rewriter& rewriter, const Value* value) {
  const Node* node = rewriter.producer(value, "DequantizeLinear");
  if (node == nullptr) return nullptr;
  for (const Value* input : node->inputs())
    if (input != nullptr && !rewriter.is_constant(input)) return nullptr;
  return node;
}

/// Constant floats, those that are quantised included.
std::optional<Tensor> constant_numbers(Rewriter& rewriter, const Value* value) {
  if (const Tensor* tensor = rewriter.constant(value)) return *tensor;
  const Node* node = dequantised_constant(rewriter, value);
  if (node == nullptr) return std::nullopt;
  constexpr uint64_t kMost = uint64_t{1} << 24;
  std::vector<RunValue> held(node->inputs().size());
  std::vector<const RunValue*> inputs(held.size());
  for (size_t i = 0; i < held.size(); ++i) {
    if (node->input(i) == nullptr) continue;
    const Tensor* tensor = rewriter.constant(node->input(i));
    if (tensor == nullptr) return std::nullopt;
    held[i] = *tensor;
    inputs[i] = &held[i];
  }
  auto outputs = evaluate(rewriter, *node, inputs, kMost);
  if (!outputs || !(*outputs)[0].is_tensor()) return std::nullopt;
  return (*outputs)[0].tensor();
}

}  // namespace

std::optional<std::vector<double>> by_channel(Rewriter& rewriter, const Value* constant,
                                              const Channels& channels) {
  const bool known =
      rewriter.is_constant(constant) || dequantised_constant(rewriter, constant) != nullptr;
  const auto dims = known ? rewriter.dims(constant) : std::nullopt;
  if (!dims || dims->size() > channels.rank) return std::nullopt;
  const size_t skipped = channels.rank - dims->size();
  bool whole = false;
  for (size_t i = 0; i < dims->size(); ++i) {
    if ((*dims)[i] == 1) continue;
    if (i + skipped != channels.axis || (*dims)[i] != channels.count) return std::nullopt;
    whole = true;
  }
  const auto tensor = constant_numbers(rewriter, constant);
  if (!tensor || !is_float(tensor->dtype())) return std::nullopt;
  std::vector<double> out(static_cast<size_t>(channels.count));
  for (size_t c = 0; c < out.size(); ++c) {
    out[c] = tensor->get_double(whole ? static_cast<int64_t>(c) : 0);
    if (!std::isfinite(out[c])) return std::nullopt;
  }
  return out;
}

std::optional<Affine> batch_norm_affine(Rewriter& rewriter, const Node& node, int64_t channels) {
  if (!rewriter.is(&node, "BatchNormalization") || node.inputs().size() < 5) return std::nullopt;
  const AttributeReader attributes(node);
  if (attributes.get_int("training_mode", 0) != 0) return std::nullopt;
  for (size_t i = 1; i < node.outputs().size(); ++i)
    if (node.output(i) != nullptr && node.output(i)->has_uses()) return std::nullopt;
  const double epsilon = attributes.get_float("epsilon", 1e-5f);
  std::vector<double> numbers[4];
  for (size_t i = 0; i < 4; ++i) {
    const auto tensor = constant_numbers(rewriter, node.input(i + 1));
    if (!tensor || tensor->size() != channels) return std::nullopt;
    for (int64_t c = 0; c < tensor->size(); ++c) numbers[i].push_back(tensor->get_double(c));
  }
  Affine affine;
  for (size_t c = 0; c < numbers[0].size(); ++c) {
    const double k = numbers[0][c] / std::sqrt(numbers[3][c] + epsilon);
    affine.factor.push_back(k);
    affine.shift.push_back(numbers[1][c] - k * numbers[2][c]);
    if (!std::isfinite(k) || !std::isfinite(affine.shift.back())) return std::nullopt;
  }
  return affine;
}

}  // namespace tombolo::passes
