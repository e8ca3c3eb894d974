#include <type_traits>
#include <vector>

#include "ops/infer_generic.h"
#include "ops/kernels/ml.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// Without a branch: what is missing comes in no order that one could foresee.
template <typename T>
T pick(bool first, T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return b ^ ((a ^ b) & -static_cast<T>(first));
  else
    return first ? a : b;
}

/// What is `marker` (NaN is any NaN) becomes the value of its feature, of which there are `count`.
template <typename T>
void impute(const T* __restrict from, int64_t size, T marker, const T* __restrict by, int64_t count,
            T* __restrict to) {
  const auto run = [&](auto&& missing) {
    if (count == 1) {
      const T value = by[0];
      for (int64_t i = 0; i < size; ++i) to[i] = pick(missing(from[i]), value, from[i]);
      return;
    }
    for (int64_t at = 0; at < size; at += count)
      for (int64_t i = 0; i < count; ++i) {
        const T given = from[at + i], value = by[i];
        to[at + i] = pick(missing(given), value, given);
      }
  };
  if (marker != marker)
    run([](T value) { return value != value; });
  else
    run([marker](T value) { return value == marker; });
}

Status run_imputer(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  if (is_string(x->dtype()) || is_complex(x->dtype()))
    return context.error("X must hold numbers, is " + to_string(*x));
  const bool floats = is_float(x->dtype());
  const auto by_float = context.attributes.get_floats("imputed_value_floats");
  const auto by_int = context.attributes.get_ints("imputed_value_int64s");
  const int64_t features = x->rank() == 0 ? 1 : x->dim(x->rank() - 1);
  const size_t count = floats ? by_float.size() : by_int.size();
  if (count != 1 && static_cast<int64_t>(count) != features)
    return context.error("imputed_value_" + std::string(floats ? "floats" : "int64s") + " has " +
                         std::to_string(count) + " values, needs one or " +
                         std::to_string(features));
  const double marker =
      static_cast<double>(context.attributes.get_float("replaced_value_float", 0));
  const int64_t int_marker = context.attributes.get_int("replaced_value_int64", 0);
  TRY(Tensor * y, context.output(0, x->dtype(), x->dims()));
  const auto by_type = [&]<typename T>(T missing_as, const auto& given) {
    const std::vector<T> by(given.begin(), given.end());
    impute(x->data<T>(), x->size(), missing_as, by.data(), static_cast<int64_t>(count),
           y->data<T>());
    return ok();
  };
  if (x->dtype() == DType::kFloat32) return by_type(static_cast<float>(marker), by_float);
  if (x->dtype() == DType::kFloat64) return by_type(marker, by_float);
  if (x->dtype() == DType::kInt64) return by_type(int_marker, by_int);
  for (int64_t i = 0; i < x->size(); ++i) {
    const size_t at = count == 1 ? 0 : static_cast<size_t>(i % features);
    if (floats) {
      const double value = x->get_double(i);
      const bool missing = value == marker || (marker != marker && value != value);
      y->set_double(i, missing ? static_cast<double>(by_float[at]) : value);
    } else {
      const int64_t value = x->get_int64(i);
      y->set_int64(i, value == int_marker ? by_int[at] : value);
    }
  }
  return ok();
}

}  // namespace

OPERATOR(Imputer) = {
    .name = "Imputer",
    .domain = "ai.onnx.ml",
    .doc = "replaces a marker value by a constant per feature",
    .versions = {1},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"imputed_value_floats", Attr::kFloats},
            {"imputed_value_int64s", Attr::kInts},
            {"replaced_value_float", 0.0f},
            {"replaced_value_int64", 0},
        },
    .types = {{"T", {{1, kFloats32 | kIndices}}}},
    .infer = infer_unary,
    .reference = run_imputer,
};

}  // namespace tombolo::ops
