#include <cmath>

#include "ops/infer_generic.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/whole_power.h"
#include "ops/kernels/window.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {

template <typename T>
Status lp_pool(KernelContext& context, const Tensor& x) {
  if (x.rank() < 2) return context.error("X must have a rank of at least 2, is " + to_string(x));
  TRY(const Window window, read_sliding_window(context, x.dims().span().subspan(2), {},
                                               context.attributes.get_int("ceil_mode", 0) != 0));
  // Version 1 gives p as a float.
  const double p = context.opset < 2 ? static_cast<double>(context.attributes.get_float("p", 2))
                                     : static_cast<double>(context.attributes.get_int("p", 2));
  if (!(p > 0)) return context.error("p is " + std::to_string(p) + ", must be positive");
  const Powers power(p);
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
        for_each_inside(window, at, [&](int64_t offset, int64_t) {
          sum += power(std::abs(static_cast<double>(from[offset])));
        });
        y.data<T>()[i] = static_cast<T>(std::pow(sum, 1 / p));
      }
    }
  });
  return give(context, 0, x.dtype(), std::move(y));
}

Status run_lp_pool(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x, [&]<typename T>() { return lp_pool<T>(context, *x); });
}

}  // namespace

OPERATOR(LpPool) = {
    .name = "LpPool",
    .doc = "p-norm of each window",
    .versions = {1, 2, 11, 18, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"auto_pad", "NOTSET"},
            {"kernel_shape", Attr::kInts, {.until = 1}},
            {"kernel_shape", required(Attr::kInts), {.since = 2}},
            {"p", 2.0f, {.until = 1}},
            {"p", 2, {.since = 2}},
            {"pads", Attr::kInts},
            {"strides", Attr::kInts},
            {"ceil_mode", 0, {.since = 18}},
            {"dilations", Attr::kInts, {.since = 18}},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
    .infer = infer_pool,
    .reference = run_lp_pool,
    .up = {{1, 2, step_whole_exponent}},
    .down = {{18, 11, step_no_dilations}},
};

}  // namespace tombolo::ops
