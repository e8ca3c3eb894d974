#pragma once

// Numpy broadcasting of any number of tensors, as a walk over rows.

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "ir/tensor.h"

namespace tombolo::ops {

/// The shape that two shapes broadcast to, or an error that names both.
Result<Dims> broadcast_dims(std::span<const int64_t> a, std::span<const int64_t> b);

/// Inputs under a common output shape. Neighbouring axes are merged where every input allows it,
/// so that equal shapes and scalars become a single row.
struct Broadcast {
  Dims output;                 ///< the common shape
  int64_t count = 1;           ///< its number of elements
  int64_t inner = 1;           ///< length of a row
  std::vector<uint8_t> steps;  ///< per input: 1 when it advances along a row, 0 when it stands
  Dims outer;                  ///< merged axes but the last
  std::vector<Dims> strides;   ///< per input, in elements, for `outer`

  static Result<Broadcast> of(std::span<const Tensor* const> inputs);
  /// As of(), with the output's shape given: every input must broadcast to it.
  static Result<Broadcast> to(std::span<const int64_t> output,
                              std::span<const Tensor* const> inputs);
};

/// Where each input stands while output elements [begin, end) are walked in runs within rows.
class BroadcastCursor {
 public:
  BroadcastCursor(const Broadcast& broadcast, int64_t begin, int64_t end);

  bool done() const { return at_ >= end_; }
  int64_t at() const { return at_; }  ///< output element
  /// Elements until the row, or the range, ends; at most `limit`.
  int64_t run(int64_t limit) const;
  int64_t offset(size_t input) const {
    return offsets_[input] + column_ * broadcast_->steps[input];
  }
  void advance(int64_t count);

 private:
  const Broadcast* broadcast_;
  int64_t at_, end_, column_;
  Dims index_;
  std::vector<int64_t> offsets_;
};

}  // namespace tombolo::ops
