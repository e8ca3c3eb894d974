#include "ops/infer_helpers.h"
#include "ops/kernels/conv.h"
#include "ops/kernels/quantize.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_conv_integer(InferContext& context) { return infer_convolution(context, 1); }
}  // namespace

namespace {

Status run_conv_integer(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* w, context.input(1));
  TRY(const ConvShape shape, read_conv(context, *x, *w));
  if (context.has_input(2)) CHECK_OK(one_or_each(context, 2, "x_zero_point", 1));
  TRY(Tensor image, without_zero_point(context, *x, 2, 0));
  TRY(Tensor weights, without_zero_point(context, *w, 3, 0));
  TRY(Tensor * y, context.output(0, DType::kInt32, shape.output));
  return convolve<uint32_t>(context, shape, image.data<uint32_t>(), weights.data<uint32_t>(),
                            nullptr, y->data<uint32_t>());
}

}  // namespace

OPERATOR(ConvInteger) = {
    .name = "ConvInteger",
    .doc = "convolution of 8-bit integers in int32",
    .versions = {10},
    .inputs =
        {
            {"x", "T1"},
            {"w", "T2"},
            {"x_zero_point", "T1", kOptional},
            {"w_zero_point", "T2", kOptional},
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
            {"T3", {{10, kI32}}},
        },
    .infer = infer_conv_integer,
    .reference = run_conv_integer,
};

}  // namespace tombolo::ops
