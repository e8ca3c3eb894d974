#include <algorithm>

#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

constexpr Literal kHardSwish = R"(
gate = HardSigmoid <alpha = 0.16666667, beta = 0.5> (X)
Y = Mul (X, gate)
)";

namespace {

Status run_hard_swish(KernelContext& context) {
  return map(context, [](auto x) {
    using T = decltype(x);
    return x * std::clamp(x / 6 + T{0.5}, T{0}, T{1});
  });
}

}  // namespace

OPERATOR(HardSwish) = {
    .name = "HardSwish",
    .doc = "x * max(0, min(1, x / 6 + 1/2))",
    .versions = {14, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .types = {{"T", {{14, kFloats}, {22, kBf16}}}},
    .functions =
        {
            {.versions = {.until = 21}, .opset = 14, .text = kHardSwish},
            {.versions = {.since = 22}, .opset = 22, .text = kHardSwish},
        },
    .infer = infer_unary,
    .reference = run_hard_swish,
};

}  // namespace tombolo::ops
