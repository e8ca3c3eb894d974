#include <limits>
#include <vector>

#include "ops/infer_generic.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/window.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {

template <typename T>
Status max_pool(KernelContext& context, const Tensor& x) {
  if (x.rank() < 2) return context.error("X must have a rank of at least 2, is " + to_string(x));
  TRY(const Window window, read_sliding_window(context, x.dims().span().subspan(2), {},
                                               context.attributes.get_int("ceil_mode", 0) != 0));
  Dims dims = {x.dim(0), x.dim(1)};
  for (int64_t dim : window.output) dims.push_back(dim);
  TRY(Tensor in, as<T>(context, x));
  TRY(Tensor y, context.allocate(dtype_of<T>(), dims));
  TRY(Tensor indices, context.allocate(DType::kInt64, context.wants_output(1) ? dims : Dims{0}));
  const bool column_major = context.attributes.get_int("storage_order", 0) == 1;
  const int64_t planes = y.size() == 0 ? 0 : x.dim(0) * x.dim(1);
  const int64_t in_plane = planes == 0 ? 0 : x.size() / planes;
  const int64_t out_plane = planes == 0 ? 0 : y.size() / planes;
  // Of images the reach of a window is known for each row and column.
  std::vector<Reach> reaches[2];
  const bool image = window.rank() == 2;
  for (size_t axis = 0; image && axis < 2; ++axis)
    for (int64_t i = 0; i < window.output[axis]; ++i)
      reaches[axis].push_back(reach(window, axis, i));
  const auto for_each = [&](const BoxIndex& at, auto&& visit) {
    if (!image) return for_each_inside(window, at, [&](int64_t offset, int64_t) { visit(offset); });
    const Reach &down = reaches[0][static_cast<size_t>(at[0])],
                &along = reaches[1][static_cast<size_t>(at[1])];
    for (int64_t i = down.first; i < down.last; ++i) {
      const int64_t row = (down.start + i * window.dilations[0]) * window.input[1] + along.start;
      for (int64_t j = along.first; j < along.last; ++j) visit(row + j * window.dilations[1]);
    }
  };
  context.parallel_for(planes, 1, [&](int64_t first, int64_t last) {
    for (int64_t plane = first; plane < last; ++plane) {
      const T* from = in.data<T>() + plane * in_plane;
      BoxIndex at(window.output);
      for (int64_t i = plane * out_plane; i < (plane + 1) * out_plane; ++i, at.next()) {
        // A window that holds padding only gives the least value and no place.
        T best = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                      : std::numeric_limits<T>::lowest();
        int64_t where = -1;
        for_each(at, [&](int64_t offset) {
          const T value = from[offset];
          // The first of equals counts; a NaN stays.
          if (where < 0 || value > best || (value != value && best == best)) {
            best = value;
            where = offset;
          }
        });
        y.data<T>()[i] = best;
        if (!context.wants_output(1)) continue;
        if (column_major && where >= 0) {
          int64_t rest = where, stride = window.input_size(), turned = 0;
          for (size_t axis = window.rank(); axis-- > 0; rest /= window.input[axis]) {
            stride /= window.input[axis];
            turned += rest % window.input[axis] * stride;
          }
          where = turned;
        }
        indices.data<int64_t>()[i] = where < 0 ? where : plane * in_plane + where;
      }
    }
  });
  if (context.wants_output(1)) context.set_output(1, RunValue(std::move(indices)));
  return give(context, 0, x.dtype(), std::move(y));
}

Status run_max_pool(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  if (x->dtype() == DType::kInt8) return max_pool<int8_t>(context, *x);
  if (x->dtype() == DType::kUInt8) return max_pool<uint8_t>(context, *x);
  return with_float(context, *x, [&]<typename T>() { return max_pool<T>(context, *x); });
}

}  // namespace

OPERATOR(MaxPool) = {
    .name = "MaxPool",
    .doc = "maximum of each window, and where it was on request",
    .versions = {1, 8, 10, 11, 12, 22},
    .inputs = {{"X", "T"}},
    .outputs =
        {
            {"Y", "T"},
            {"Indices", "I", kOptional, {.since = 8}},
        },
    .attributes =
        {
            {"auto_pad", "NOTSET"},
            {"kernel_shape", required(Attr::kInts)},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
            {"storage_order", 0, {.since = 8}},
            {"ceil_mode", 0, {.since = 10}},
            {"dilations", Attr::kInts, {.since = 10}},
        },
    .types =
        {
            {"T", {{1, kFloats}, {12, kInt8s}, {22, kBf16}}},
            {"I", {{8, kI64}}, {.since = 8}},
        },
    .infer = infer_pool,
    .reference = run_max_pool,
    .down = {{10, 8, step_no_dilations}},
};

}  // namespace tombolo::ops
