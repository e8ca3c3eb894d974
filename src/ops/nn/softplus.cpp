#include <algorithm>
#include <cmath>

#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_softplus(KernelContext& context) {
  return map(context, [](auto x) {
    return std::max(x, decltype(x){0}) + std::log1p(std::exp(-std::fabs(x)));
  });
}

}  // namespace

OPERATOR(Softplus) = {
    .name = "Softplus",
    .doc = "log(1 + e^x)",
    .versions = {1, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
    .functions = {{.opset = 18, .text = R"(
zero_f = Constant <value = float {0}> ()
zero = CastLike (zero_f, X)
one_f = Constant <value = float {1}> ()
one = CastLike (one_f, X)
positive = Max (X, zero)
size = Abs (X)
minus = Neg (size)
small = Exp (minus)
sum = Add (one, small)
rest = Log (sum)
Y = Add (positive, rest)
)"}},

    .infer = infer_unary,
    .reference = run_softplus,
};

}  // namespace tombolo::ops
