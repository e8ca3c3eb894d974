#include "ops/function_text.h"
#include "ops/infer_helpers.h"
#include "ops/kernel_context.h"
#include "ops/kernels/movement.h"
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

namespace {

Status run_depth_to_space(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  const int64_t size = context.attributes.get_int("blocksize", 0);
  const Text mode = context.attributes.get_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return context.error("mode must be DCR or CRD, is \"" + std::string(mode) + "\"");
  if (x->rank() != 4 || size < 1 || size > 1 << 20 || x->dim(1) % (size * size) != 0)
    return context.error(to_string(*x) + " cannot be taken apart by a blocksize of " +
                         std::to_string(size));
  const int64_t n = x->dim(0), c = x->dim(1) / (size * size), h = x->dim(2), w = x->dim(3);
  const int64_t dims[] = {n, c, h * size, w * size};
  TRY(Tensor * out, context.output(0, x->dtype(), dims));
  // The output walked as [n, c, h, block row, w, block column].
  const int64_t plane = h * w, block = mode == "DCR" ? c * plane : plane;
  const int64_t channel = mode == "DCR" ? plane : plane * size * size;
  const int64_t box[] = {n, c, h, size, w, size};
  const int64_t from[] = {x->dim(1) * plane, channel, w, block * size, 1, block};
  copy_box(*x, 0, from, *out, 0, contiguous_strides(box), box);
  return ok();
}

}  // namespace

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
    .reference = run_depth_to_space,
};

}  // namespace tombolo::ops
