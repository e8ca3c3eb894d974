#include <cmath>
#include <numbers>

#include "ops/function_text.h"
#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_gelu(KernelContext& context) {
  const Text approximate = context.attributes.get_string("approximate", "none");
  if (approximate == "none")
    return map(context, [](auto x) {
      using T = decltype(x);
      return x / 2 * (1 + std::erf(x / std::numbers::sqrt2_v<T>));
    });
  if (approximate == "tanh")
    return map(context, [](auto x) {
      using T = decltype(x);
      const T scale = std::sqrt(2 / std::numbers::pi_v<T>);
      return x / 2 * (1 + std::tanh(scale * (x + static_cast<T>(0.044715) * x * x * x)));
    });
  return context.error("approximate must be none or tanh, is \"" + std::string(approximate) + "\"");
}

}  // namespace

static Status body_of_gelu(FunctionContext& context) {
  const Text form = context.attributes.get_string("approximate", "none");
  if (form != "none" && form != "tanh")
    return usage_error("approximate must be none or tanh, not " + std::string(form));
  context.body += form == "none" ? R"(
scale_f = Constant <value = float {0.70710678}> ()
scale = CastLike (scale_f, X)
scaled = Mul (scale, X)
sigmoid = Erf (scaled)
)"
                                 : R"(
cubic_f = Constant <value = float {0.044715}> ()
cubic = CastLike (cubic_f, X)
scale_f = Constant <value = float {0.79788456}> ()
scale = CastLike (scale_f, X)
square = Mul (X, X)
cube = Mul (square, X)
bent = Mul (cubic, cube)
curve = Add (X, bent)
scaled = Mul (scale, curve)
sigmoid = Tanh (scaled)
)";
  context.body += R"(
one_f = Constant <value = float {1}> ()
one = CastLike (one_f, X)
half_f = Constant <value = float {0.5}> ()
half = CastLike (half_f, X)
raised = Add (one, sigmoid)
weight = Mul (half, raised)
Y = Mul (X, weight)
)";
  return ok();
}

OPERATOR(Gelu) = {
    .name = "Gelu",
    .doc = "x * Phi(x), exactly or by tanh",
    .versions = {20},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"approximate", "none"}},
    .types = {{"T", {{20, kFloats | kBf16}}}},
    .functions = {{.opset = 20, .builder = body_of_gelu}},
    .infer = infer_unary,
    .reference = run_gelu,
};

}  // namespace tombolo::ops
