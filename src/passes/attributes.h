#pragma once

// Attributes from one node to another, and what they say.

#include <algorithm>
#include <initializer_list>
#include <span>

#include "ir/graph.h"

namespace tombolo::passes {

/// Copies a number, a text, or a list of either; false for what is none, and for a reference to an
/// attribute of the function around the node.
inline bool copy_attribute(const Attribute& from, Node& to) {
  if (from.is_reference()) return false;
  if (from.i() != nullptr)
    to.set_int(from.name, *from.i());
  else if (from.f() != nullptr)
    to.set_float(from.name, *from.f());
  else if (from.s() != nullptr)
    to.set_string(from.name, *from.s());
  else if (from.type == AttrType::kInts)
    to.set_ints(from.name, from.ints());
  else if (from.type == AttrType::kFloats)
    to.set_floats(from.name, from.floats());
  else if (from.type == AttrType::kStrings)
    to.set_attribute(Attribute(from.name, from.type,
                               std::vector<Text>(from.strings().begin(), from.strings().end())));
  else
    return false;
  return true;
}

/// All that copy_attribute takes, but those named.
inline void copy_attributes(const Node& from, Node& to, std::initializer_list<Text> skip = {}) {
  for (const Attribute& attribute : from.attributes())
    if (std::find(skip.begin(), skip.end(), attribute.name) == skip.end())
      copy_attribute(attribute, to);
}

/// Whether an order of axes exchanges the last two and no others.
inline bool turns_matrices(std::span<const int64_t> perm) {
  const auto rank = static_cast<int64_t>(perm.size());
  if (rank < 2 || perm[perm.size() - 1] != rank - 2 || perm[perm.size() - 2] != rank - 1)
    return false;
  for (int64_t i = 0; i + 2 < rank; ++i)
    if (perm[static_cast<size_t>(i)] != i) return false;
  return true;
}

}  // namespace tombolo::passes
