#include "ops/infer_helpers.h"
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
};

}  // namespace tombolo::ops
