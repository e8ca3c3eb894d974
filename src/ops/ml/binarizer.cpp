#include "ops/infer_generic.h"
#include "ops/kernels/ml.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_binarizer(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  const double threshold = static_cast<double>(context.attributes.get_float("threshold", 0));
  if (x->dtype() == DType::kFloat32) {
    TRY(Tensor * out, context.output(0, DType::kFloat32, x->dims()));
    const float* from = x->data<float>();
    float* to = out->data<float>();
    const auto least = static_cast<float>(threshold);
    for (int64_t i = 0; i < x->size(); ++i) to[i] = from[i] > least ? 1.0f : 0.0f;
    return ok();
  }
  TRY(const Tensor values, as<double>(context, *x));
  TRY(Tensor y, context.allocate(DType::kFloat64, x->dims()));
  for (int64_t i = 0; i < x->size(); ++i)
    y.data<double>()[i] = values.data<double>()[i] > threshold ? 1 : 0;
  return give(context, 0, x->dtype(), std::move(y));
}

}  // namespace

OPERATOR(Binarizer) = {
    .name = "Binarizer",
    .domain = "ai.onnx.ml",
    .doc = "1 above the threshold, else 0",
    .versions = {1},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"threshold", 0.0f}},
    .types = {{"T", {{1, kFloats32 | kIndices}}}},
    .infer = infer_unary,
    .reference = run_binarizer,
};

}  // namespace tombolo::ops
