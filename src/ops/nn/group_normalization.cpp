#include "ops/expansions.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/moments.h"
#include "ops/schema.h"
#include "ops/step_context.h"

namespace tombolo::ops {

namespace {
Status infer_group_normalization(InferContext& context) {
  CHECK_OK(infer_unary(context));
  const SymShape* x = context.shape(0);
  const auto groups = context.attributes.get_int("num_groups");
  if (groups && *groups <= 0)
    return context.error("num_groups must be positive, but it is " + std::to_string(*groups));
  if (groups && x != nullptr && x->size() > 1 && (*x)[1].is_value() &&
      (*x)[1].value() % *groups != 0)
    return context.error((*x)[1].to_string() + " channels do not divide into " +
                         std::to_string(*groups) + " groups");
  return ok();
}
}  // namespace

namespace {

template <typename T>
Status group_normalization(KernelContext& context, const Tensor& x) {
  if (x.rank() < 2) return context.error("X must have a rank of at least 2, is " + to_string(x));
  const int64_t channels = x.dim(1), groups = context.attributes.get_int("num_groups", 0);
  if (groups < 1 || channels % groups != 0)
    return context.error("num_groups is " + std::to_string(groups) + ", X has " +
                         std::to_string(channels) + " channels");
  const int64_t planes = x.size() == 0 ? 0 : x.dim(0) * channels;
  const int64_t plane = planes == 0 ? 0 : x.size() / planes, members = channels / groups;
  TRY(const Tensor* scale_input, context.input(1));
  TRY(const Tensor* bias_input, context.input(2));
  TRY(Tensor scale, as<T>(context, *scale_input));
  TRY(Tensor bias, as<T>(context, *bias_input));
  // Version 18 scales groups, version 21 channels.
  const int64_t scales = context.opset < 21 ? groups : channels;
  CHECK_OK(check_dims(context, "scale", scale, {{scales}}));
  CHECK_OK(check_dims(context, "bias", bias, {{scales}}));
  const double epsilon = static_cast<double>(context.attributes.get_float("epsilon", 1e-5f));
  TRY(Tensor in, as<T>(context, x));
  TRY(Tensor y, context.allocate(dtype_of<T>(), x.dims()));
  context.parallel_for(planes == 0 ? 0 : planes / members, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const Moments moments = moments_of(in.data<T>() + task * members * plane, members * plane);
      for (int64_t p = task * members; p < (task + 1) * members; ++p) {
        const int64_t at = scales == channels ? p % channels : task % groups;
        normalize(in.data<T>() + p * plane, y.data<T>() + p * plane, plane, moments.mean,
                  moments.inverse_deviation(epsilon) * static_cast<double>(scale.data<T>()[at]),
                  static_cast<double>(bias.data<T>()[at]));
      }
    }
  });
  return give(context, 0, x.dtype(), std::move(y));
}

Status run_group_normalization(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x, [&]<typename T>() { return group_normalization<T>(context, *x); });
}

}  // namespace

namespace {

/// [groups] values become [channels] values: each repeats for the channels of its group.
Status step_scale_by_channel(StepContext& step) {
  Node& node = step.node;
  const DType dtype = step.dtype(0);
  const int64_t groups = step.get_int("num_groups", 0);
  if (dtype == DType::kUndefined) return step.cannot("the type of X is not known");
  if (groups <= 0 || !step.has_input(0) || !step.has_input(1) || !step.has_input(2))
    return step.cannot("num_groups or an input is missing");
  const std::optional<int64_t> channels = step.dim(0, 1);
  if (channels && *channels % groups != 0) return step.cannot("num_groups divides no channels");
  node.set_int("stash_type", static_cast<int64_t>(dtype));  // it computed in the type of X
  if (channels == groups) return ok();

  Value* sizes = nullptr;
  if (channels) {
    sizes = step.ints({groups, *channels / groups}, "sizes");
  } else {
    Node& length = step.before("Shape", {node.input(0)}, "channels");
    length.set_int("start", 1);
    length.set_int("end", 2);
    Value* const count = step.ints({groups}, "groups");
    Node& each = step.before("Div", {length.output(0), count}, "group_size");
    Node& both = step.before("Concat", {count, each.output(0)}, "sizes");
    both.set_int("axis", 0);
    sizes = both.output(0);
  }
  Value* const last = step.ints({1}, "axes");
  Value* const all = step.ints({-1}, "all");
  for (uint32_t i = 1; i <= 2; ++i) {
    Node& column = step.before("Unsqueeze", {node.input(i), last}, "column");
    Node& table = step.before("Expand", {column.output(0), sizes}, "table");
    Node& flat = step.before("Reshape", {table.output(0), all}, "by_channel");
    node.set_input(i, flat.output(0));
  }
  return ok();
}

}  // namespace

OPERATOR(GroupNormalization) = {
    .name = "GroupNormalization",
    .doc = "normalises groups of channels of each sample",
    .versions = {18, 21},
    .deprecated = {18},
    .inputs =
        {
            {"X", "T"},
            {"scale", "T"},
            {"bias", "T"},
        },
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"epsilon", 1e-05f},
            {"num_groups", required(Attr::kInt)},
            {"stash_type", 1, {.since = 21}},
        },
    .types = {{"T", {{18, kFloats | kBf16}}}},
    .functions =
        {
            {.versions = {.until = 20}, .opset = 18, .text = R"(
groups = Constant <value_int: int = @num_groups> ()
one_entry = Constant <value_ints = [1]> ()
group_dim = Reshape (groups, one_entry)
same = Constant <value_ints = [0]> ()
rest = Constant <value_ints = [-1]> ()
group_shape = Concat <axis = 0> (same, group_dim, rest)
grouped = Reshape (X, group_shape)
inner_axis = Constant <value_ints = [2]> ()
mean = ReduceMean (grouped, inner_axis)
centred = Sub (grouped, mean)
square = Mul (centred, centred)
variance = ReduceMean (square, inner_axis)
epsilon_f = Constant <value_float: float = @epsilon> ()
epsilon = CastLike (epsilon_f, X)
raised = Add (variance, epsilon)
deviation = Sqrt (raised)
normal = Div (centred, deviation)
columns = Constant <value_ints = [-1, 1]> ()
scale_column = Reshape (scale, columns)
bias_column = Reshape (bias, columns)
scaled = Mul (normal, scale_column)
moved = Add (scaled, bias_column)
shape = Shape (X)
Y = Reshape (moved, shape)
)"},
            {.versions = {.since = 21}, .opset = 21, .text = R"(
wide = Cast <to: int = @stash_type> (X)
groups = Constant <value_int: int = @num_groups> ()
one_entry = Constant <value_ints = [1]> ()
group_dim = Reshape (groups, one_entry)
same = Constant <value_ints = [0]> ()
rest = Constant <value_ints = [-1]> ()
group_shape = Concat <axis = 0> (same, group_dim, rest)
grouped = Reshape (wide, group_shape)
inner_axis = Constant <value_ints = [2]> ()
mean = ReduceMean (grouped, inner_axis)
centred = Sub (grouped, mean)
square = Mul (centred, centred)
variance = ReduceMean (square, inner_axis)
epsilon_f = Constant <value_float: float = @epsilon> ()
epsilon = CastLike (epsilon_f, wide)
raised = Add (variance, epsilon)
deviation = Sqrt (raised)
normal = Div (centred, deviation)
narrow = CastLike (normal, X)
channel_shape_0 = Shape <start = 1, end = 2> (X)
channel_shape = Concat <axis = 0> (same, channel_shape_0, rest)
channels = Reshape (narrow, channel_shape)
columns = Constant <value_ints = [-1, 1]> ()
scale_column = Reshape (scale, columns)
bias_column = Reshape (bias, columns)
scaled = Mul (channels, scale_column)
moved = Add (scaled, bias_column)
shape = Shape (X)
Y = Reshape (moved, shape)
)"},
        },
    .infer = infer_group_normalization,
    .reference = run_group_normalization,
    .up = {{18, 21, step_scale_by_channel}},
    .down = {{21, 18, expand_group_normalization}},
};

}  // namespace tombolo::ops
