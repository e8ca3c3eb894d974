#pragma once

// Whether a node can be read as an older version of its operator, by the tables alone: numbers of
// inputs and outputs, attributes, element types. Changes of meaning are the business of steps.

#include <optional>
#include <string>

#include "analysis/infer.h"
#include "ops/registry.h"

namespace tombolo {

/// What stands against it.
struct Misfit {
  std::string why;
  /// The type variable (or fixed type) of the input or output whose element type is not allowed;
  /// kUndefined when something else is in the way.
  DType dtype = DType::kUndefined;
};

/// The attribute says no more than its default does.
bool is_default(const Attribute& attribute, const AttrSpec& spec);

/// Nothing when `older` has the node's inputs, outputs, attributes and types. Attributes that only
/// `newer` has are no obstacle where they say the default.
std::optional<Misfit> misfit(const Node& node, const OpVersion& older, const OpVersion& newer,
                             const Inference& inference);

/// Removes attributes that `older` does not have, and spells out those whose default is another
/// one there. Only for a node that fits.
void adopt(Node& node, const OpVersion& older, const OpVersion& newer);

/// Element type of a tensor, of the tensors of a sequence or optional; kUndefined when unknown.
DType element_type(const InferType* type);

}  // namespace tombolo
