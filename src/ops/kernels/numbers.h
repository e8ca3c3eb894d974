#pragma once

// Choosing the type to compute in, for kernels that look at whole tensors.

#include "ops/kernels/compute.h"
#include "ops/kernels/elementwise.h"

namespace tombolo::ops {

/// Calls run.template operator()<T>(tensor) with the tensor as T: float, double, int64_t or
/// uint64_t, whichever holds its elements exactly. Refuses strings and complex numbers.
template <typename Run>
Status with_numbers(const KernelContext& context, const Tensor& tensor, Run&& run) {
  auto go = [&]<typename T>(T) -> Status {
    TRY(const Tensor numbers, as<T>(context, tensor));
    return run.template operator()<T>(numbers);
  };
  switch (compute_type(tensor.dtype())) {
    case Compute::kFloat:
      return go(float{});
    case Compute::kDouble:
      return go(double{});
    case Compute::kInt64:
      return go(int64_t{});
    case Compute::kUInt64:
      return go(uint64_t{});
    case Compute::kNone:
      break;
  }
  return unsupported("numbers are needed, not " + to_string(tensor));
}

/// A total order: NaN is greater than all numbers and equal to itself.
template <typename T>
bool total_less(T a, T b) {
  return a < b || (a == a && b != b);
}

}  // namespace tombolo::ops
