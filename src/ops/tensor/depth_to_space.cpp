#include "ops/function_text.h"
#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_depth_to_space(InferContext& context) {
  CHECK_OK(expect_rank(context, 0, 4));
  const int64_t block = context.attributes.get_int("blocksize", 0);
  if (block <= 0)
    return context.error("blocksize must be positive, but it is " + std::to_string(block));
  const SymShape* x = context.shape(0);
  if (x == nullptr) {
    set_rank(context, 0, 4);
    return ok();
  }
  const SymDim area = SymDim(block) * block;
  if ((*x)[1].is_value() && area.is_value() && (*x)[1].value() % area.value() != 0)
    return context.error((*x)[1].to_string() + " channels do not divide by blocksize squared, " +
                         area.to_string());
  set_shape(context, 0, {(*x)[0], floor_div((*x)[1], area), (*x)[2] * block, (*x)[3] * block});
  return ok();
}
}  // namespace

/// Splits the channels, moves the two block axes beside height and width, and joins them.
static Status body_of_depth_to_space(FunctionContext& context) {
  const bool blocks_first = context.attributes.get_string("mode", "DCR") == "DCR";
  context.body += R"(
side_0 = Constant <value_int: int = @blocksize> ()
entry = Constant <value_ints = [1]> ()
side = Reshape (side_0, entry)
area = Mul (side, side)
samples = Shape <start = 0, end = 1> (input)
channels = Shape <start = 1, end = 2> (input)
height = Shape <start = 2, end = 3> (input)
width = Shape <start = 3, end = 4> (input)
kept = Div (channels, area)
tall = Mul (height, side)
broad = Mul (width, side)
)";
  context.line(blocks_first
                   ? "parts = Concat <axis = 0> (samples, side, side, kept, height, width)"
                   : "parts = Concat <axis = 0> (samples, kept, side, side, height, width)");
  context.line("split = Reshape <allowzero = 1> (input, parts)");
  context.line(blocks_first ? "moved = Transpose <perm = [0, 3, 4, 1, 5, 2]> (split)"
                            : "moved = Transpose <perm = [0, 1, 4, 2, 5, 3]> (split)");
  context.line("whole = Concat <axis = 0> (samples, kept, tall, broad)");
  context.line("output = Reshape <allowzero = 1> (moved, whole)");
  return ok();
}

OPERATOR(DepthToSpace) = {
    .name = "DepthToSpace",
    .doc = "moves blocks of channels into height and width",
    .versions = {1, 11, 13, 28},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"blocksize", required(Attr::kInt)},
            {"mode", "DCR", {.since = 11}},
        },
    .types = {{"T", {{1, kAll}, {13, kBf16}}}},
    .functions = {{.versions = {.since = 28}, .opset = 28, .builder = body_of_depth_to_space}},
    .infer = infer_depth_to_space,
};

}  // namespace tombolo::ops
