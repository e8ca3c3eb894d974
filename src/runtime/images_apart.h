#pragma once

// Which operators compute each image of a batch (entry of the first axis) from that image alone.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/plan.h"

namespace tombolo {

/// A node whose inputs are, some of them, batches.
struct BatchedNode {
  struct Input {
    bool present = false;
    bool images = false;  ///< a batch, whose images may be computed one after the other
    const Tensor* constant = nullptr;
    Dims dims;
  };
  const Node& node;
  std::vector<Input> inputs;
  Dims output;  ///< dimensions of output 0
};

/// Whether part of the batch gives that part of the outputs, for a batch of any size. All outputs
/// are batches then.
bool keeps_images_apart(const BatchedNode& node);

}  // namespace tombolo
