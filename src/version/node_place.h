#pragma once

// How messages of conversions name a node.

#include <string>

#include "ir/graph.h"

namespace tombolo {

/// node "conv1" (Conv)
inline std::string node_place(const Node& node) {
  std::string text = "node";
  if (!node.name().empty()) text += " \"" + std::string(node.name()) + "\"";
  return text + " (" + std::string(node.op_type()) + ")";
}

}  // namespace tombolo
