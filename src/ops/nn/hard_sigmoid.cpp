#include <algorithm>

#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_hard_sigmoid(KernelContext& context) {
  const float alpha = context.attributes.get_float("alpha", 0.2f);
  const float beta = context.attributes.get_float("beta", 0.5f);
  return map(context, [alpha, beta](auto x) {
    using T = decltype(x);
    return std::clamp(alpha * x + beta, T{0}, T{1});
  });
}

}  // namespace

OPERATOR(HardSigmoid) = {
    .name = "HardSigmoid",
    .doc = "alpha * x + beta limited to [0, 1]",
    .versions = {1, 6, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"alpha", 0.2f},
            {"beta", 0.5f},
            {"consumed_inputs", Attr::kInts, {.until = 5}},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
    .functions = {{.versions = {.since = 6}, .opset = 18, .text = R"(
alpha_f = Constant <value_float: float = @alpha> ()
alpha = CastLike (alpha_f, X)
beta_f = Constant <value_float: float = @beta> ()
beta = CastLike (beta_f, X)
zero_f = Constant <value = float {0}> ()
zero = CastLike (zero_f, X)
one_f = Constant <value = float {1}> ()
one = CastLike (one_f, X)
scaled = Mul (alpha, X)
line = Add (scaled, beta)
capped = Min (line, one)
Y = Max (capped, zero)
)"}},

    .infer = infer_unary,
    .reference = run_hard_sigmoid,
};

}  // namespace tombolo::ops
