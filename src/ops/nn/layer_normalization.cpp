#include "ops/function_text.h"
#include "ops/schema.h"

namespace tombolo::ops {

/// Mean and deviation over the rows of X as a matrix, whose columns are the axes from `axis` on.
static Status body_of_layer_normalization(FunctionContext& context) {
  context.body += R"(
wide = Cast <to: int = @stash_type> (X)
flat = Flatten <axis: int = @axis> (wide)
)";
  const bool axes_input = context.opset >= 18;  // an attribute before
  if (axes_input) context.line("columns = Constant <value_ints = [1]> ()");
  const std::string mean = axes_input ? "ReduceMean (" : "ReduceMean <axes = [1]> (";
  const std::string end = axes_input ? ", columns)" : ")";
  context.line("mean = " + mean + "flat" + end);
  context.body += R"(
centred = Sub (flat, mean)
square = Mul (centred, centred)
)";
  context.line("variance = " + mean + "square" + end);
  context.body += R"(
epsilon_f = Constant <value_float: float = @epsilon> ()
epsilon = CastLike (epsilon_f, wide)
raised = Add (variance, epsilon)
deviation = Sqrt (raised)
inverse = Reciprocal (deviation)
divided = Div (centred, deviation)
shape = Shape (X)
normal = Reshape <allowzero = 1> (divided, shape)
narrow = CastLike (normal, Scale)
)";
  context.line(context.has_input(2) ? "scaled = Mul (narrow, Scale)\nY = Add (scaled, B)"
                                    : "Y = Mul (narrow, Scale)");
  context.body += R"(
outer = Shape <end: int = @axis> (X)
inner = Shape <start: int = @axis> (X)
count = Shape (inner)
ones = ConstantOfShape <value = int64[1] {1}> (count)
reduced = Concat <axis = 0> (outer, ones)
Mean = Reshape <allowzero = 1> (mean, reduced)
InvStdDev = Reshape <allowzero = 1> (inverse, reduced)
)";
  return ok();
}

OPERATOR(LayerNormalization) = {
    .name = "LayerNormalization",
    .doc = "normalises the axes from `axis` on to mean 0 and variance 1, then scales",
    .versions = {17},
    .inputs =
        {
            {"X", "T"},
            {"Scale", "T"},
            {"B", "T", kOptional},
        },
    .outputs =
        {
            {"Y", "T"},
            {"Mean", "U", kOptional},
            {"InvStdDev", "U", kOptional},
        },
    .attributes =
        {
            {"axis", -1},
            {"epsilon", 1e-05f},
            {"stash_type", 1},
        },
    .types =
        {
            {"T", {{17, kFloats | kBf16}}},
            {"U", {{17, kF32 | kBf16}}},
        },
    .functions =
        {
            {.opset = 17, .builder = body_of_layer_normalization},
            {.opset = 18, .builder = body_of_layer_normalization},
        },
};

}  // namespace tombolo::ops
