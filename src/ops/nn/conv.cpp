#include "ops/kernels/conv.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_conv(InferContext& context) {
  CHECK_OK(infer_convolution(context, 1));
  const SymShape* w = context.shape(1);
  const SymShape* bias = context.shape(2);
  if (bias != nullptr && w != nullptr && !w->empty()) {
    CHECK_OK(expect_rank(context, 2, 1));
    CHECK_OK(
        unify_dims(context, (*bias)[0], (*w)[0], "size of B against the channels that W makes"));
  }
  return ok();
}
}  // namespace

namespace {

template <typename T>
Status conv(KernelContext& context, const Tensor& x, const Tensor& w) {
  TRY(ConvShape shape, read_conv(context, x, w));
  TRY(Tensor image, as<T>(context, x));
  TRY(Tensor weights, as<T>(context, w));
  TRY(Tensor bias, optional_as<T>(context, 2));
  if (!absent(bias)) CHECK_OK(check_dims(context, "B", bias, {{shape.out_channels}}));
  TRY(Tensor y, context.allocate(dtype_of<T>(), shape.output));
  CHECK_OK(convolve<T>(context, shape, image.data<T>(), weights.data<T>(),
                       absent(bias) ? nullptr : bias.data<T>(), y.data<T>()));
  return give(context, 0, x.dtype(), std::move(y));
}

Status run_conv(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* w, context.input(1));
  return with_float(context, *x, [&]<typename T>() { return conv<T>(context, *x, *w); });
}

}  // namespace

OPERATOR(Conv) = {
    .name = "Conv",
    .doc = "convolution over any number of spatial axes",
    .versions = {1, 11, 22},
    .inputs =
        {
            {"X", "T"},
            {"W", "T"},
            {"B", "T", kOptional},
        },
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"auto_pad", "NOTSET"},
            {"dilations", Attr::kInts},
            {"group", 1},
            {"kernel_shape", Attr::kInts},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
    .infer = infer_conv,
    .reference = run_conv,
};

}  // namespace tombolo::ops
