#include "ops/schema.h"

namespace tombolo::ops {

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
};

}  // namespace tombolo::ops
