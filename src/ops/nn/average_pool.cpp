#include <algorithm>

#include "ops/infer_generic.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/window.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {

/// Kernel positions of the window at output index `at` that lie inside the padded input: a window
/// cut off by rounding the output's size up does not count what lies beyond the padding.
int64_t padded_count(const Window& window, const BoxIndex& at) {
  int64_t count = 1;
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    const int64_t start = at[axis] * window.strides[axis] - window.pads_begin[axis];
    const int64_t room = window.input[axis] + window.pads_end[axis] - start;
    const int64_t step = window.dilations[axis];
    count *= std::clamp<int64_t>((room + step - 1) / step, 0, window.kernel[axis]);
  }
  return count;
}

template <typename T>
Status average_pool(KernelContext& context, const Tensor& x) {
  if (x.rank() < 2) return context.error("X must have a rank of at least 2, is " + to_string(x));
  TRY(const Window window, read_sliding_window(context, x.dims().span().subspan(2), {},
                                               context.attributes.get_int("ceil_mode", 0) != 0));
  const bool count_pads = context.attributes.get_int("count_include_pad", 0) != 0;
  Dims dims = {x.dim(0), x.dim(1)};
  for (int64_t dim : window.output) dims.push_back(dim);
  TRY(Tensor in, as<T>(context, x));
  TRY(Tensor y, context.allocate(dtype_of<T>(), dims));
  const int64_t planes = y.size() == 0 ? 0 : x.dim(0) * x.dim(1);
  const int64_t in_plane = planes == 0 ? 0 : x.size() / planes;
  const int64_t out_plane = planes == 0 ? 0 : y.size() / planes;
  context.parallel_for(planes, 1, [&](int64_t first, int64_t last) {
    for (int64_t plane = first; plane < last; ++plane) {
      const T* from = in.data<T>() + plane * in_plane;
      BoxIndex at(window.output);
      for (int64_t i = plane * out_plane; i < (plane + 1) * out_plane; ++i, at.next()) {
        double sum = 0;
        int64_t count = 0;
        for_each_inside(window, at, [&](int64_t offset, int64_t) {
          sum += static_cast<double>(from[offset]);
          ++count;
        });
        if (count_pads) count = padded_count(window, at);
        y.data<T>()[i] = count == 0 ? T{} : static_cast<T>(sum / static_cast<double>(count));
      }
    }
  });
  return give(context, 0, x.dtype(), std::move(y));
}

Status run_average_pool(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x, [&]<typename T>() { return average_pool<T>(context, *x); });
}

}  // namespace

OPERATOR(AveragePool) = {
    .name = "AveragePool",
    .doc = "mean of each window",
    .versions = {1, 7, 10, 11, 19, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"auto_pad", "NOTSET"},
            {"kernel_shape", required(Attr::kInts)},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
            {"count_include_pad", 0, {.since = 7}},
            {"ceil_mode", 0, {.since = 10}},
            {"dilations", Attr::kInts, {.since = 19}},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
    .infer = infer_pool,
    .reference = run_average_pool,
    .down = {{19, 11, step_no_dilations}, {10, 7, step_no_dilations}},
};

}  // namespace tombolo::ops
