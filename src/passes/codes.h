#pragma once

// What QuantizeLinear and DequantizeLinear say of their codes.

#include <cmath>
#include <optional>

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

}  // namespace tombolo::passes
