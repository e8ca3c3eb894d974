#include <type_traits>
#include <vector>

#include "ops/expansions.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_affine_grid(InferContext& context) {
  // size is [N, C, H, W] or [N, C, D, H, W]; the grid is [N, (D,) H, W, 2 or 3].
  const auto size = elements_or_unknown(context, 1);
  if (!size) return ok();
  if (size->size() != 4 && size->size() != 5)
    return context.error("size must hold 4 or 5 numbers, not " + std::to_string(size->size()));
  SymShape out = {(*size)[0]};
  out.insert(out.end(), size->begin() + 2, size->end());
  out.push_back(static_cast<int64_t>(size->size()) - 2);
  set_shape(context, 0, std::move(out));
  return ok();
}
Status run_affine_grid(KernelContext& context) {
  TRY(const Tensor* theta, context.input(0));
  TRY(const std::vector<int64_t> size, context.input_ints(1));
  const size_t axes = size.size() < 2 ? 0 : size.size() - 2;
  const bool aligned = context.attributes.get_int("align_corners", 0) != 0;
  if ((axes != 2 && axes != 3) || theta->rank() != 3 || !is_float(theta->dtype()) ||
      theta->dim(0) != size[0] || theta->dim(1) != static_cast<int64_t>(axes) ||
      theta->dim(2) != static_cast<int64_t>(axes) + 1)
    return context.error("theta " + to_string(*theta) + " does not fit size " +
                         dims_to_string(size));
  Dims dims{size[0]}, spatial;
  for (size_t j = 0; j < axes; ++j) spatial.push_back(size[2 + j]);
  for (const int64_t dim : spatial) dims.push_back(dim);
  dims.push_back(static_cast<int64_t>(axes));
  TRY(Tensor * out, context.output(0, theta->dtype(), dims));
  if (out->size() == 0) return ok();
  // The position of each element along each axis, from -1 to 1.
  std::vector<double> positions[3];
  for (size_t axis = 0; axis < axes; ++axis)
    for (int64_t i = 0; i < spatial[axis]; ++i) {
      const auto length = static_cast<double>(spatial[axis]), at = static_cast<double>(i);
      positions[axis].push_back(aligned ? 2 * at / std::max(length - 1, 1.0) - 1
                                        : (2 * at + 1) / length - 1);
    }
  const size_t last = axes - 1;
  const auto width = static_cast<size_t>(spatial[last]);
  std::vector<double> line(width * axes);
  float* floats = out->dtype() == DType::kFloat32 ? out->data<float>() : nullptr;
  int64_t to = 0;
  for (int64_t n = 0; n < size[0]; ++n) {
    double factors[12];
    for (size_t k = 0; k < axes * (axes + 1); ++k)
      factors[k] =
          theta->get_double(n * static_cast<int64_t>(axes * (axes + 1)) + static_cast<int64_t>(k));
    Odometer walk(std::span(spatial.span()).first(last));
    do {
      // The last axis comes first in a position: (x, y) or (x, y, z).
      for (size_t row = 0; row < axes; ++row) {
        const double* factor = factors + row * (axes + 1);
        // The other axes are the same along a line.
        double rest[2] = {0, 0};
        for (size_t j = 1; j < axes; ++j)
          rest[j - 1] = factor[j] * positions[last - j][static_cast<size_t>(walk.index[last - j])];
        const double* along = positions[last].data();
        const auto fill = [&](auto* target) {
          using T = std::remove_pointer_t<decltype(target)>;
          for (size_t i = 0; i < width; ++i)
            target[i * axes + row] =
                static_cast<T>(factor[axes] + factor[0] * along[i] + rest[0] + rest[1]);
        };
        floats != nullptr ? fill(floats + to) : fill(line.data());
      }
      if (floats == nullptr)
        store_doubles(line.data(), static_cast<int64_t>(line.size()), *out, to);
      to += static_cast<int64_t>(line.size());
    } while (walk.next());
  }
  return ok();
}

}  // namespace

OPERATOR(AffineGrid) = {
    .name = "AffineGrid",
    .doc = "sampling positions of an affine map, for GridSample",
    .versions = {20},
    .inputs =
        {
            {"theta", "T1"},
            {"size", "T2"},
        },
    .outputs = {{"grid", "T1"}},
    .attributes = {{"align_corners", 0}},
    .types =
        {
            {"T1", {{20, kFloats | kBf16}}},
            {"T2", {{20, kI64}}},
        },
    .functions = {{.opset = 20, .text = R"(
zero_i = Constant <value_int = 0> ()
one_i = Constant <value_int = 1> ()
one = CastLike (one_i, theta)
aligned_i = Constant <value_int: int = @align_corners> ()
aligned = CastLike (aligned_i, theta)
shift = Sub (one, aligned)
entries = Size (size)
four = Constant <value_int = 4> ()
flat = Equal (entries, four)
grid = If (flat) <then_branch = plane () => (grid_2d) {
  samples, channels, height, width = Split <num_outputs = 4> (size)
  h = Squeeze (height)
  w = Squeeze (width)
  y_n = CastLike (h, theta)
  y_span = Sub (y_n, aligned)
  y_divisor = Max (y_span, one)
  y_index_i = Range (zero_i, h, one_i)
  y_index = CastLike (y_index_i, theta)
  y_twice = Add (y_index, y_index)
  y_place = Add (y_twice, shift)
  y_part = Div (y_place, y_divisor)
  y_line = Sub (y_part, one)
  x_n = CastLike (w, theta)
  x_span = Sub (x_n, aligned)
  x_divisor = Max (x_span, one)
  x_index_i = Range (zero_i, w, one_i)
  x_index = CastLike (x_index_i, theta)
  x_twice = Add (x_index, x_index)
  x_place = Add (x_twice, shift)
  x_part = Div (x_place, x_divisor)
  x_line = Sub (x_part, one)
  full = Concat <axis = 0> (height, width)
  column_shape = Constant <value_ints = [-1, 1]> ()
  y_column = Reshape (y_line, column_shape)
  y_full = Expand (y_column, full)
  x_full = Expand (x_line, full)
  ones = Expand (one, full)
  last = Constant <value_ints = [-1]> ()
  y_entry = Unsqueeze (y_full, last)
  x_entry = Unsqueeze (x_full, last)
  one_entry = Unsqueeze (ones, last)
  points = Concat <axis = -1> (x_entry, y_entry, one_entry)
  point_shape = Constant <value_ints = [-1, 3]> ()
  base = Reshape (points, point_shape)
  map = Transpose <perm = [0, 2, 1]> (theta)
  moved = MatMul (base, map)
  pair = Constant <value_ints = [2]> ()
  shape_2d = Concat <axis = 0> (samples, height, width, pair)
  grid_2d = Reshape (moved, shape_2d)
}, else_branch = volume () => (grid_3d) {
  samples, channels, depth, height, width = Split <num_outputs = 5> (size)
  d = Squeeze (depth)
  h = Squeeze (height)
  w = Squeeze (width)
  z_n = CastLike (d, theta)
  z_span = Sub (z_n, aligned)
  z_divisor = Max (z_span, one)
  z_index_i = Range (zero_i, d, one_i)
  z_index = CastLike (z_index_i, theta)
  z_twice = Add (z_index, z_index)
  z_place = Add (z_twice, shift)
  z_part = Div (z_place, z_divisor)
  z_line = Sub (z_part, one)
  y_n = CastLike (h, theta)
  y_span = Sub (y_n, aligned)
  y_divisor = Max (y_span, one)
  y_index_i = Range (zero_i, h, one_i)
  y_index = CastLike (y_index_i, theta)
  y_twice = Add (y_index, y_index)
  y_place = Add (y_twice, shift)
  y_part = Div (y_place, y_divisor)
  y_line = Sub (y_part, one)
  x_n = CastLike (w, theta)
  x_span = Sub (x_n, aligned)
  x_divisor = Max (x_span, one)
  x_index_i = Range (zero_i, w, one_i)
  x_index = CastLike (x_index_i, theta)
  x_twice = Add (x_index, x_index)
  x_place = Add (x_twice, shift)
  x_part = Div (x_place, x_divisor)
  x_line = Sub (x_part, one)
  full = Concat <axis = 0> (depth, height, width)
  plane_shape = Constant <value_ints = [-1, 1, 1]> ()
  z_plane = Reshape (z_line, plane_shape)
  z_full = Expand (z_plane, full)
  column_shape = Constant <value_ints = [-1, 1]> ()
  y_column = Reshape (y_line, column_shape)
  y_full = Expand (y_column, full)
  x_full = Expand (x_line, full)
  ones = Expand (one, full)
  last = Constant <value_ints = [-1]> ()
  z_entry = Unsqueeze (z_full, last)
  y_entry = Unsqueeze (y_full, last)
  x_entry = Unsqueeze (x_full, last)
  one_entry = Unsqueeze (ones, last)
  points = Concat <axis = -1> (x_entry, y_entry, z_entry, one_entry)
  point_shape = Constant <value_ints = [-1, 4]> ()
  base = Reshape (points, point_shape)
  map = Transpose <perm = [0, 2, 1]> (theta)
  moved = MatMul (base, map)
  triple = Constant <value_ints = [3]> ()
  shape_3d = Concat <axis = 0> (samples, depth, height, width, triple)
  grid_3d = Reshape (moved, shape_3d)
}>
)"}},
    .infer = infer_affine_grid,
    .reference = run_affine_grid,
    .down = {{20, 0, expand_affine_grid}},
};

}  // namespace tombolo::ops
