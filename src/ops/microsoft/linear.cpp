#include "ops/microsoft/linear.h"

#include <string>

#include "ops/kernels/quantize.h"

namespace tombolo::ops {

Result<float> scalar_scale(const KernelContext& context, size_t index, const char* name) {
  TRY(const Tensor* scale, context.input(index));
  if (scale->size() != 1 || !is_float(scale->dtype()))
    return context.error(std::string(name) + " must be one float, is " + to_string(*scale));
  return static_cast<float>(scale->get_double(0));
}

Result<int64_t> scalar_zero_point(const KernelContext& context, size_t index, const char* name,
                                  DType type) {
  TRY(const Tensor* zero, context.optional_input(index));
  if (zero == nullptr) return 0;
  if (zero->size() != 1 || zero->dtype() != type)
    return context.error(std::string(name) + " must be one " + std::string(name_of(type)) +
                         ", is " + to_string(*zero));
  return zero->get_int64(0);
}

Result<Tensor> read_linear(const KernelContext& context, size_t index) {
  return read_linear(context, index, index + 1, index + 2);
}

Result<Tensor> read_linear(const KernelContext& context, size_t index, size_t scale, size_t zero) {
  TRY(const Tensor* x, context.input(index));
  if (!is_integer(x->dtype()) || bits_of(x->dtype()) > 8)
    return context.error("input " + std::to_string(index) + " must hold 8-bit integers, is " +
                         to_string(*x));
  TRY(const float factor, scalar_scale(context, scale, "the scale"));
  TRY(const int64_t offset, scalar_zero_point(context, zero, "the zero point", x->dtype()));
  TRY(Tensor y, context.allocate(DType::kFloat32, x->dims()));
  float* to = y.data<float>();
  const auto read = [&](const auto* codes) {
    for (int64_t i = 0; i < y.size(); ++i)
      to[i] = factor * static_cast<float>(static_cast<int64_t>(codes[i]) - offset);
  };
  if (x->dtype() == DType::kUInt8) {
    read(x->data<uint8_t>());
  } else if (x->dtype() == DType::kInt8) {
    read(x->data<int8_t>());
  } else {
    for (int64_t i = 0; i < y.size(); ++i)
      to[i] = factor * static_cast<float>(x->get_int64(i) - offset);
  }
  return y;
}

Status give_linear(KernelContext& context, const Tensor& values, size_t scale, size_t zero,
                   DType type) {
  TRY(const float factor, scalar_scale(context, scale, "the output's scale"));
  TRY(const int64_t offset, scalar_zero_point(context, zero, "the output's zero point", type));
  TRY(Tensor * y, context.output(0, type, values.dims()));
  const IntegerRange range = range_of(type);
  for (int64_t i = 0; i < values.size(); ++i)
    y->set_int64(i,
                 quantized(static_cast<double>(values.data<float>()[i] / factor), offset, range));
  return ok();
}

}  // namespace tombolo::ops
