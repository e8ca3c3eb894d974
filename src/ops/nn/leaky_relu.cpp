#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_leaky_relu(KernelContext& context) {
  const float alpha = context.attributes.get_float("alpha", 0.01f);
  return map(context, [alpha](auto x) { return x < 0 ? alpha * x : x; });
}

}  // namespace

OPERATOR(LeakyRelu) = {
    .name = "LeakyRelu",
    .doc = "x, or alpha * x below zero",
    .versions = {1, 6, 16},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"alpha", 0.01f},
            {"consumed_inputs", Attr::kInts, {.until = 5}},
        },
    .types = {{"T", {{1, kFloats}, {16, kBf16}}}},
    .functions = {{.versions = {.since = 16}, .opset = 16, .text = R"(
alpha_f = Constant <value_float: float = @alpha> ()
slope = CastLike (alpha_f, X)
zero_f = Constant <value = float {0}> ()
zero = CastLike (zero_f, X)
negative = Less (X, zero)
scaled = Mul (slope, X)
Y = Where (negative, scaled, X)
)"}},

    .infer = infer_unary,
    .reference = run_leaky_relu,
};

}  // namespace tombolo::ops
