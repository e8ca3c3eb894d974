#include "ops/kernels/quantize.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace tombolo::ops {

Result<Granularity> read_granularity(const KernelContext& context, const Tensor& x,
                                     const Tensor& scale) {
  Granularity result;
  if (scale.size() == 1 && scale.rank() <= 1) return result;  // per tensor
  const int64_t block = context.attributes.get_int("block_size", 0);
  if (block < 0)
    return context.error("block_size is " + std::to_string(block) + ", must not be negative");
  int64_t given = context.attributes.get_int("axis", 1);
  // An axis means nothing to a vector; its default would be out of range.
  if (x.rank() == 1 && given == 1) given = 0;
  TRY(const int64_t signed_axis, normalize_axis(given, static_cast<int64_t>(x.rank())));
  const auto axis = static_cast<size_t>(signed_axis);
  result.length = x.dim(axis);
  result.inner = product(x.dims(), axis + 1, x.rank());
  if (block == 0) {
    if (scale.rank() != 1 || scale.dim(0) != x.dim(axis))
      return context.error("the scale must be a scalar or have " + std::to_string(x.dim(axis)) +
                           " elements, is " + to_string(scale));
    result.block_stride = 1;
    return result;
  }
  Dims expected = x.dims();
  expected[axis] = x.dim(axis) / block + (x.dim(axis) % block != 0);
  CHECK_OK(check_dims(context, "the scale", scale, expected));
  result.block = block;
  result.block_stride = result.inner;
  result.inner_stride = 1;
  result.outer_stride = x.size() == 0 ? 0 : expected[axis] * result.inner;
  return result;
}

IntegerRange range_of(DType type) {
  const unsigned bits = bits_of(type);
  if (is_signed_integer(type)) return {-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
  return {0, (int64_t{1} << bits) - 1};
}

int64_t quantized(double value, int64_t zero_point, IntegerRange range) {
  if (value != value) value = 0;
  // Beyond 2^40 every type is saturated; the limit keeps the sum within int64.
  const double rounded = std::nearbyint(std::clamp(value, -0x1p40, 0x1p40));
  return std::clamp(static_cast<int64_t>(rounded) + zero_point, range.least, range.greatest);
}

Result<Tensor> without_zero_point(const KernelContext& context, const Tensor& tensor, size_t index,
                                  size_t axis) {
  if (!is_integer(tensor.dtype()) || bits_of(tensor.dtype()) > 16)
    return context.error("a quantised input must be of small integers, is " + to_string(tensor));
  TRY(Tensor result, context.allocate(DType::kInt32, tensor.dims()));
  TRY(const Tensor* zero, context.optional_input(index));
  if (zero != nullptr && (!is_integer(zero->dtype()) || bits_of(zero->dtype()) > 16))
    return context.error("a zero point must be of small integers, is " + to_string(*zero));
  int64_t length = 1, inner = 1;
  if (zero != nullptr && zero->size() != 1) {
    if (axis >= tensor.rank()) return context.error("the zero point must be a scalar");
    length = tensor.dim(axis);
    inner = product(tensor.dims(), axis + 1, tensor.rank());
    // Zero points of batched matrices: [..., 1, n] or [..., m, 1] with the batch's shape.
    Dims per_batch = tensor.dims();
    for (size_t i = tensor.rank() - std::min<size_t>(2, tensor.rank()); i < tensor.rank(); ++i)
      if (i != axis) per_batch[i] = 1;
    Dims once;
    once.resize(static_cast<uint32_t>(tensor.rank()), 1);
    once[axis] = length;
    if (zero->dims() == per_batch && zero->size() != length) {
      const int64_t matrix = product(tensor.dims(), tensor.rank() - 2, tensor.rank());
      for (int64_t i = 0; i < tensor.size(); ++i)
        result.data<int32_t>()[i] = static_cast<int32_t>(
            tensor.get_int64(i) - zero->get_int64(i / matrix * length + i / inner % length));
      return result;
    }
    if (zero->dims() != once) CHECK_OK(check_dims(context, "the zero point", *zero, {{length}}));
  }
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const int64_t offset =
        zero == nullptr ? 0 : zero->get_int64(zero->size() == 1 ? 0 : i / inner % length);
    result.data<int32_t>()[i] = static_cast<int32_t>(tensor.get_int64(i) - offset);
  }
  return result;
}

Result<const Tensor*> one_or_each(const KernelContext& context, size_t index, const char* name,
                                  int64_t count) {
  TRY(const Tensor* tensor, context.input(index));
  if (tensor->size() != 1 && (tensor->rank() != 1 || tensor->dim(0) != count))
    return context.error(std::string(name) + " must have one element" +
                         (count == 1 ? "" : " or " + std::to_string(count)) + ", is " +
                         to_string(*tensor));
  return tensor;
}

}  // namespace tombolo::ops
