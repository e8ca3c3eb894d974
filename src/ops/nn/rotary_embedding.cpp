#include "ops/function_text.h"
#include "ops/schema.h"

namespace tombolo::ops {

/// Rotates the pairs (x1, x2) of each head's features: (x1 cos - x2 sin, x1 sin + x2 cos). The
/// width of the cache says how many features turn.
static Status body_of_rotary_embedding(FunctionContext& context) {
  const bool interleaved = context.attributes.get_int("interleaved", 0) != 0;
  const bool may_be_flat = context.attributes.get_int("num_heads", 0) != 0;
  if (may_be_flat) {
    context.body += R"(
dims = Shape (X)
rank = Size (dims)
three = Constant <value_int = 3> ()
flat = Equal (rank, three)
heads = If (flat) <then_branch = split_heads () => (by_head) {
  same = Constant <value_ints = [0, 0]> ()
  count_0 = Constant <value_int: int = @num_heads> ()
  entry = Constant <value_ints = [1]> ()
  count = Reshape (count_0, entry)
  rest_dim = Constant <value_ints = [-1]> ()
  split_shape = Concat <axis = 0> (same, count, rest_dim)
  by_token = Reshape (X, split_shape)
  by_head = Transpose <perm = [0, 2, 1, 3]> (by_token)
}, else_branch = as_given () => (given) {
  given = Identity (X)
}>
)";
  } else {
    context.line("heads = Identity (X)");
  }
  const bool positions = context.has_input(3);
  context.line(positions ? "cos_rows = Gather (cos_cache, position_ids)"
                         : "cos_rows = Identity (cos_cache)");
  context.line(positions ? "sin_rows = Gather (sin_cache, position_ids)"
                         : "sin_rows = Identity (sin_cache)");
  context.body += R"(
head_axis = Constant <value_ints = [1]> ()
cos = Unsqueeze (cos_rows, head_axis)
sin = Unsqueeze (sin_rows, head_axis)
zero = Constant <value_ints = [0]> ()
one = Constant <value_ints = [1]> ()
two = Constant <value_ints = [2]> ()
end = Constant <value_ints = [9223372036854775807]> ()
last = Constant <value_ints = [-1]> ()
half = Shape <start = -1> (cos_cache)
turning = Mul (half, two)
turned = Slice (heads, zero, turning, last)
still = Slice (heads, turning, end, last)
)";
  context.body += interleaved ? R"(
x1 = Slice (turned, zero, end, last, two)
x2 = Slice (turned, one, end, last, two)
)"
                              : R"(
x1 = Slice (turned, zero, half, last)
x2 = Slice (turned, half, end, last)
)";
  context.body += R"(
cos_x1 = Mul (cos, x1)
sin_x2 = Mul (sin, x2)
y1 = Sub (cos_x1, sin_x2)
sin_x1 = Mul (sin, x1)
cos_x2 = Mul (cos, x2)
y2 = Add (sin_x1, cos_x2)
)";
  context.body += interleaved ? R"(
y1_column = Unsqueeze (y1, last)
y2_column = Unsqueeze (y2, last)
pairs = Concat <axis = -1> (y1_column, y2_column)
turned_shape = Shape (turned)
rotated = Reshape (pairs, turned_shape)
)"
                              : "rotated = Concat <axis = -1> (y1, y2)\n";
  if (!may_be_flat) {
    context.line("Y = Concat <axis = -1> (rotated, still)");
    return ok();
  }
  context.body += R"(
whole = Concat <axis = -1> (rotated, still)
Y = If (flat) <then_branch = join_heads () => (joined) {
  tokens = Transpose <perm = [0, 2, 1, 3]> (whole)
  joined = Reshape (tokens, dims)
}, else_branch = as_it_is () => (kept) {
  kept = Identity (whole)
}>
)";
  return ok();
}

OPERATOR(RotaryEmbedding) = {
    .name = "RotaryEmbedding",
    .doc = "rotates pairs of features by an angle that grows with the position",
    .versions = {23},
    .inputs =
        {
            {"X", "T"},
            {"cos_cache", "T"},
            {"sin_cache", "T"},
            {"position_ids", "M", kOptional},
        },
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"interleaved", 0},
            {"num_heads", Attr::kInt},
            {"rotary_embedding_dim", 0},
        },
    .types =
        {
            {"T", {{23, kF32 | kF16 | kBf16}}},
            {"M", {{23, kI64}}},
        },
    .functions = {{.opset = 23, .builder = body_of_rotary_embedding}},
};

}  // namespace tombolo::ops
