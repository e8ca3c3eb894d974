#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_thresholded_relu(KernelContext& context) {
  const float alpha = context.attributes.get_float("alpha", 1.0f);
  return map(context, [alpha](auto x) { return x > alpha ? x : decltype(x){0}; });
}

}  // namespace

OPERATOR(ThresholdedRelu) = {
    .name = "ThresholdedRelu",
    .doc = "x above alpha, else 0",
    .versions = {10, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"alpha", 1.0f}},
    .types = {{"T", {{10, kFloats}, {22, kBf16}}}},
    .functions = {{.opset = 18, .text = R"(
alpha_f = Constant <value_float: float = @alpha> ()
alpha = CastLike (alpha_f, X)
zero_f = Constant <value = float {0}> ()
zero = CastLike (zero_f, X)
above = Greater (X, alpha)
Y = Where (above, X, zero)
)"}},

    .infer = infer_unary,
    .reference = run_thresholded_relu,
};

}  // namespace tombolo::ops
