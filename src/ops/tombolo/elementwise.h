#pragma once

// What a node of ai.tombolo Elementwise computes: a list of steps, each one operator of float
// numbers on inputs of the node and on results of steps before it. The last one is the output.
//
//   ops     names of steps, by spaces: those of the table below
//   args    two a step: number of an input, or (from `inputs` on) of an earlier step; -1 for none
//   params  two a step: attributes of the operator, 0 where it has none

#include <string>
#include <string_view>
#include <vector>

#include "ops/attributes.h"

namespace tombolo::ops {

struct ElementwiseOp {
  std::string_view name;  ///< that of the operator; "GeluTanh" is Gelu in its other form
  int operands = 1;
  Text first{}, second{};  ///< attributes that are parameters; of Clip: the bounds, inputs 1 and 2
  float first_default = 0, second_default = 0;
};

/// Null when it is none of the table.
const ElementwiseOp* find_elementwise(std::string_view name);

struct ElementwiseStep {
  const ElementwiseOp* op;
  int args[2];
  float params[2];
};

inline constexpr int kMaxElementwiseInputs = 128;

/// The steps of a node with that many inputs; empty when it says anything that cannot be.
std::vector<ElementwiseStep> read_elementwise(const AttributeReader& attributes, size_t inputs);

}  // namespace tombolo::ops
