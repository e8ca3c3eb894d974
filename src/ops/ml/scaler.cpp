#include "ops/infer_generic.h"
#include "ops/kernels/ml.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

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
  TRY(const Tensor values, as<double>(context, *x));
  TRY(Tensor y, context.allocate(DType::kFloat64, x->dims()));
  const auto at = [&](std::span<const float> list, int64_t i, double fallback) {
    if (list.empty()) return fallback;
    return static_cast<double>(list[list.size() == 1 ? 0 : static_cast<size_t>(i % features)]);
  };
  for (int64_t i = 0; i < x->size(); ++i)
    y.data<double>()[i] = (values.data<double>()[i] - at(offsets, i, 0)) * at(scales, i, 1);
  return give(context, 0, DType::kFloat32, std::move(y));
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
