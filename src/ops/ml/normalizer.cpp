#include <cmath>

#include "ops/infer_generic.h"
#include "ops/kernels/ml.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_normalizer(KernelContext& context) {
  const Text norm = context.attributes.get_string("norm", "MAX");
  if (norm != "MAX" && norm != "L1" && norm != "L2")
    return context.error("norm \"" + std::string(norm) + "\" is not known");
  TRY(const Tensor x, feature_rows(context, 0));
  TRY(Tensor y, context.allocate(DType::kFloat64, context.value(0).tensor().dims()));
  const int64_t features = x.dim(1);
  // Rows of nothing may be more than anyone can count.
  for (int64_t row = 0; features > 0 && row < x.dim(0); ++row) {
    const double* from = x.data<double>() + row * features;
    // MAX takes the elements as they are, L1 and L2 their magnitudes.
    double divisor = norm == "MAX" ? from[0] : 0;
    for (int64_t i = 0; i < features; ++i) {
      const double size = std::fabs(from[i]);
      divisor = norm == "MAX" ? std::fmax(divisor, from[i])
                              : divisor + (norm == "L1" ? size : size * size);
    }
    if (norm == "L2") divisor = std::sqrt(divisor);
    for (int64_t i = 0; i < features; ++i)
      y.data<double>()[row * features + i] = divisor == 0 ? from[i] : from[i] / divisor;
  }
  return give(context, 0, DType::kFloat32, std::move(y));
}

}  // namespace

OPERATOR(Normalizer) = {
    .name = "Normalizer",
    .domain = "ai.onnx.ml",
    .doc = "divides each row by its max, L1 or L2 norm",
    .versions = {1},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "tensor(float)"}},
    .attributes = {{"norm", "MAX"}},
    .types = {{"T", {{1, kFloats32 | kIndices}}}},
    .infer = infer_unary,
    .reference = run_normalizer,
};

}  // namespace tombolo::ops
