#pragma once

// Reading a node's attributes: typed, with defaults, and with references to the attributes of the
// function that is being called resolved.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace tombolo {

/// The attributes given at a function call, by name: what ref_attr_name inside the body takes.
struct AttributeBinding {
  std::vector<const Attribute*> given;      ///< at the call; their names are the function's
  std::span<const Attribute> defaults;      ///< FunctionProto.attribute_proto
  const AttributeBinding* outer = nullptr;  ///< when the call itself stands in a function's body
  const Attribute* find(Text name) const;
};

class AttributeReader {
 public:
  AttributeReader(const Node& node, const AttributeBinding* binding = nullptr)
      : node_(&node), binding_(binding) {}

  /// The attribute, references resolved; null when absent (or bound to nothing).
  const Attribute* find(Text name) const;
  bool has(Text name) const { return find(name) != nullptr; }
  int64_t get_int(Text name, int64_t fallback) const;
  std::optional<int64_t> get_int(Text name) const;
  float get_float(Text name, float fallback) const;
  Text get_string(Text name, Text fallback) const;
  /// Empty when absent; has() tells the difference.
  std::span<const int64_t> get_ints(Text name) const;
  std::span<const float> get_floats(Text name) const;
  std::span<const Text> get_strings(Text name) const;
  const Constant* get_tensor(Text name) const;
  const Graph* get_graph(Text name) const;
  const Type* get_type(Text name) const;

 private:
  const Node* node_;
  const AttributeBinding* binding_;
};

}  // namespace tombolo
