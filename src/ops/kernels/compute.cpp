#include "ops/kernels/compute.h"

#include "base/float_formats.h"

namespace tombolo::ops {

Result<Tensor> converted(const KernelContext& context, const Tensor& tensor, DType to) {
  if (tensor.dtype() == to) return tensor;
  const DType from = tensor.dtype();
  if (is_string(from) || is_complex(from) || from == DType::kUndefined)
    return context.error("cannot compute with " + to_string(tensor) + " here");
  TRY(Tensor result, context.allocate(to, tensor.dims()));
  const int64_t count = tensor.size();
  if (count == 0) return result;
  const auto size = static_cast<size_t>(count);
  if (to == DType::kFloat32 &&
      decode_floats(from, tensor.bytes().data(), size, result.data<float>()))
    return result;
  if (from == DType::kFloat32 &&
      encode_floats(to, tensor.data<float>(), size, result.mutable_bytes().data()))
    return result;
  if (from == DType::kFloat64 &&
      encode_floats(to, tensor.data<double>(), size, result.mutable_bytes().data()))
    return result;
  if (is_float(from) || is_float(to))
    for (int64_t i = 0; i < count; ++i) result.set_double(i, tensor.get_double(i));
  else
    for (int64_t i = 0; i < count; ++i) result.set_int64(i, tensor.get_int64(i));
  return result;
}

Status give(KernelContext& context, size_t index, DType dtype, Tensor values) {
  if (!context.wants_output(index)) return ok();
  TRY(Tensor rounded, converted(context, values, dtype));
  context.set_output(index, RunValue(std::move(rounded)));
  return ok();
}

Status check_dims(const KernelContext& context, const char* what, const Tensor& tensor,
                  std::span<const int64_t> dims) {
  if (tensor.dims() == Dims(dims)) return ok();
  return context.error(std::string(what) + " must have the shape " + dims_to_string(dims) +
                       ", is " + to_string(tensor));
}

}  // namespace tombolo::ops
