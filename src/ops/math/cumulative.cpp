#include <algorithm>

#include "ops/expansions.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_cumulative(InferContext& context) {
  CHECK_OK(infer_unary(context));
  const SymShape* shape = context.shape(0);
  if (const auto axis = scalar_of(context, 1); axis && axis->is_value() && shape != nullptr)
    CHECK_OK(checked_axis(context, axis->value(), shape->size()));
  return ok();
}
/// Runs `step` along the axis; one running value for each line.
template <typename T, typename Step>
void accumulate(KernelContext& context, const Tensor& x, size_t axis, T start, Step step,
                Tensor& out) {
  const bool exclusive = context.attributes.get_int("exclusive", 0) != 0;
  const bool reverse = context.attributes.get_int("reverse", 0) != 0;
  const int64_t length = x.dim(axis), inner = product(x.dims(), axis + 1, x.rank());
  const int64_t outer = product(x.dims(), 0, axis);
  for (int64_t i = 0; i < outer * inner; ++i) {
    T sum = start;
    for (int64_t j = 0; j < length; ++j) {
      const int64_t at = (i / inner * length + (reverse ? length - 1 - j : j)) * inner + i % inner;
      T value;
      load_number(x, at, value);
      const T next = step(sum, value);
      store_number(exclusive ? sum : next, out, at);
      sum = next;
    }
  }
}

/// The same for elements of type E, all lines of a row at a time. Several outer parts go on at
/// once.
template <typename E, typename T, typename Step>
void accumulate_rows(KernelContext& context, const Tensor& x, size_t axis, T start, Step step,
                     Tensor& out) {
  const bool exclusive = context.attributes.get_int("exclusive", 0) != 0;
  const bool reverse = context.attributes.get_int("reverse", 0) != 0;
  const int64_t length = x.dim(axis), inner = product(x.dims(), axis + 1, x.rank());
  const int64_t outer = product(x.dims(), 0, axis);
  if (x.size() == 0) return;
  constexpr int64_t kLines = 512;  // whose sums stay in the cache
  const int64_t strips = (inner + kLines - 1) / kLines;
  context.parallel_for(
      outer * strips, std::max<int64_t>(1, (1 << 15) / (length * std::min(inner, kLines))),
      [&](int64_t begin, int64_t end) {
        T sums[kLines];
        for (int64_t task = begin; task < end; ++task) {
          const int64_t line = task % strips * kLines, n = std::min(kLines, inner - line);
          const int64_t first = task / strips * length * inner + line;
          std::fill_n(sums, n, start);
          for (int64_t j = 0; j < length; ++j) {
            const int64_t at = first + (reverse ? length - 1 - j : j) * inner;
            const E* from = x.data<E>() + at;
            E* to = out.data<E>() + at;
            if (exclusive) {
              for (int64_t i = 0; i < n; ++i) {
                to[i] = static_cast<E>(sums[i]);
                sums[i] = step(sums[i], static_cast<T>(from[i]));
              }
            } else {
              for (int64_t i = 0; i < n; ++i) {
                sums[i] = step(sums[i], static_cast<T>(from[i]));
                to[i] = static_cast<E>(sums[i]);
              }
            }
          }
        }
      });
}

template <typename Step>
Status run_cumulative(KernelContext& context, int start, Step step) {
  TRY(const Tensor* x, context.input(0));
  TRY(const int64_t given, scalar_int(context, 1, "axis"));
  TRY(const int64_t axis, normalize_axis(given, static_cast<int64_t>(x->rank())));
  const auto at = static_cast<size_t>(axis);
  TRY(Tensor * out, context.output(0, x->dtype(), x->dims()));
  if (x->dtype() == DType::kFloat32)
    accumulate_rows<float, double>(context, *x, at, start, step, *out);
  else if (x->dtype() == DType::kFloat64)
    accumulate_rows<double, double>(context, *x, at, start, step, *out);
  else if (x->dtype() == DType::kInt64)
    accumulate_rows<int64_t, int64_t>(context, *x, at, start, step, *out);
  else if (x->dtype() == DType::kInt32)
    accumulate_rows<int32_t, int64_t>(context, *x, at, start, step, *out);
  else if (is_float(x->dtype()))
    accumulate<double>(context, *x, at, start, step, *out);
  else if (is_integer(x->dtype()))
    accumulate<int64_t>(context, *x, at, start, step, *out);
  else
    return unsupported("a running sum or product of " + to_string(*x));
  return ok();
}

Status run_cumsum(KernelContext& context) {
  return run_cumulative(context, 0, [](auto a, auto b) { return wrap_add(a, b); });
}

}  // namespace

OPERATOR(CumSum) = {
    .name = "CumSum",
    .doc = "running sum along an axis",
    .versions = {11, 14},
    .inputs =
        {
            {"x", "T"},
            {"axis", "T2"},
        },
    .outputs = {{"y", "T"}},
    .attributes =
        {
            {"exclusive", 0},
            {"reverse", 0},
        },
    .types =
        {
            {"T", {{11, kInt32s | kFloats32}, {14, kF16 | kBf16}}},
            {"T2", {{11, kIndices}}},
        },
    .infer = infer_cumulative,
    .reference = run_cumsum,
};

namespace {

Status run_cumprod(KernelContext& context) {
  return run_cumulative(context, 1, [](auto a, auto b) { return wrap_mul(a, b); });
}

}  // namespace

OPERATOR(CumProd) = {
    .name = "CumProd",
    .doc = "running product along an axis",
    .versions = {26},
    .inputs =
        {
            {"x", "T"},
            {"axis", "T2"},
        },
    .outputs = {{"y", "T"}},
    .attributes =
        {
            {"exclusive", 0},
            {"reverse", 0},
        },
    .types =
        {
            {"T", {{26, kInt32s | kFloats | kBf16}}},
            {"T2", {{26, kIndices}}},
        },
    .infer = infer_cumulative,
    .reference = run_cumprod,
    .down = {{26, 0, expand_cumulative_product}},
};

}  // namespace tombolo::ops
