#include "ops/kernels/window.h"

#include <algorithm>
#include <string>

namespace tombolo::ops {

namespace {

// Below this no sum or product of two of these numbers overflows.
constexpr int64_t kLimit = int64_t{1} << 30;

/// An attribute with `count` numbers in [least, kLimit), or `fallback` when it is absent.
Result<Dims> read_numbers(const KernelContext& context, const char* name, size_t count,
                          int64_t least, int64_t fallback) {
  const auto given = context.attributes.get_ints(name);
  Dims numbers;
  if (given.empty()) {
    numbers.resize(static_cast<uint32_t>(count), fallback);
    return numbers;
  }
  if (given.size() != count)
    return context.error(std::string(name) + " has " + std::to_string(given.size()) +
                         " values, needs " + std::to_string(count));
  for (int64_t number : given)
    if (number < least || number >= kLimit)
      return context.error(std::string(name) + " has the value " + std::to_string(number) +
                           ", which is not in [" + std::to_string(least) + ", 2^30)");
  numbers.assign(given);
  return numbers;
}

}  // namespace

Result<Window> read_window(const KernelContext& context, std::span<const int64_t> input,
                           std::span<const int64_t> kernel) {
  Window window;
  const size_t rank = input.size();
  if (rank > kMaxSpatialRank)
    return context.error("the input has " + std::to_string(rank) + " spatial axes, more than " +
                         std::to_string(kMaxSpatialRank));
  for (int64_t dim : input)
    if (dim >= int64_t{1} << 40)
      return context.error("a spatial axis of length " + std::to_string(dim) + " is too long");
  window.input.assign(input);
  TRY(window.kernel, read_numbers(context, "kernel_shape", rank, 1, 0));
  if (!kernel.empty()) {
    if (context.attributes.get_ints("kernel_shape").empty())
      window.kernel.assign(kernel);
    else if (window.kernel != Dims(kernel))
      return context.error("kernel_shape is " + dims_to_string(window.kernel) +
                           ", the weights have " + dims_to_string(kernel));
  }
  for (int64_t dim : window.kernel)
    if (dim < 1 || dim >= kLimit)
      return context.error("the kernel has the shape " + dims_to_string(window.kernel) +
                           ", each axis must be at least 1");
  if (element_count(window.kernel) < 0)
    return context.error("the kernel's shape " + dims_to_string(window.kernel) + " is too large");
  TRY(window.strides, read_numbers(context, "strides", rank, 1, 1));
  TRY(window.dilations, read_numbers(context, "dilations", rank, 1, 1));
  TRY(Dims pads, read_numbers(context, "pads", 2 * rank, 0, 0));
  window.pads_begin.assign(pads.span().subspan(0, rank));
  window.pads_end.assign(pads.span().subspan(rank));
  return window;
}

Result<Window> read_sliding_window(const KernelContext& context, std::span<const int64_t> input,
                                   std::span<const int64_t> kernel, bool ceil_mode) {
  TRY(Window window, read_window(context, input, kernel));
  const Text auto_pad = context.attributes.get_string("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID" && !auto_pad.empty())
    return context.error("auto_pad \"" + std::string(auto_pad) + "\" is not known");
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    const int64_t in = window.input[axis], stride = window.strides[axis];
    int64_t &begin = window.pads_begin[axis], &end = window.pads_end[axis];
    if (same) {
      const int64_t out = in / stride + (in % stride != 0);
      const int64_t total = std::max<int64_t>(0, (out - 1) * stride + window.extent(axis) - in);
      begin = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      end = total - begin;
      window.output.push_back(out);
      continue;
    }
    if (auto_pad == "VALID") begin = end = 0;
    const int64_t room = in + begin + end - window.extent(axis);
    const bool rounds_up = ceil_mode && auto_pad != "VALID";
    const int64_t out = room < 0 && in == 0 ? 0 : window_count(room, stride, in + begin, rounds_up);
    if (out < 1 && in != 0)
      return context.error("the kernel reaches over " + std::to_string(window.extent(axis)) +
                           " elements of spatial axis " + std::to_string(axis) +
                           ", which has only " + std::to_string(in + begin + end) +
                           " with padding");
    window.output.push_back(out);
  }
  return window;
}

}  // namespace tombolo::ops
