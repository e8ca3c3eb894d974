#include "ops/expansions.h"
#include "ops/function_text.h"
#include "ops/infer_generic.h"
#include "ops/kernels/compute.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

template <typename T>
Status rotary_embedding(KernelContext& context, const Tensor& x) {
  if (x.rank() != 3 && x.rank() != 4)
    return context.error("X must have rank 3 or 4, is " + to_string(x));
  // X is [batch, heads, steps, size], or [batch, steps, heads * size].
  const bool packed = x.rank() == 3;
  const int64_t batch = x.dim(0), steps = x.dim(packed ? 1 : 2);
  const int64_t heads = packed ? context.attributes.get_int("num_heads", 0) : x.dim(1);
  if (packed && (heads < 1 || x.dim(2) % heads != 0))
    return context.error("num_heads is " + std::to_string(heads) + ", X is " + to_string(x));
  const int64_t size = packed ? x.dim(2) / heads : x.dim(3);
  const int64_t given = context.attributes.get_int("rotary_embedding_dim", 0);
  const int64_t rotated = given == 0 ? size : given, half = rotated / 2;
  if (rotated < 0 || rotated > size || rotated % 2 != 0)
    return context.error("rotary_embedding_dim is " + std::to_string(rotated) +
                         ", must be even and at most the head's size of " + std::to_string(size));
  const bool interleaved = context.attributes.get_int("interleaved", 0) != 0;
  TRY(const Tensor* cos_input, context.input(1));
  TRY(const Tensor* sin_input, context.input(2));
  TRY(Tensor cosines, as<T>(context, *cos_input));
  TRY(Tensor sines, as<T>(context, *sin_input));
  CHECK_OK(check_dims(context, "sin_cache", sines, cosines.dims()));
  TRY(const Tensor* positions, context.optional_input(3));
  if (positions != nullptr) {
    CHECK_OK(check_dims(context, "position_ids", *positions, {{batch, steps}}));
    if (cosines.rank() != 2 || cosines.dim(1) != half)
      return context.error("cos_cache must be [positions, " + std::to_string(half) + "], is " +
                           to_string(cosines));
    for (int64_t i = 0; i < positions->size(); ++i)
      if (positions->get_int64(i) < 0 || positions->get_int64(i) >= cosines.dim(0))
        return context.error("position_ids has the value " +
                             std::to_string(positions->get_int64(i)) + ", cos_cache has " +
                             std::to_string(cosines.dim(0)) + " positions");
  } else {
    CHECK_OK(check_dims(context, "cos_cache", cosines, {{batch, steps, half}}));
  }
  TRY(Tensor in, as<T>(context, x));
  TRY(Tensor y, context.allocate(dtype_of<T>(), x.dims()));
  const int64_t vectors = x.size() == 0 ? 0 : x.size() / size;
  context.parallel_for(vectors, 64, [&](int64_t first, int64_t last) {
    for (int64_t v = first; v < last; ++v) {
      const int64_t n = packed ? v / heads / steps : v / steps / heads;
      const int64_t t = packed ? v / heads % steps : v % steps;
      const int64_t row =
          positions != nullptr ? positions->get_int64(n * steps + t) : n * steps + t;
      const T *from = in.data<T>() + v * size, *cosine = cosines.data<T>() + row * half,
              *sine = sines.data<T>() + row * half;
      T* to = y.data<T>() + v * size;
      for (int64_t i = 0; i < half; ++i) {
        const int64_t a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : half + i;
        to[a] = cosine[i] * from[a] - sine[i] * from[b];
        to[b] = sine[i] * from[a] + cosine[i] * from[b];
      }
      for (int64_t i = rotated; i < size; ++i) to[i] = from[i];
    }
  });
  return give(context, 0, x.dtype(), std::move(y));
}

Status run_rotary_embedding(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x, [&]<typename T>() { return rotary_embedding<T>(context, *x); });
}

}  // namespace

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
    .infer = infer_unary,
    .reference = run_rotary_embedding,
    .down = {{23, 0, expand_rotary_embedding}},
};

}  // namespace tombolo::ops
