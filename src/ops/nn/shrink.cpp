#include <cmath>

#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_shrink(KernelContext& context) {
  const float bias = context.attributes.get_float("bias", 0.0f);
  const float lambd = context.attributes.get_float("lambd", 0.5f);
  return map<kFamilyNumbers>(context, [bias, lambd](auto x) {
    using T = decltype(x);
    if constexpr (std::is_floating_point_v<T>) {
      return x < -lambd ? x + bias : x > lambd ? x - bias : T{0};
    } else {
      const double value = static_cast<double>(x);
      const double shrunk = value < -lambd ? value + bias : value > lambd ? value - bias : 0;
      if (!(std::fabs(shrunk) < 9.2e18)) return x;
      return static_cast<T>(static_cast<int64_t>(shrunk));
    }
  });
}

}  // namespace

OPERATOR(Shrink) = {
    .name = "Shrink",
    .doc = "x moved by bias towards zero, and 0 within [-lambd, lambd]",
    .versions = {9},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"bias", 0.0f},
            {"lambd", 0.5f},
        },
    .types = {{"T", {{9, kNumbers}}}},
    .functions = {{.opset = 18, .text = R"(
lambd_f = Constant <value_float: float = @lambd> ()
lambd = CastLike (lambd_f, input)
bias_f = Constant <value_float: float = @bias> ()
bias = CastLike (bias_f, input)
zero_f = Constant <value = float {0}> ()
zero = CastLike (zero_f, input)
shifted = Add (input, lambd)
below = Less (shifted, zero)
above = Greater (input, lambd)
raised = Add (input, bias)
lowered = Sub (input, bias)
upper = Where (above, lowered, zero)
output = Where (below, raised, upper)
)"}},

    .infer = infer_unary,
    .reference = run_shrink,
};

}  // namespace tombolo::ops
