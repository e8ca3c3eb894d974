#include "ops/schema.h"

namespace tombolo::ops {

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
};

}  // namespace tombolo::ops
