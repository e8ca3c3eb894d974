#include <cmath>

#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

constexpr Literal kMish = R"(
soft = Softplus (X)
gate = Tanh (soft)
Y = Mul (X, gate)
)";

namespace {

Status run_mish(KernelContext& context) {
  return map(context, [](auto x) {
    using T = decltype(x);
    const T softplus = std::max(x, T{0}) + std::log1p(std::exp(-std::fabs(x)));
    return x * std::tanh(softplus);
  });
}

}  // namespace

OPERATOR(Mish) = {
    .name = "Mish",
    .doc = "x * tanh(log(1 + e^x))",
    .versions = {18, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .types = {{"T", {{18, kFloats}, {22, kBf16}}}},
    .functions =
        {
            {.versions = {.until = 21}, .opset = 18, .text = kMish},
            {.versions = {.since = 22}, .opset = 22, .text = kMish},
        },
    .infer = infer_unary,
    .reference = run_mish,
};

}  // namespace tombolo::ops
