#pragma once

// Reading the small arguments that many operators share: axes, shapes, scalars, element types.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/kernel_context.h"
#include "ops/kernels/compute.h"

namespace tombolo::ops {

/// Integers from input `index` or, where that is absent, from the attribute that older versions
/// had in its place. Nothing when both are absent.
Result<std::optional<std::vector<int64_t>>> optional_ints(const KernelContext& context,
                                                          size_t index, const char* attribute);
/// The same; absence is an error.
Result<std::vector<int64_t>> required_ints(const KernelContext& context, size_t index,
                                           const char* attribute);

/// Input `index` as one integer (a tensor of one element).
Result<int64_t> scalar_int(const KernelContext& context, size_t index, const char* what);

/// The element type that an integer attribute names; `fallback` when it is absent.
Result<DType> dtype_attribute(const KernelContext& context, const char* name, DType fallback);

/// Axes made non-negative, each in range and none twice, in the order given.
Result<std::vector<int64_t>> normalize_axes(const std::vector<int64_t>& axes, int64_t rank);

/// `index` in [-length, length) made non-negative, or an error that names it.
Result<int64_t> checked_index(int64_t index, int64_t length, int64_t axis);

/// Refuses index tensors that are not int32 or int64.
Status check_index_type(const Tensor& indices);

/// The value of a tensor attribute (aligned), or nothing when absent.
Result<std::optional<Tensor>> tensor_attribute(const KernelContext& context, const char* name);

/// Counts through all indices of a shape in row-major order.
struct Odometer {
  Dims dims, index;
  explicit Odometer(std::span<const int64_t> shape);
  bool next();  ///< false after the last one
  /// Position under strides.
  int64_t dot(std::span<const int64_t> strides) const;
};

}  // namespace tombolo::ops
