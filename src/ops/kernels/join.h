#pragma once

// Putting tensors together and taking slices out, for Concat, sequences, Loop and Scan.

#include <span>
#include <vector>

#include "ops/kernel_context.h"

namespace tombolo::ops {

/// The tensors one after another along `axis`. At least one; equal types and other dims.
Result<Tensor> concatenate(const KernelContext& context, std::span<const Tensor* const> inputs,
                           int64_t axis);

/// The tensors side by side along a new axis, of equal type and shape, in order or `reversed`.
/// At least one.
Result<Tensor> stack(const KernelContext& context, std::span<const Tensor> inputs, int64_t axis,
                     bool reversed = false);

/// What comes one after another, side by side along a new axis. It is copied as it comes where it
/// can be, so that the memory of one is free for the next.
class Stack {
 public:
  /// `expected` is how many will come, -1 where nobody knows; there may be fewer.
  Stack(int64_t axis, int64_t expected, bool reversed = false)
      : axis_(axis), expected_(expected), reversed_(reversed) {}

  Status add(const KernelContext& context, const Tensor& item);
  bool empty() const { return count_ == 0; }
  /// All of them. At least one.
  Result<Tensor> take(const KernelContext& context);

 private:
  int64_t axis_, expected_;
  bool reversed_;
  int64_t count_ = 0;
  Dims dims_;                  ///< of one
  Tensor joined_;              ///< along the outermost axis, with room for more
  std::vector<Tensor> items_;  ///< of others
};

/// Elements [begin, begin + length) along `axis`, which is in range.
Result<Tensor> slice_along(const KernelContext& context, const Tensor& tensor, size_t axis,
                           int64_t begin, int64_t length);

/// Element `index` along `axis`, without that axis. Both are in range. It shares the buffer where
/// it is one piece of it.
Result<Tensor> element_along(const KernelContext& context, const Tensor& tensor, size_t axis,
                             int64_t index);

}  // namespace tombolo::ops
