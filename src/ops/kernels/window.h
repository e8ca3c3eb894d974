#pragma once

// The sliding window of convolutions and pools: attributes read and checked, the output's size.

#include <algorithm>
#include <cstdint>
#include <span>

#include "ir/tensor.h"
#include "ops/kernel_context.h"

namespace tombolo::ops {

/// All lists have one entry a spatial axis. `pads_end` can be smaller or larger than what was asked
/// for where the output's size was rounded; the padded region of a window is what lies outside
/// [0, input).
struct Window {
  Dims input, kernel, strides, dilations, pads_begin, pads_end, output;

  size_t rank() const { return input.size(); }
  int64_t input_size() const { return element_count(input); }
  int64_t kernel_size() const { return element_count(kernel); }
  int64_t output_size() const { return element_count(output); }
  int64_t extent(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
};

/// How many windows there are along an axis, each a stride behind the last: `room` is what the
/// padded axis is longer than one window (negative: shorter), `reach` where the padding at its end
/// begins. `rounds_up`: one more that goes beyond the end, unless it would start in that padding.
inline int64_t window_count(int64_t room, int64_t stride, int64_t reach, bool rounds_up) {
  const int64_t rest = (room % stride + stride) % stride, whole = (room - rest) / stride + 1;
  return std::max<int64_t>(0, whole + (rounds_up && rest != 0 && whole * stride < reach));
}

/// Reads kernel_shape, strides, dilations, pads, auto_pad. `input` are the spatial axes of X;
/// `kernel` those of W (the attribute kernel_shape must agree with them), empty to take the
/// attribute alone. Everything is checked; no product of what is returned overflows but
/// output_size(), which allocation checks. `output` is left empty.
Result<Window> read_window(const KernelContext& context, std::span<const int64_t> input,
                           std::span<const int64_t> kernel);
/// The same for what goes down in size (Conv, pools): auto_pad resolved into pads, output set.
/// `ceil_mode` rounds up, but a window never starts in the padding at the end.
Result<Window> read_sliding_window(const KernelContext& context, std::span<const int64_t> input,
                                   std::span<const int64_t> kernel, bool ceil_mode);

/// Walks a box of indices in row-major order.
class BoxIndex {
 public:
  explicit BoxIndex(std::span<const int64_t> dims) : dims_(dims) {
    at_.resize(static_cast<uint32_t>(dims.size()));
  }
  /// At the box's element number `flat`.
  BoxIndex(std::span<const int64_t> dims, int64_t flat) : BoxIndex(dims) { seek(flat); }
  void seek(int64_t flat) {
    for (size_t axis = dims_.size(); axis-- > 0; flat /= dims_[axis])
      at_[axis] = flat % dims_[axis];
  }
  void next() {
    for (size_t axis = dims_.size(); axis-- > 0;) {
      if (++at_[axis] < dims_[axis]) return;
      at_[axis] = 0;
    }
  }
  int64_t operator[](size_t axis) const { return at_[axis]; }

 private:
  std::span<const int64_t> dims_;
  Dims at_;
};

/// The part of a window that lies inside the input, along one axis: kernel positions
/// [first, last), input positions start + position * dilation.
struct Reach {
  int64_t start, first, last;
};
inline Reach reach(const Window& window, size_t axis, int64_t output) {
  const int64_t start = output * window.strides[axis] - window.pads_begin[axis];
  const int64_t step = window.dilations[axis], kernel = window.kernel[axis];
  const int64_t first = start >= 0 ? 0 : (-start + step - 1) / step;
  const int64_t room = window.input[axis] - start;
  const int64_t last = room <= 0 ? 0 : (room + step - 1) / step;
  return {start, first < kernel ? first : kernel, last < kernel ? last : kernel};
}

/// Calls visit(input offset, kernel offset) for each element of the window at output index `at`
/// that lies inside the input, in row-major order.
template <typename Visit>
void for_each_inside(const Window& window, const BoxIndex& at, Visit&& visit) {
  const size_t rank = window.rank();
  Reach reaches[16];
  int64_t position[16];
  for (size_t axis = 0; axis < rank; ++axis) {
    reaches[axis] = reach(window, axis, at[axis]);
    if (reaches[axis].first >= reaches[axis].last) return;
    position[axis] = reaches[axis].first;
  }
  while (true) {
    int64_t input = 0, kernel = 0;
    for (size_t axis = 0; axis < rank; ++axis) {
      input = input * window.input[axis] + reaches[axis].start +
              position[axis] * window.dilations[axis];
      kernel = kernel * window.kernel[axis] + position[axis];
    }
    if (rank == 0) return visit(input, kernel);
    const size_t inner = rank - 1;
    for (; position[inner] < reaches[inner].last; ++position[inner]) {
      visit(input, kernel);
      input += window.dilations[inner];
      ++kernel;
    }
    size_t axis = inner;
    while (true) {
      position[axis] = reaches[axis].first;
      if (axis-- == 0) return;
      if (++position[axis] < reaches[axis].last) break;
    }
  }
}

inline constexpr size_t kMaxSpatialRank = 16;

}  // namespace tombolo::ops
