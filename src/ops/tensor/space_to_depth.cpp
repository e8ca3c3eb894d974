#include "ops/function_text.h"
#include "ops/infer_helpers.h"
#include "ops/kernel_context.h"
#include "ops/kernels/movement.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_space_to_depth(InferContext& context) {
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
  set_shape(context, 0,
            {(*x)[0], (*x)[1] * area, floor_div((*x)[2], SymDim(block)),
             floor_div((*x)[3], SymDim(block))});
  return ok();
}
}  // namespace

/// Splits height and width, moves the two block axes beside the channels, and joins them.
static Status body_of_space_to_depth(FunctionContext& context) {
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
deep = Mul (channels, area)
low = Div (height, side)
narrow = Div (width, side)
parts = Concat <axis = 0> (samples, channels, low, side, narrow, side)
split = Reshape <allowzero = 1> (input, parts)
)";
  context.line(blocks_first ? "moved = Transpose <perm = [0, 3, 5, 1, 2, 4]> (split)"
                            : "moved = Transpose <perm = [0, 1, 3, 5, 2, 4]> (split)");
  context.line("whole = Concat <axis = 0> (samples, deep, low, narrow)");
  context.line("output = Reshape <allowzero = 1> (moved, whole)");
  return ok();
}

namespace {

Status run_space_to_depth(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  const int64_t size = context.attributes.get_int("blocksize", 0);
  const Text mode = context.attributes.get_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return context.error("mode must be DCR or CRD, is \"" + std::string(mode) + "\"");
  if (x->rank() != 4 || size < 1 || size > 1 << 20 || x->dim(2) % size != 0 ||
      x->dim(3) % size != 0)
    return context.error(to_string(*x) + " does not divide into blocks of " + std::to_string(size));
  const int64_t n = x->dim(0), c = x->dim(1), h = x->dim(2) / size, w = x->dim(3) / size;
  int64_t depth = 0;
  if (__builtin_mul_overflow(c, size * size, &depth))
    return resource_error("a depth of " + std::to_string(c) + " blocks is too large");
  const int64_t dims[] = {n, depth, h, w};
  TRY(Tensor * out, context.output(0, x->dtype(), dims));
  // The output walked as [n, block row, block column, c, h, w], or with c before the blocks.
  const int64_t row = x->dim(3), plane = x->dim(2) * row;
  if (mode == "DCR") {
    const int64_t box[] = {n, size, size, c, h, w};
    const int64_t from[] = {c * plane, row, 1, plane, row * size, size};
    copy_box(*x, 0, from, *out, 0, contiguous_strides(box), box);
  } else {
    const int64_t box[] = {n, c, size, size, h, w};
    const int64_t from[] = {c * plane, plane, row, 1, row * size, size};
    copy_box(*x, 0, from, *out, 0, contiguous_strides(box), box);
  }
  return ok();
}

}  // namespace

OPERATOR(SpaceToDepth) = {
    .name = "SpaceToDepth",
    .doc = "moves blocks of height and width into channels",
    .versions = {1, 13, 28},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"blocksize", required(Attr::kInt)},
            {"mode", "DCR", {.since = 28}},
        },
    .types = {{"T", {{1, kAll}, {13, kBf16}}}},
    .functions = {{.versions = {.since = 28}, .opset = 28, .builder = body_of_space_to_depth}},
    .infer = infer_space_to_depth,
    .reference = run_space_to_depth,
};

}  // namespace tombolo::ops
