// Group normalisation of diffusion models: channels last, an activation, a sum before it.

#include <algorithm>
#include <cmath>
#include <string>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/moments.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

template <typename T>
Status group_norm(KernelContext& context, const Tensor& x, bool skips) {
  TRY(const Tensor* gamma, context.input(1));
  TRY(const Tensor* beta, context.input(2));
  const auto& attributes = context.attributes;
  const bool last = attributes.get_int("channels_last", 1) != 0;
  const int64_t groups = attributes.get_int("groups", 0);
  if (x.rank() < 3) return context.error("X must have rank 3 at least, is " + to_string(x));
  const int64_t channels = x.dim(last ? x.rank() - 1 : 1);
  if (groups < 1 || channels % groups != 0)
    return context.error("groups is " + std::to_string(groups) + ", X has " +
                         std::to_string(channels) + " channels");
  CHECK_OK(check_dims(context, "gamma", *gamma, {{channels}}));
  CHECK_OK(check_dims(context, "beta", *beta, {{channels}}));
  const int64_t batch = x.dim(0);
  const int64_t pixels = x.size() == 0 ? 0 : x.size() / batch / channels;
  TRY(const Tensor in, as<T>(context, x));
  TRY(Tensor sum, context.allocate(dtype_of<T>(), x.dims()));
  std::copy_n(in.data<T>(), in.size(), sum.data<T>());
  // Position of (image, channel, pixel).
  const auto at = [&](int64_t n, int64_t c, int64_t p) {
    return last ? (n * pixels + p) * channels + c : (n * channels + c) * pixels + p;
  };
  if (skips) {
    TRY(const Tensor* skip, context.input(3));
    TRY(const Tensor* bias, context.optional_input(4));
    TRY(const Tensor more, as<T>(context, *skip));
    // Of X's shape, or one value for each image and channel.
    const bool whole = skip->dims() == x.dims();
    if (!whole && skip->size() != batch * channels)
      return context.error("skip must have X's shape or a value for each image and channel, is " +
                           to_string(*skip));
    if (!whole && (skip->rank() == 0 || skip->dim(0) != batch))
      return context.error("skip must begin with the batch, is " + to_string(*skip));
    TRY(const Tensor added, bias == nullptr ? Result<Tensor>(Tensor()) : as<T>(context, *bias));
    if (bias != nullptr) CHECK_OK(check_dims(context, "bias", *bias, {{channels}}));
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t p = 0; p < pixels; ++p) {
          T& value = sum.data<T>()[at(n, c, p)];
          value += more.data<T>()[whole ? at(n, c, p) : n * channels + c];
          if (bias != nullptr) value += added.data<T>()[c];
        }
  }
  TRY(const Tensor scale, as<T>(context, *gamma));
  TRY(const Tensor shift, as<T>(context, *beta));
  TRY(Tensor y, context.allocate(dtype_of<T>(), x.dims()));
  const auto epsilon = static_cast<double>(attributes.get_float("epsilon", 1e-5f));
  const int64_t activation = attributes.get_int("activation", 0);
  if (activation != 0 && activation != 1)
    return context.error("activation is " + std::to_string(activation) + ", must be 0 or 1");
  const int64_t width = channels / groups;
  context.parallel_for(batch * groups, 1, [&](int64_t first, int64_t end) {
    for (int64_t task = first; task < end; ++task) {
      const int64_t n = task / groups, c0 = task % groups * width;
      const Moments moments =
          last ? moments_of(sum.data<T>() + at(n, c0, 0), width, pixels, channels)
               : moments_of(sum.data<T>() + at(n, c0, 0), width * pixels);
      const double inverse = moments.inverse_deviation(epsilon);
      for (int64_t c = c0; c < c0 + width; ++c)
        for (int64_t p = 0; p < pixels; ++p) {
          double value = (static_cast<double>(sum.data<T>()[at(n, c, p)]) - moments.mean) * inverse;
          value = value * static_cast<double>(scale.data<T>()[c]) +
                  static_cast<double>(shift.data<T>()[c]);
          if (activation == 1) value = value / (1 + std::exp(-value));
          y.data<T>()[at(n, c, p)] = static_cast<T>(value);
        }
    }
  });
  if (skips) CHECK_OK(give(context, 1, x.dtype(), std::move(sum)));
  return give(context, 0, x.dtype(), std::move(y));
}

Status run_with(KernelContext& context, bool skips) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x, [&]<typename T>() { return group_norm<T>(context, *x, skips); });
}
Status run_group_norm(KernelContext& context) { return run_with(context, false); }
Status run_skip_group_norm(KernelContext& context) { return run_with(context, true); }

Status infer_skip_group_norm(InferContext& context) {
  context.same_as_input(0, 0);
  context.same_as_input(1, 0);
  return ok();
}

}  // namespace

OPERATOR(microsoft_GroupNorm) = {
    .name = "GroupNorm",
    .domain = "com.microsoft",
    .doc = "group normalisation, channels last, with SiLU on request",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"gamma", "M"},
            {"beta", "M"},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .attributes =
        {
            {"activation", required(Attr::kInt)},
            {"channels_last", 1},
            {"epsilon", 1e-05f},
            {"groups", required(Attr::kInt)},
        },
    .types =
        {
            {"T", {{1, kF16 | kF32}}},
            {"M", {{1, kF16 | kF32}}},
        },
    .infer = infer_unary,
    .reference = run_group_norm,
};

OPERATOR(microsoft_SkipGroupNorm) = {
    .name = "SkipGroupNorm",
    .domain = "com.microsoft",
    .doc = "GroupNorm of X + skip + bias",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"gamma", "M"},
            {"beta", "M"},
            {"skip", "T"},
            {"bias", "T", kOptional},
        },
    .outputs =
        {
            {"Y", "T"},
            {"S", "T", kOptional},
        },
    .attributes =
        {
            {"activation", required(Attr::kInt)},
            {"channels_last", 1},
            {"epsilon", 1e-05f},
            {"groups", required(Attr::kInt)},
        },
    .types =
        {
            {"T", {{1, kF16 | kF32}}},
            {"M", {{1, kF16 | kF32}}},
        },
    .infer = infer_skip_group_norm,
    .reference = run_skip_group_norm,
};

}  // namespace tombolo::ops
