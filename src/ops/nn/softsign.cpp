#include <cmath>

#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_softsign(KernelContext& context) {
  return map(context, [](auto x) { return x / (1 + std::fabs(x)); });
}

}  // namespace

OPERATOR(Softsign) = {
    .name = "Softsign",
    .doc = "x / (1 + |x|)",
    .versions = {1, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
    .functions = {{.opset = 18, .text = R"(
one_f = Constant <value = float {1}> ()
one = CastLike (one_f, input)
size = Abs (input)
divisor = Add (one, size)
output = Div (input, divisor)
)"}},

    .infer = infer_unary,
    .reference = run_softsign,
};

}  // namespace tombolo::ops
