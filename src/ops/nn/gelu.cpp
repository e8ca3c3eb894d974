#include <cmath>
#include <numbers>

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

OPERATOR(Gelu) = {
    .name = "Gelu",
    .doc = "x * Phi(x), exactly or by tanh",
    .versions = {20},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"approximate", "none"}},
    .types = {{"T", {{20, kFloats | kBf16}}}},
    .functions = {{.opset = 20}},
    .reference = run_gelu,
};

}  // namespace tombolo::ops
