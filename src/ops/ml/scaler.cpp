#include <algorithm>
#include <vector>

#include "ops/infer_generic.h"
#include "ops/kernels/ml.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// One number for each feature, from a list of none, one or all of them.
std::vector<double> per_feature(std::span<const float> list, int64_t features, double fallback) {
  std::vector<double> numbers(static_cast<size_t>(features), fallback);
  for (size_t i = 0; i < numbers.size() && !list.empty(); ++i)
    numbers[i] = static_cast<double>(list[list.size() == 1 ? 0 : i]);
  return numbers;
}

Status run_scaler(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  const int64_t features = x->rank() == 0 ? 1 : x->dim(x->rank() - 1);
  const auto offsets = context.attributes.get_floats("offset");
  const auto scales = context.attributes.get_floats("scale");
  for (const auto list : {offsets, scales})
    if (list.size() > 1 && static_cast<int64_t>(list.size()) != features)
      return context.error("offset and scale must have one value or " + std::to_string(features) +
                           ", have " + std::to_string(offsets.size()) + " and " +
                           std::to_string(scales.size()));
  if (is_string(x->dtype()) || is_complex(x->dtype()))
    return context.error("X must hold numbers, is " + to_string(*x));
  TRY(Tensor * y, context.output(0, DType::kFloat32, x->dims()));
  if (y->size() == 0) return ok();
  const std::vector<double> offset = per_feature(offsets, features, 0);
  const std::vector<double> scale = per_feature(scales, features, 1);
  const auto run = [&](auto&& number) {
    float* to = y->data<float>();
    context.parallel_for(x->size() / features, std::max<int64_t>(1, 16384 / features),
                         [&](int64_t begin, int64_t end) {
                           for (int64_t at = begin * features; at < end * features; at += features)
                             for (int64_t i = 0; i < features; ++i)
                               to[at + i] = static_cast<float>((number(at + i) - offset.data()[i]) *
                                                               scale.data()[i]);
                         });
    return ok();
  };
  if (x->dtype() == DType::kFloat64)
    return run([from = x->data<double>()](int64_t i) { return from[i]; });
  if (x->dtype() == DType::kInt64)
    return run([from = x->data<int64_t>()](int64_t i) { return static_cast<double>(from[i]); });
  if (x->dtype() == DType::kInt32)
    return run([from = x->data<int32_t>()](int64_t i) { return static_cast<double>(from[i]); });
  return run([x](int64_t i) { return x->get_double(i); });
}

}  // namespace

OPERATOR(Scaler) = {
    .name = "Scaler",
    .domain = "ai.onnx.ml",
    .doc = "(x - offset) * scale per feature",
    .versions = {1},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "tensor(float)"}},
    .attributes =
        {
            {"offset", Attr::kFloats},
            {"scale", Attr::kFloats},
        },
    .types = {{"T", {{1, kFloats32 | kIndices}}}},
    .infer = infer_unary,
    .reference = run_scaler,
};

}  // namespace tombolo::ops
