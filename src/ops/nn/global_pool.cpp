#include <cmath>
#include <limits>

#include "ops/infer_generic.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/whole_power.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {

/// y[n, c] = fold of the plane, for x [N, C, spatial...]; fold(const T*, count) -> double.
template <typename T, typename Fold>
Status global_pool(KernelContext& context, const Tensor& x, Fold fold) {
  if (x.rank() < 2) return context.error("X must have a rank of at least 2, is " + to_string(x));
  Dims dims = {x.dim(0), x.dim(1)};
  dims.resize(static_cast<uint32_t>(x.rank()), 1);
  TRY(Tensor in, as<T>(context, x));
  TRY(Tensor y, context.allocate(dtype_of<T>(), dims));
  const int64_t planes = y.size(), size = planes == 0 ? 0 : x.size() / planes;
  context.parallel_for(planes, 1, [&](int64_t first, int64_t last) {
    for (int64_t plane = first; plane < last; ++plane)
      y.data<T>()[plane] = static_cast<T>(fold(in.data<T>() + plane * size, size));
  });
  return give(context, 0, x.dtype(), std::move(y));
}

Status run_global_average_pool(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x, [&]<typename T>() {
    return global_pool<T>(context, *x, [](const T* from, int64_t count) {
      double sum = 0;
      for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(from[i]);
      return sum / static_cast<double>(count);
    });
  });
}

Status run_global_max_pool(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x, [&]<typename T>() {
    return global_pool<T>(context, *x, [](const T* from, int64_t count) {
      T best = -std::numeric_limits<T>::infinity();
      for (int64_t i = 0; i < count; ++i)
        if (!(from[i] <= best) && best == best) best = from[i];  // a NaN stays
      return best;
    });
  });
}

Status run_global_lp_pool(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  // Version 1 gives p as a float.
  const double p = context.opset < 2 ? static_cast<double>(context.attributes.get_float("p", 2))
                                     : static_cast<double>(context.attributes.get_int("p", 2));
  if (!(p > 0)) return context.error("p is " + std::to_string(p) + ", must be positive");
  return with_float(context, *x, [&]<typename T>() {
    return global_pool<T>(context, *x, [p, power = Powers(p)](const T* from, int64_t count) {
      double sum = 0;
      for (int64_t i = 0; i < count; ++i) sum += power(std::abs(static_cast<double>(from[i])));
      return std::pow(sum, 1 / p);
    });
  });
}

}  // namespace

OPERATOR(GlobalAveragePool) = {
    .name = "GlobalAveragePool",
    .doc = "mean over all spatial axes",
    .versions = {1, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
    .infer = infer_global_pool,
    .reference = run_global_average_pool,
};

OPERATOR(GlobalMaxPool) = {
    .name = "GlobalMaxPool",
    .doc = "maximum over all spatial axes",
    .versions = {1, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
    .infer = infer_global_pool,
    .reference = run_global_max_pool,
};

OPERATOR(GlobalLpPool) = {
    .name = "GlobalLpPool",
    .doc = "p-norm over all spatial axes",
    .versions = {1, 2, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"p", 2.0f, {.until = 1}},
            {"p", 2, {.since = 2}},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
    .infer = infer_global_pool,
    .reference = run_global_lp_pool,
    .up = {{1, 2, step_whole_exponent}},
};

}  // namespace tombolo::ops
