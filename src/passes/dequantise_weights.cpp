// Weights that no operator of integers took would be dequantised and packed in every run: they
// become floats. Those of convolutions are made when they are packed.

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "ir/borrowed.h"
#include "passes/evaluate.h"
#include "passes/passes.h"

namespace tombolo::passes {
namespace {

/// Codes of one byte, less a zero point, times a scale, for each index of an axis.
class DequantisedWeight final : public Deferred {
 public:
  struct Channel {
    float scale;
    int32_t zero;
  };
  /// Runs of `inner` codes share a channel; after the last channel the first comes again.
  DequantisedWeight(Tensor codes, int64_t inner, std::vector<Channel> channels)
      : codes_(std::move(codes)), inner_(inner), channels_(std::move(channels)) {}

  void write(std::byte* to) const override {
    auto* out = reinterpret_cast<float*>(to);
    if (codes_.dtype() == DType::kInt8)
      write_codes(codes_.data<int8_t>(), out);
    else
      write_codes(codes_.data<uint8_t>(), out);
  }
  std::span<const std::byte> source() const override { return codes_.bytes(); }
  DType source_dtype() const override { return codes_.dtype(); }

 private:
  template <typename Code>
  void write_codes(const Code* from, float* out) const {
    size_t at = 0;
    for (int64_t i = 0; i < codes_.size(); i += inner_) {
      const auto [scale, zero] = channels_[at];
      at = at + 1 == channels_.size() ? 0 : at + 1;
      for (int64_t j = i; j < i + inner_; ++j) out[j] = static_cast<float>(from[j] - zero) * scale;
    }
  }

  Tensor codes_;
  int64_t inner_;
  std::vector<Channel> channels_;
};

std::shared_ptr<const Deferred> deferred_weight(const Rewriter& rewriter, const Node& node) {
  constexpr int64_t kWorthIt = int64_t{16} << 10;  // elements
  const AttributeReader attributes(node);
  const Value* output = node.output(0);
  if (!rewriter.defers || node.input(0)->initializer() == nullptr ||
      attributes.get_int("block_size", 0) != 0 || rewriter.dtype(output) != DType::kFloat32 ||
      rewriter.dtype(node.input(1)) != DType::kFloat32 ||
      !std::all_of(output->uses().begin(), output->uses().end(), [&](const Use& use) {
        return use.index == 1 &&
               (rewriter.is(use.node, "Conv") || rewriter.is(use.node, "ConvTranspose"));
      }))
    return nullptr;
  auto codes = node.input(0)->initializer()->value(borrowed(node.graph().storage_ptr()));
  const Tensor* scales = rewriter.constant(node.input(1));
  const Tensor* zeros = node.input(2) != nullptr ? rewriter.constant(node.input(2)) : nullptr;
  if (!codes || scales == nullptr || (node.input(2) != nullptr && zeros == nullptr) ||
      (codes->dtype() != DType::kInt8 && codes->dtype() != DType::kUInt8) ||
      (zeros != nullptr && zeros->size() != scales->size()) || codes->size() < kWorthIt)
    return nullptr;
  const auto rank = static_cast<int64_t>(codes->rank());
  int64_t inner = codes->size();
  if (scales->size() != 1) {
    int64_t axis = attributes.get_int("axis", 1);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || scales->size() != codes->dim(static_cast<size_t>(axis)))
      return nullptr;
    for (int64_t i = 0; i <= axis; ++i) inner /= codes->dim(static_cast<size_t>(i));
  }
  std::vector<DequantisedWeight::Channel> channels;
  for (int64_t i = 0; i < scales->size(); ++i)
    channels.push_back({scales->data<float>()[i],
                        zeros != nullptr ? static_cast<int32_t>(zeros->get_int64(i)) : 0});
  return std::make_shared<DequantisedWeight>(*std::move(codes), inner, std::move(channels));
}

/// A weight in floats, by the runtime's kernel where there is one.
Value* dequantised(Rewriter& rewriter, Node& node) {
  std::vector<RunValue> held(node.inputs().size());
  std::vector<const RunValue*> inputs(held.size());
  uint64_t bytes = 1 << 20;  // what the kernel may hold, intermediate forms included
  for (size_t i = 0; i < held.size(); ++i) {
    if (node.inputs()[i] == nullptr) continue;
    const Tensor* tensor = rewriter.constant(node.inputs()[i]);
    if (tensor == nullptr) return nullptr;
    bytes += tensor->bytes().size() * 64;
    held[i] = *tensor;
    inputs[i] = &held[i];
  }
  auto outputs = rewriter.run_node != nullptr
                     ? rewriter.run_node(node, rewriter.model().opset(node.domain()), inputs)
                     : evaluate(rewriter, node, inputs, bytes);
  if (!outputs || !(*outputs)[0].is_tensor()) return nullptr;
  return rewriter.initializer(node.graph(), (*outputs)[0].tensor(), node.output(0)->name());
}

}  // namespace

Result<size_t> dequantise_weights(Rewriter& rewriter) {
  rewriter.refresh();
  std::vector<Node*> found;
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes()) {
      if (!rewriter.is(node, "DequantizeLinear") || node->output(0) == nullptr ||
          node->output(0)->output_uses() != 0)
        continue;
      bool fits = !node->output(0)->uses().empty();
      for (const Use& use : node->output(0)->uses()) {
        constexpr Text kPackers[] = {"Conv", "ConvTranspose", "MatMul", "Gemm",
                                     "LSTM", "GRU",           "RNN"};
        fits = fits && std::any_of(std::begin(kPackers), std::end(kPackers),
                                   [&](Text op) { return rewriter.is(use.node, op); });
      }
      for (const Value* input : node->inputs())
        fits = fits && (input == nullptr || rewriter.is_constant(input));
      if (fits) found.push_back(node);
    }
  });
  size_t count = 0;
  for (Node* node : found) {
    Value& output = *node->output(0);
    Value* floats = nullptr;
    if (auto deferred = deferred_weight(rewriter, *node)) {
      const auto dims = *rewriter.dims(node->input(0));
      floats = rewriter.initializer(node->graph(), DType::kFloat32, dims, std::move(deferred),
                                    output.name());
    } else {
      floats = dequantised(rewriter, *node);
    }
    if (floats == nullptr) continue;
    rewriter.replace(output, *floats);
    rewriter.erase(*node);
    ++count;
  }
  return count;
}

}  // namespace tombolo::passes
