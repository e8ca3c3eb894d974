#include "ops/infer_helpers.h"
#include "ops/kernels/matrix_product.h"
#include "ops/kernels/quantize.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_qlinear_matmul(InferContext& context) { return infer_matmul(context, 0, 3); }
}  // namespace

namespace {

/// A scale or zero point of a matrix repeated to its shape: one value; one for each index of
/// `axis` as a vector; or a shape that broadcasts.
Result<Tensor> spread(const KernelContext& context, const char* name, const Tensor& parameter,
                      const Tensor& matrix, size_t axis) {
  TRY(Tensor values, as<double>(context, parameter));
  if (values.rank() == 1 && values.size() != 1 && axis + 2 == matrix.rank())
    values = values.reshaped({{values.dim(0), 1}});
  if (values.size() == 1) values = values.reshaped({});
  return expanded<double>(context, name, values, matrix.dims());
}

/// (x - zero point) * scale, in double: exact products of 8-bit numbers and one float.
Result<Tensor> dequantized(const KernelContext& context, const Tensor& x, size_t scale_index,
                           const char* name, size_t axis) {
  TRY(const Tensor* scale, context.input(scale_index));
  TRY(const Tensor* zero, context.input(scale_index + 1));
  TRY(Tensor values, as<double>(context, x));
  TRY(Tensor scales, spread(context, name, *scale, x, axis));
  TRY(Tensor zeros, spread(context, name, *zero, x, axis));
  TRY(Tensor result, context.allocate(DType::kFloat64, x.dims()));
  for (int64_t i = 0; i < x.size(); ++i)
    result.data<double>()[i] =
        (values.data<double>()[i] - zeros.data<double>()[i]) * scales.data<double>()[i];
  return result;
}

Status run_qlinear_matmul(KernelContext& context) {
  TRY(const Tensor* a, context.input(0));
  TRY(const Tensor* b, context.input(3));
  TRY(const Tensor* y_scale, context.input(6));
  TRY(const Tensor* y_zero, context.input(7));
  if (a->rank() == 0 || b->rank() == 0)
    return context.error("a and b must be matrices, are " + to_string(*a) + " and " +
                         to_string(*b));
  TRY(Tensor left,
      dequantized(context, *a, 1, "the scale of a", a->rank() < 2 ? 0 : a->rank() - 2));
  TRY(Tensor right, dequantized(context, *b, 4, "the scale of b", b->rank() - 1));
  TRY(Tensor sums, matrix_product(context, left, right));
  const size_t axis = sums.rank() < 2 ? 0 : sums.rank() - 2;
  TRY(Tensor scales, spread(context, "y_scale", *y_scale, sums, axis));
  TRY(Tensor zeros, spread(context, "y_zero_point", *y_zero, sums, axis));
  const DType type = y_zero->dtype();
  TRY(Tensor * y, context.output(0, type, sums.dims()));
  for (int64_t i = 0; i < sums.size(); ++i) {
    const double value = sums.data<double>()[i] / scales.data<double>()[i];
    if (is_integer(type) && bits_of(type) <= 16)
      y->set_int64(i,
                   quantized(value, static_cast<int64_t>(zeros.data<double>()[i]), range_of(type)));
    else
      y->set_double(i, value + zeros.data<double>()[i]);
  }
  return ok();
}

}  // namespace

OPERATOR(QLinearMatMul) = {
    .name = "QLinearMatMul",
    .doc = "matrix product of quantised tensors, quantised again",
    .versions = {10, 21},
    .inputs =
        {
            {"a", "T1"},
            {"a_scale", "tensor(float)", kSingle, {.until = 20}},
            {"a_scale", "TS", kSingle, {.since = 21}},
            {"a_zero_point", "T1"},
            {"b", "T2"},
            {"b_scale", "tensor(float)", kSingle, {.until = 20}},
            {"b_scale", "TS", kSingle, {.since = 21}},
            {"b_zero_point", "T2"},
            {"y_scale", "tensor(float)", kSingle, {.until = 20}},
            {"y_scale", "TS", kSingle, {.since = 21}},
            {"y_zero_point", "T3"},
        },
    .outputs = {{"y", "T3"}},
    .types =
        {
            {"T1", {{10, kInt8s}, {21, kFp8}}},
            {"T2", {{10, kInt8s}, {21, kFp8}}},
            {"T3", {{10, kInt8s}, {21, kFp8}}},
            {"TS", {{21, kF32 | kF16 | kBf16}}, {.since = 21}},
        },
    .infer = infer_qlinear_matmul,
    .reference = run_qlinear_matmul,
};

}  // namespace tombolo::ops
