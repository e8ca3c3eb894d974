#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/moments.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_instance_normalization(InferContext& context) {
  CHECK_OK(infer_unary(context));
  const SymShape* x = context.shape(0);
  SymDim channels = x != nullptr && x->size() > 1 ? (*x)[1] : SymDim();
  for (size_t i = 1; i < 3; ++i) {
    const SymShape* shape = context.shape(i);
    if (shape == nullptr) continue;
    CHECK_OK(expect_rank(context, i, 1));
    TRY(channels, unify_dims(context, channels, (*shape)[0], "channels of X against scale and B"));
  }
  return ok();
}
}  // namespace

namespace {

template <typename T>
Status instance_normalization(KernelContext& context, const Tensor& x) {
  if (x.rank() < 2)
    return context.error("input must have a rank of at least 2, is " + to_string(x));
  const int64_t channels = x.dim(1), planes = x.size() == 0 ? 0 : x.dim(0) * channels;
  const int64_t plane = planes == 0 ? 0 : x.size() / planes;
  TRY(const Tensor* scale_input, context.input(1));
  TRY(const Tensor* bias_input, context.input(2));
  TRY(Tensor scale, as<T>(context, *scale_input));
  TRY(Tensor bias, as<T>(context, *bias_input));
  CHECK_OK(check_dims(context, "scale", scale, {{channels}}));
  CHECK_OK(check_dims(context, "B", bias, {{channels}}));
  const double epsilon = static_cast<double>(context.attributes.get_float("epsilon", 1e-5f));
  TRY(Tensor in, as<T>(context, x));
  TRY(Tensor y, context.allocate(dtype_of<T>(), x.dims()));
  context.parallel_for(planes, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const T* from = in.data<T>() + task * plane;
      const Moments moments = moments_of(from, plane);
      normalize(from, y.data<T>() + task * plane, plane, moments.mean,
                moments.inverse_deviation(epsilon) *
                    static_cast<double>(scale.data<T>()[task % channels]),
                static_cast<double>(bias.data<T>()[task % channels]));
    }
  });
  return give(context, 0, x.dtype(), std::move(y));
}

Status run_instance_normalization(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x,
                    [&]<typename T>() { return instance_normalization<T>(context, *x); });
}

}  // namespace

OPERATOR(InstanceNormalization) = {
    .name = "InstanceNormalization",
    .doc = "normalises each channel of each sample",
    .versions = {1, 6, 22},
    .inputs =
        {
            {"input", "T"},
            {"scale", "T"},
            {"B", "T"},
        },
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"consumed_inputs", Attr::kInts, {.until = 5}},
            {"epsilon", 1e-05f},
        },
    .types = {{"T", {{1, kFloats}, {22, kBf16}}}},
    .infer = infer_instance_normalization,
    .reference = run_instance_normalization,
};

}  // namespace tombolo::ops
