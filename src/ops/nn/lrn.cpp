#include <algorithm>
#include <cmath>

#include "ops/infer_generic.h"
#include "ops/kernels/compute.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

template <typename T>
Status lrn(KernelContext& context, const Tensor& x) {
  if (x.rank() < 2) return context.error("X must have a rank of at least 2, is " + to_string(x));
  const int64_t size = context.attributes.get_int("size", 0);
  if (size < 1) return context.error("size is " + std::to_string(size) + ", must be at least 1");
  const double alpha = static_cast<double>(context.attributes.get_float("alpha", 0.0001f));
  const double beta = static_cast<double>(context.attributes.get_float("beta", 0.75f));
  const double bias = static_cast<double>(context.attributes.get_float("bias", 1.0f));
  const int64_t channels = x.dim(1), before = (size - 1) / 2, after = size - 1 - before;
  const double factor = alpha / static_cast<double>(size);
  TRY(Tensor in, as<T>(context, x));
  TRY(Tensor y, context.allocate(dtype_of<T>(), x.dims()));
  const int64_t planes = x.size() == 0 ? 0 : x.dim(0) * channels;
  const int64_t plane = planes == 0 ? 0 : x.size() / planes;
  context.parallel_for(planes, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t n = task / channels, c = task % channels;
      const int64_t low = c > before ? c - before : 0;
      const int64_t high = after < channels - 1 - c ? c + after : channels - 1;
      const T* image = in.data<T>() + n * channels * plane;
      for (int64_t i = 0; i < plane; ++i) {
        double sum = 0;
        for (int64_t k = low; k <= high; ++k) {
          const double value = static_cast<double>(image[k * plane + i]);
          sum += value * value;
        }
        y.data<T>()[task * plane + i] = static_cast<T>(static_cast<double>(image[c * plane + i]) /
                                                       std::pow(bias + factor * sum, beta));
      }
    }
  });
  return give(context, 0, x.dtype(), std::move(y));
}

Status run_lrn(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x, [&]<typename T>() { return lrn<T>(context, *x); });
}

}  // namespace

OPERATOR(LRN) = {
    .name = "LRN",
    .doc = "normalises by the energy of neighbouring channels",
    .versions = {1, 13},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"alpha", 0.0001f},
            {"beta", 0.75f},
            {"bias", 1.0f},
            {"size", required(Attr::kInt)},
        },
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
    .infer = infer_unary,
    .reference = run_lrn,
};

}  // namespace tombolo::ops
