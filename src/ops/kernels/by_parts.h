#pragma once

// Kernels of weighted sums, for element types that are no numbers: complex ones are computed by
// their parts, text is only moved.

#include "ops/kernels/compute.h"

namespace tombolo::ops {

/// Calls run(tensor of numbers), which gives output 0 in the same type, on x itself, on its real
/// and imaginary parts, or on the numbers of its elements: text lands where one element alone
/// counts, is empty where none does, and an error where several do (run on ones tells).
template <typename Run>
Status by_parts(KernelContext& context, const Tensor& x, Run&& run) {
  if (is_complex(x.dtype())) {
    const DType half = x.dtype() == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64;
    Tensor parts[2];
    for (int k = 0; k < 2; ++k) {
      TRY(Tensor part, context.allocate(half, x.dims()));
      for (int64_t i = 0; i < x.size(); ++i)
        if (half == DType::kFloat32)
          part.data<float>()[i] = x.data<float>()[2 * i + k];
        else
          part.data<double>()[i] = x.data<double>()[2 * i + k];
      CHECK_OK(run(part));
      parts[k] = context.outputs[0].tensor();
    }
    TRY(Tensor * y, context.output(0, x.dtype(), parts[0].dims()));
    for (int64_t i = 0; i < parts[0].size(); ++i)
      for (int k = 0; k < 2; ++k)
        if (half == DType::kFloat32)
          y->data<float>()[2 * i + k] = parts[k].data<float>()[i];
        else
          y->data<double>()[2 * i + k] = parts[k].data<double>()[i];
    return ok();
  }
  if (!x.is_string()) return run(x);
  TRY(Tensor numbers, context.allocate(DType::kInt64, x.dims()));
  for (int64_t i = 0; i < x.size(); ++i) numbers.data<int64_t>()[i] = 1;
  CHECK_OK(run(numbers));
  const Tensor counts = context.outputs[0].tensor();
  TRY(Tensor places, context.allocate(DType::kInt64, x.dims()));
  for (int64_t i = 0; i < x.size(); ++i) places.data<int64_t>()[i] = i;
  CHECK_OK(run(places));
  const Tensor from = context.outputs[0].tensor();
  TRY(Tensor * y, context.output(0, DType::kString, counts.dims()));
  for (int64_t i = 0; i < counts.size(); ++i) {
    if (counts.data<int64_t>()[i] > 1)
      return context.error("element " + std::to_string(i) + " would be a sum of texts");
    if (counts.data<int64_t>()[i] == 1)
      y->strings()[static_cast<size_t>(i)] =
          x.strings()[static_cast<size_t>(from.data<int64_t>()[i])];
  }
  return ok();
}

}  // namespace tombolo::ops
