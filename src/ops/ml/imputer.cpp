#include "ops/infer_generic.h"
#include "ops/kernels/ml.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

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
  if (x->dtype() == DType::kFloat32) {
    const float* from = x->data<float>();
    float* to = y->data<float>();
    const auto missing_as = static_cast<float>(marker);
    const auto impute = [&](auto&& missing) {
      if (count == 1) {
        const float by = by_float[0];
        for (int64_t i = 0; i < x->size(); ++i) to[i] = missing(from[i]) ? by : from[i];
      } else {
        for (int64_t i = 0; i < x->size(); i += features)
          for (int64_t j = 0; j < features; ++j)
            to[i + j] = missing(from[i + j]) ? by_float[static_cast<size_t>(j)] : from[i + j];
      }
    };
    if (missing_as != missing_as)
      impute([](float value) { return value != value; });
    else
      impute([missing_as](float value) { return value == missing_as; });
    return ok();
  }
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
