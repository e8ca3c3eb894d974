#pragma once

// Where in a model something stands: a chain kept on the stack while walking, written out only when
// there is something to report: graph > node "conv1" (Conv, #12) > input W.

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace tombolo {

struct Place {
  enum class Kind : uint8_t { kText, kNamed, kNode };
  const Place* outer = nullptr;
  Kind kind = Kind::kText;
  std::string_view word;  ///< "graph", "function", "then_branch"
  Text name{};            ///< kNamed: in quotes behind the word
  const Node* node = nullptr;
  int64_t index = 0;  ///< kNode: the node's position in its graph, from 0

  static Place text(std::string_view word, const Place* outer = nullptr) {
    return {outer, Kind::kText, word, {}, nullptr, 0};
  }
  static Place named(std::string_view word, Text name, const Place* outer = nullptr) {
    return {outer, Kind::kNamed, word, name, nullptr, 0};
  }
  static Place of_node(const Node& node, int64_t index, const Place* outer) {
    return {outer, Kind::kNode, {}, {}, &node, index};
  }
};

std::string to_string(const Place& place);
/// Names come from files: control characters and overlong names are made printable.
std::string quote_name(Text name);

}  // namespace tombolo
