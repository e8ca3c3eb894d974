#pragma once

// What Adam, Adagrad and Momentum share: inputs R, T, then for each of n tensors its value, its
// gradient and its states, all n of a kind together; outputs the new values, then the new states.

#include <array>

#include "ops/kernels/compute.h"

namespace tombolo::ops {

/// Calls step(element of each of the In kinds, T, R) -> the Out new elements, for every element.
template <size_t In, size_t Out, typename Step>
Status run_optimizer(KernelContext& context, Step step) {
  const size_t given = context.input_count();
  if (given < 2 + In || (given - 2) % In != 0)
    return context.error("takes R, T and " + std::to_string(In) + " inputs for each tensor, has " +
                         std::to_string(given));
  TRY(Tensor rate, optional_as<double>(context, 0));
  TRY(Tensor count, optional_as<double>(context, 1));
  if (absent(rate) || absent(count) || rate.size() != 1 || count.size() != 1)
    return context.error("R and T must be scalars");
  const size_t tensors = (given - 2) / In;
  for (size_t n = 0; n < tensors; ++n) {
    Tensor in[In], out[Out];
    TRY(const Tensor* value, context.input(2 + n));
    for (size_t i = 0; i < In; ++i) {
      TRY(const Tensor* tensor, context.input(2 + i * tensors + n));
      CHECK_OK(check_dims(context, "an input of the same group", *tensor, value->dims()));
      TRY(in[i], as<double>(context, *tensor));
    }
    for (Tensor& tensor : out) {
      TRY(tensor, context.allocate(DType::kFloat64, value->dims()));
    }
    for (int64_t i = 0; i < value->size(); ++i) {
      std::array<double, In> x;
      for (size_t k = 0; k < In; ++k) x[k] = in[k].template data<double>()[i];
      const std::array<double, Out> y = step(x, count.data<double>()[0], rate.data<double>()[0]);
      for (size_t k = 0; k < Out; ++k) out[k].template data<double>()[i] = y[k];
    }
    for (size_t k = 0; k < Out; ++k)
      CHECK_OK(give(context, k * tensors + n, value->dtype(), std::move(out[k])));
  }
  return ok();
}

}  // namespace tombolo::ops
