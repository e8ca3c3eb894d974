#include <algorithm>

#include "ops/infer_helpers.h"
#include "ops/kernels/quantize.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_dynamic_quantize_linear(InferContext& context) {
  CHECK_OK(infer_unary(context));
  set_shape(context, 1, {});
  set_shape(context, 2, {});
  return ok();
}
}  // namespace

namespace {

Status run_dynamic_quantize_linear(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(Tensor values, as<float>(context, *x));
  float least = 0, greatest = 0;  // the range holds zero
  for (int64_t i = 0; i < x->size(); ++i) {
    least = std::min(least, values.data<float>()[i]);
    greatest = std::max(greatest, values.data<float>()[i]);
  }
  const IntegerRange range = range_of(DType::kUInt8);
  // All zeros have no scale of their own: any but zero keeps them zero.
  const float scale = greatest == least ? 1 : (greatest - least) / 255;
  const int64_t zero = quantized(static_cast<double>(-least / scale), 0, range);
  TRY(Tensor * y, context.output(0, DType::kUInt8, x->dims()));
  for (int64_t i = 0; i < x->size(); ++i)
    y->data<uint8_t>()[i] = static_cast<uint8_t>(
        quantized(static_cast<double>(values.data<float>()[i] / scale), zero, range));
  TRY(Tensor * scale_out, context.output(1, DType::kFloat32, {}));
  scale_out->data<float>()[0] = scale;
  TRY(Tensor * zero_out, context.output(2, DType::kUInt8, {}));
  zero_out->data<uint8_t>()[0] = static_cast<uint8_t>(zero);
  return ok();
}

}  // namespace

OPERATOR(DynamicQuantizeLinear) = {
    .name = "DynamicQuantizeLinear",
    .doc = "quantises to uint8 by the range found in the data",
    .versions = {11},
    .inputs = {{"x", "T1"}},
    .outputs =
        {
            {"y", "T2"},
            {"y_scale", "tensor(float)"},
            {"y_zero_point", "T2"},
        },
    .types =
        {
            {"T1", {{11, kF32}}},
            {"T2", {{11, kU8}}},
        },
    .functions = {{.opset = 11, .text = R"(
zero = Constant <value = float {0}> ()
top = Constant <value = float {255}> ()
least = ReduceMin <keepdims = 0> (x)
low = Min (least, zero)
greatest = ReduceMax <keepdims = 0> (x)
high = Max (greatest, zero)
range = Sub (high, low)
y_scale = Div (range, top)
steps = Div (low, y_scale)
origin = Sub (zero, steps)
limited = Clip (origin, zero, top)
rounded = Round (limited)
y_zero_point = Cast <to = 2> (rounded)
y = QuantizeLinear (x, y_scale, y_zero_point)
)"}},
    .infer = infer_dynamic_quantize_linear,
    .reference = run_dynamic_quantize_linear,
};

}  // namespace tombolo::ops
