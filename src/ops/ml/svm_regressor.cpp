#include "ops/infer_helpers.h"
#include "ops/kernels/svm.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_svm_regressor(KernelContext& context) {
  TRY(const Tensor x, feature_rows(context, 0));
  TRY(SvmKernel kernel, SvmKernel::read(context));
  TRY(const PostTransform transform, read_post_transform(context));
  const auto coefficients = context.attributes.get_floats("coefficients");
  const auto vectors = context.attributes.get_floats("support_vectors");
  const auto rho = context.attributes.get_floats("rho");
  const int64_t supports = context.attributes.get_int("n_supports", 0), features = x.dim(1);
  const bool one_class = context.attributes.get_int("one_class", 0) != 0;
  const auto needed = supports > 0 ? supports : features;
  if (supports < 0 || supports > static_cast<int64_t>(vectors.size()) + 1 ||
      static_cast<int64_t>(coefficients.size()) < needed || rho.empty() ||
      static_cast<int64_t>(vectors.size()) < supports * features)
    return context.error(std::to_string(supports) + " support vectors of " +
                         std::to_string(features) + " features do not fit " +
                         std::to_string(vectors.size()) + " support_vectors, " +
                         std::to_string(coefficients.size()) + " coefficients and " +
                         std::to_string(rho.size()) + " rho");
  // Without support vectors the coefficients are those of a linear function.
  if (supports == 0) kernel.type = SvmKernel::Type::kLinear;
  TRY(Tensor y, context.allocate(DType::kFloat64, {{x.dim(0), 1}}));
  for (int64_t row = 0; row < x.dim(0); ++row) {
    const double* features_of_row = x.data<double>() + row * features;
    double sum = static_cast<double>(rho[0]);
    for (int64_t j = 0; j < supports; ++j)
      sum += static_cast<double>(coefficients[static_cast<size_t>(j)]) *
             kernel(features_of_row, vectors.data() + j * features, features);
    if (supports == 0) sum += kernel(features_of_row, coefficients.data(), features);
    if (one_class) sum = sum > 0 ? 1 : -1;
    y.data<double>()[row] = sum;
    transform_scores(transform, {y.data<double>() + row, 1});
  }
  return give(context, 0, DType::kFloat32, std::move(y));
}

}  // namespace

namespace {
Status infer_svm_regressor(InferContext& context) { return infer_rows(context, 0, 1); }
}  // namespace

OPERATOR(SVMRegressor) = {
    .name = "SVMRegressor",
    .domain = "ai.onnx.ml",
    .doc = "regression by support vectors",
    .versions = {1},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "tensor(float)"}},
    .attributes =
        {
            {"coefficients", Attr::kFloats},
            {"kernel_params", Attr::kFloats},
            {"kernel_type", "LINEAR"},
            {"n_supports", 0},
            {"one_class", 0},
            {"post_transform", "NONE"},
            {"rho", Attr::kFloats},
            {"support_vectors", Attr::kFloats},
        },
    .types = {{"T", {{1, kFloats32 | kIndices}}}},
    .infer = infer_svm_regressor,
    .reference = run_svm_regressor,
};

}  // namespace tombolo::ops
