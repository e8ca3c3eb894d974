#pragma once

// What QuantizeLinear and DequantizeLinear say of their codes.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>

#include "ops/attributes.h"
#include "passes/rewriter.h"

namespace tombolo::passes {

/// Neither blocks nor another precision of the scale.
inline bool is_plain_scale(const Node& node) {
  const AttributeReader attributes(node);
  return attributes.get_int("block_size", 0) == 0 && attributes.get_int("precision", 0) == 0;
}

/// The scale, where it is one constant float above zero for all codes.
inline std::optional<double> one_scale(const Rewriter& rewriter, const Node& node) {
  const auto scale = rewriter.scalar(node.input(1));
  if (!is_plain_scale(node) || !scale || !(*scale > 0) || !std::isfinite(*scale) ||
      rewriter.dtype(node.input(1)) != DType::kFloat32 ||
      rewriter.rank(node.input(1)).value_or(9) > 1)
    return std::nullopt;
  return scale;
}

/// Gives elements of its first input, whatever they are; the others say which.
inline bool moves_data(const Rewriter& rewriter, const Node& node) {
  constexpr std::string_view kMoves[] = {"Reshape",   "Flatten",  "Squeeze",      "Unsqueeze",
                                         "Transpose", "Slice",    "Gather",       "Expand",
                                         "Tile",      "Identity", "DepthToSpace", "SpaceToDepth"};
  return std::find(std::begin(kMoves), std::end(kMoves), node.op_type()) != std::end(kMoves) &&
         rewriter.is(&node, node.op_type()) && node.outputs().size() == 1;
}

/// The sum of what change(node) gives for each QuantizeLinear with a result.
template <typename Change>
size_t change_each_quantise(Rewriter& rewriter, Change change) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes())
      if (rewriter.is(node, "QuantizeLinear") && node->outputs().size() == 1 &&
          node->output(0) != nullptr)
        count += change(*node);
  });
  return count;
}

}  // namespace tombolo::passes
