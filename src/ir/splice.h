#pragma once

// Puts a copy of one graph's nodes into another: the body of a function in place of its call, a
// branch in place of an If.

#include <span>
#include <string_view>
#include <vector>

#include "ir/model.h"

namespace tombolo {

/// Gives names that no value of the model has.
class NameSource {
 public:
  virtual ~NameSource() = default;
  virtual Text fresh_name(std::string_view hint) = 0;
};

/// Copies the nodes (and initialisers) of `body` before `before`, with `inputs` for its graph
/// inputs (null: absent), under new names. Gives what the body's outputs became; null where an
/// output is an absent input. `made` (if given) gets the copied nodes.
std::vector<Value*> splice(const StoragePtr& storage, NameSource& names, const Graph& body,
                           std::span<Value* const> inputs, Node& before,
                           std::vector<Node*>* made = nullptr);

/// Attributes of `node` (and of nodes inside it) that refer to the function's own take what the
/// call gives, else the default.
void bind_attributes(const StoragePtr& storage, Node& node, const Node& call,
                     const Function& function);

}  // namespace tombolo
