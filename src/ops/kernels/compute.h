#pragma once

// Kernels that compute in float or double whatever the element type: inputs are converted (nothing
// is copied when they have the type already), the result is rounded once into the output.

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "ir/tensor.h"
#include "ops/kernel_context.h"

namespace tombolo::ops {

template <typename T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::kFloat32;
  if constexpr (std::is_same_v<T, double>) return DType::kFloat64;
  if constexpr (std::is_same_v<T, int8_t>) return DType::kInt8;
  if constexpr (std::is_same_v<T, uint8_t>) return DType::kUInt8;
  if constexpr (std::is_same_v<T, int16_t>) return DType::kInt16;
  if constexpr (std::is_same_v<T, uint16_t>) return DType::kUInt16;
  if constexpr (std::is_same_v<T, int32_t>) return DType::kInt32;
  if constexpr (std::is_same_v<T, uint32_t>) return DType::kUInt32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::kInt64;
  if constexpr (std::is_same_v<T, uint64_t>) return DType::kUInt64;
  return DType::kUndefined;
}

/// The elements as `to`: the tensor itself when it has that type, else a converted tensor. Floats
/// round to nearest even; integers wrap; floats to integers truncate and saturate. An error for
/// strings and complex numbers.
Result<Tensor> converted(const KernelContext& context, const Tensor& tensor, DType to);

template <typename T>
Result<Tensor> as(const KernelContext& context, const Tensor& tensor) {
  return converted(context, tensor, dtype_of<T>());
}
/// Input `index` as T; a Tensor of kUndefined when the input is absent.
template <typename T>
Result<Tensor> optional_as(const KernelContext& context, size_t index) {
  TRY(const Tensor* tensor, context.optional_input(index));
  if (tensor == nullptr) return Tensor();
  return as<T>(context, *tensor);
}
inline bool absent(const Tensor& tensor) { return tensor.dtype() == DType::kUndefined; }

/// Makes `values`, rounded to `dtype`, output `index`. Nothing when the output is not wanted.
Status give(KernelContext& context, size_t index, DType dtype, Tensor values);

/// Calls run.template operator()<T>() with double for double and float for the other floats.
template <typename Run>
Status with_float(const KernelContext& context, const Tensor& tensor, Run&& run) {
  if (!is_float(tensor.dtype()))
    return context.error("the input must be a tensor of floats, is " + to_string(tensor));
  if (tensor.dtype() == DType::kFloat64) return run.template operator()<double>();
  return run.template operator()<float>();
}

/// An error unless the shapes are equal; `what` names the tensor.
Status check_dims(const KernelContext& context, const char* what, const Tensor& tensor,
                  std::span<const int64_t> dims);

/// The tensor (of type T) repeated to the shape `dims`, as numpy broadcasts; itself when it has
/// that shape. An error that names `what` when it does not broadcast to it.
template <typename T>
Result<Tensor> expanded(const KernelContext& context, const char* what, const Tensor& tensor,
                        std::span<const int64_t> dims) {
  if (tensor.dims() == Dims(dims)) return tensor;
  Dims strides;
  strides.resize(static_cast<uint32_t>(dims.size()));
  bool fits = tensor.rank() <= dims.size();
  int64_t stride = 1;
  for (size_t i = 1; fits && i <= tensor.rank(); ++i) {
    const int64_t own = tensor.dim(tensor.rank() - i);
    fits = own == 1 || own == dims[dims.size() - i];
    strides[dims.size() - i] = own == 1 ? 0 : stride;
    stride *= own;
  }
  if (!fits)
    return context.error(std::string(what) + " does not broadcast to the shape " +
                         dims_to_string(dims) + ", is " + to_string(tensor));
  TRY(Tensor result, context.allocate(tensor.dtype(), dims));
  Dims at;
  at.resize(static_cast<uint32_t>(dims.size()));
  int64_t from = 0;
  for (int64_t i = 0; i < result.size(); ++i) {
    result.data<T>()[i] = tensor.data<T>()[from];
    for (size_t axis = dims.size(); axis-- > 0;) {
      from += strides[axis];
      if (++at[axis] < dims[axis]) break;
      from -= strides[axis] * dims[axis];
      at[axis] = 0;
    }
  }
  return result;
}

/// The product of dims[begin, end). Meaningless (it wraps) only where the tensor has no elements.
inline int64_t product(std::span<const int64_t> dims, size_t begin, size_t end) {
  uint64_t count = 1;
  for (size_t i = begin; i < end; ++i) count *= static_cast<uint64_t>(dims[i]);
  return static_cast<int64_t>(count);
}

}  // namespace tombolo::ops
