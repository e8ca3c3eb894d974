#include <cmath>

#include "ops/infer_generic.h"
#include "ops/kernels/compute.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

template <typename T>
Status lp_normalization(KernelContext& context, const Tensor& x) {
  TRY(const int64_t axis,
      normalize_axis(context.attributes.get_int("axis", -1), static_cast<int64_t>(x.rank())));
  const int64_t p = context.attributes.get_int("p", 2);
  if (p != 1 && p != 2) return context.error("p is " + std::to_string(p) + ", must be 1 or 2");
  const int64_t length = x.dim(static_cast<size_t>(axis));
  const int64_t inner = product(x.dims(), static_cast<size_t>(axis) + 1, x.rank());
  TRY(Tensor in, as<T>(context, x));
  TRY(Tensor y, context.allocate(dtype_of<T>(), x.dims()));
  const int64_t lines = x.size() == 0 ? 0 : x.size() / length;
  context.parallel_for(lines, 64, [&](int64_t first, int64_t last) {
    for (int64_t line = first; line < last; ++line) {
      const int64_t at = line / inner * length * inner + line % inner;
      double norm = 0;
      for (int64_t i = 0; i < length; ++i) {
        const double value = static_cast<double>(in.data<T>()[at + i * inner]);
        norm += p == 1 ? std::abs(value) : value * value;
      }
      if (p == 2) norm = std::sqrt(norm);
      for (int64_t i = 0; i < length; ++i) {
        const double value = static_cast<double>(in.data<T>()[at + i * inner]);
        y.data<T>()[at + i * inner] = norm == 0 ? T{} : static_cast<T>(value / norm);
      }
    }
  });
  return give(context, 0, x.dtype(), std::move(y));
}

Status run_lp_normalization(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x, [&]<typename T>() { return lp_normalization<T>(context, *x); });
}

}  // namespace

OPERATOR(LpNormalization) = {
    .name = "LpNormalization",
    .doc = "divides by the p-norm along an axis",
    .versions = {1, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"axis", -1},
            {"p", 2},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
    .infer = infer_unary,
    .reference = run_lp_normalization,
};

}  // namespace tombolo::ops
