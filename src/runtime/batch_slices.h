#pragma once

// Large batches go through stretches of nodes a few images at a time: what one node writes is still
// in a cache when the next one reads it, and takes that much less memory. A batch of images of
// 224 x 224 has 40 MB behind a single convolution, which otherwise goes to memory and back.

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/inferred_shapes.h"
#include "runtime/plan.h"

namespace tombolo {

/// Bytes of images that a node is to take at a time, by the caches of a processor.
int64_t batch_room(int threads);

/// The images in these inputs: the first dimension, where all of them share it; else 0.
int64_t batch_of(const std::vector<RunValue>& inputs);

/// The plan with such stretches, each one node (NodePlan::slice), whose nodes read and write at
/// most `room` bytes at a time, if that are not fewer images than one. Null where no node has more
/// than twice that of the whole batch. What it refers to belongs to `plan`, which must outlive it.
std::unique_ptr<GraphPlan> slice_batch(const GraphPlan& plan, const InferredShapes& shapes,
                                       int64_t batch, int64_t room);

}  // namespace tombolo
