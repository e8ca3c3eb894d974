#include "ops/infer_helpers.h"
#include "ops/kernels/conv.h"
#include "ops/kernels/quantize.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_qlinear_conv(InferContext& context) { return infer_convolution(context, 3); }
}  // namespace

namespace {

Status run_qlinear_conv(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* w, context.input(3));
  TRY(const ConvShape shape, read_conv(context, *x, *w));
  TRY(const Tensor* x_scale, one_or_each(context, 1, "x_scale", 1));
  CHECK_OK(one_or_each(context, 2, "x_zero_point", 1));
  TRY(const Tensor* w_scale, one_or_each(context, 4, "w_scale", shape.out_channels));
  TRY(const Tensor* y_scale, one_or_each(context, 6, "y_scale", 1));
  TRY(const Tensor* y_zero, one_or_each(context, 7, "y_zero_point", 1));
  TRY(Tensor image, without_zero_point(context, *x, 2, 0));
  TRY(Tensor weights, without_zero_point(context, *w, 5, 0));
  TRY(Tensor bias, optional_as<int32_t>(context, 8));
  if (!absent(bias)) CHECK_OK(check_dims(context, "B", bias, {{shape.out_channels}}));
  if (!is_integer(y_zero->dtype()) || bits_of(y_zero->dtype()) > 16)
    return context.error("y_zero_point must be of small integers, is " + to_string(*y_zero));
  TRY(Tensor sums, context.allocate(DType::kInt32, shape.output));
  CHECK_OK(convolve<uint32_t>(context, shape, image.data<uint32_t>(), weights.data<uint32_t>(),
                              absent(bias) ? nullptr : bias.data<uint32_t>(),
                              sums.data<uint32_t>()));
  TRY(Tensor * y, context.output(0, y_zero->dtype(), shape.output));
  const IntegerRange range = range_of(y_zero->dtype());
  const int64_t zero = y_zero->get_int64(0);
  const int64_t plane = sums.size() == 0 ? 1 : sums.size() / shape.batch / shape.out_channels;
  for (int64_t i = 0; i < sums.size(); ++i) {
    const int64_t channel = w_scale->size() == 1 ? 0 : i / plane % shape.out_channels;
    const double scale =
        x_scale->get_double(0) * w_scale->get_double(channel) / y_scale->get_double(0);
    y->set_int64(i, quantized(sums.data<int32_t>()[i] * scale, zero, range));
  }
  return ok();
}

}  // namespace

OPERATOR(QLinearConv) = {
    .name = "QLinearConv",
    .doc = "convolution of quantised tensors, quantised again",
    .versions = {10},
    .inputs =
        {
            {"x", "T1"},
            {"x_scale", "tensor(float)"},
            {"x_zero_point", "T1"},
            {"w", "T2"},
            {"w_scale", "tensor(float)"},
            {"w_zero_point", "T2"},
            {"y_scale", "tensor(float)"},
            {"y_zero_point", "T3"},
            {"B", "T4", kOptional},
        },
    .outputs = {{"y", "T3"}},
    .attributes =
        {
            {"auto_pad", "NOTSET"},
            {"dilations", Attr::kInts},
            {"group", 1},
            {"kernel_shape", Attr::kInts},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
        },
    .types =
        {
            {"T1", {{10, kInt8s}}},
            {"T2", {{10, kInt8s}}},
            {"T3", {{10, kInt8s}}},
            {"T4", {{10, kI32}}},
        },
    .infer = infer_qlinear_conv,
    .reference = run_qlinear_conv,
};

}  // namespace tombolo::ops
