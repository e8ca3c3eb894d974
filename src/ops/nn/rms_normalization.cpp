#include "ops/schema.h"

namespace tombolo::ops {

OPERATOR(RMSNormalization) = {
    .name = "RMSNormalization",
    .doc = "divides by the root mean square of the axes from `axis` on, then scales",
    .versions = {23},
    .inputs =
        {
            {"X", "T"},
            {"scale", "V"},
        },
    .outputs = {{"Y", "V"}},
    .attributes =
        {
            {"axis", -1},
            {"epsilon", 1e-05f},
            {"stash_type", 1},
        },
    .types =
        {
            {"T", {{23, kFloats | kBf16}}},
            {"V", {{23, kFloats | kBf16}}},
        },
    .functions = {{.opset = 23, .text = R"(
wide = Cast <to: int = @stash_type> (X)
flat = Flatten <axis: int = @axis> (wide)
square = Mul (flat, flat)
inner_axis = Constant <value_ints = [1]> ()
mean = ReduceMean (square, inner_axis)
epsilon_f = Constant <value_float: float = @epsilon> ()
epsilon = CastLike (epsilon_f, wide)
raised = Add (mean, epsilon)
root = Sqrt (raised)
divided = Div (flat, root)
shape = Shape (X)
normal = Reshape <allowzero = 1> (divided, shape)
narrow = CastLike (normal, scale)
Y = Mul (narrow, scale)
)"}},
};

}  // namespace tombolo::ops
