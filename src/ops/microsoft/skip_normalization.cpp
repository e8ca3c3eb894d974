// Layer normalisation of a sum, with a mean or without.

#include <cmath>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/moments.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// `skip` adds to `input` row by row: it has its shape, or lacks the batch, or has 1 there.
Result<int64_t> skip_period(const KernelContext& context, const Tensor& input, const Tensor& skip) {
  if (skip.dims() == input.dims()) return input.size();
  const bool without = skip.rank() == 2 && input.rank() == 3 && skip.dim(0) == input.dim(1) &&
                       skip.dim(1) == input.dim(2);
  const bool once = skip.rank() == 3 && input.rank() == 3 && skip.dim(0) == 1 &&
                    skip.dim(1) == input.dim(1) && skip.dim(2) == input.dim(2);
  if (without || once) return skip.size();
  return context.error("skip must have the shape of input, " + to_string(input) + ", is " +
                       to_string(skip));
}

template <typename T>
Status skip_normalization(KernelContext& context, const Tensor& input, bool centred) {
  TRY(const Tensor* skip, context.input(1));
  TRY(const Tensor* gamma, context.input(2));
  TRY(const Tensor* beta, centred ? context.optional_input(3) : Result<const Tensor*>(nullptr));
  TRY(const Tensor* bias, context.optional_input(centred ? 4 : 3));
  if (input.rank() != 2 && input.rank() != 3)
    return context.error("input must have rank 2 or 3, is " + to_string(input));
  const int64_t width = input.dim(input.rank() - 1);
  const int64_t rows = width == 0 ? 0 : input.size() / width;
  TRY(const int64_t period, skip_period(context, input, *skip));
  CHECK_OK(check_dims(context, "gamma", *gamma, {{width}}));
  if (beta != nullptr) CHECK_OK(check_dims(context, "beta", *beta, {{width}}));
  if (bias != nullptr) CHECK_OK(check_dims(context, "bias", *bias, {{width}}));
  const auto epsilon = static_cast<double>(context.attributes.get_float("epsilon", 1e-12f));
  TRY(const Tensor in, as<T>(context, input));
  TRY(const Tensor skipped, as<T>(context, *skip));
  TRY(const Tensor scale, as<T>(context, *gamma));
  TRY(const Tensor shift, beta == nullptr ? Result<Tensor>(Tensor()) : as<T>(context, *beta));
  TRY(const Tensor added, bias == nullptr ? Result<Tensor>(Tensor()) : as<T>(context, *bias));
  TRY(Tensor sum, context.allocate(dtype_of<T>(), input.dims()));
  TRY(Tensor y, context.allocate(dtype_of<T>(), input.dims()));
  Dims kept = input.dims();
  kept[kept.size() - 1] = 1;
  TRY(Tensor mean, context.allocate(dtype_of<T>(), kept));
  TRY(Tensor deviation, context.allocate(dtype_of<T>(), kept));
  context.parallel_for(rows, 1, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      T* total = sum.data<T>() + row * width;
      for (int64_t i = 0; i < width; ++i) {
        const int64_t at = row * width + i;
        total[i] = in.data<T>()[at] + skipped.data<T>()[at % period];
        if (!absent(added)) total[i] += added.data<T>()[i];
      }
      Moments moments;
      if (centred) {
        moments = moments_of(total, width);
      } else {
        double squares = 0;
        for (int64_t i = 0; i < width; ++i)
          squares += static_cast<double>(total[i]) * static_cast<double>(total[i]);
        moments.variance = squares / static_cast<double>(width);
      }
      const double inverse = moments.inverse_deviation(epsilon);
      mean.data<T>()[row] = static_cast<T>(moments.mean);
      deviation.data<T>()[row] = static_cast<T>(inverse);
      for (int64_t i = 0; i < width; ++i) {
        double value = (static_cast<double>(total[i]) - moments.mean) * inverse *
                       static_cast<double>(scale.data<T>()[i]);
        if (!absent(shift)) value += static_cast<double>(shift.data<T>()[i]);
        y.data<T>()[row * width + i] = static_cast<T>(value);
      }
    }
  });
  CHECK_OK(give(context, 1, DType::kFloat32, std::move(mean)));
  CHECK_OK(give(context, 2, DType::kFloat32, std::move(deviation)));
  CHECK_OK(give(context, 3, input.dtype(), std::move(sum)));
  return give(context, 0, input.dtype(), std::move(y));
}

Status run_skip(KernelContext& context, bool centred) {
  TRY(const Tensor* input, context.input(0));
  return with_float(context, *input,
                    [&]<typename T>() { return skip_normalization<T>(context, *input, centred); });
}
Status run_skip_layer_normalization(KernelContext& context) { return run_skip(context, true); }
Status run_skip_simplified(KernelContext& context) { return run_skip(context, false); }

Status infer_skip_normalization(InferContext& context) {
  CHECK_OK(infer_unary(context));
  const SymShape* input = context.shape(0);
  if (input == nullptr || input->empty()) return ok();
  SymShape kept = *input;
  kept.back() = 1;
  for (size_t i = 1; i <= 2; ++i) context.set_tensor(i, DType::kFloat32, kept);
  context.set_tensor(3, context.elem(0), *input);
  return ok();
}

/// The type in which SimplifiedLayerNormalization gives its statistics.
DType stash_type(const AttributeReader& attributes) {
  constexpr auto kDouble = static_cast<int64_t>(DType::kFloat64);
  return attributes.get_int("stash_type", 1) == kDouble ? DType::kFloat64 : DType::kFloat32;
}

/// x / sqrt(mean(x^2) + epsilon) * scale over the axes from `axis` on.
template <typename T>
Status simplified(KernelContext& context, const Tensor& x) {
  TRY(const Tensor* scale, context.input(1));
  TRY(const int64_t axis,
      normalize_axis(context.attributes.get_int("axis", -1), static_cast<int64_t>(x.rank())));
  const auto normalized = x.dims().span().subspan(static_cast<size_t>(axis));
  Dims kept(x.dims().span().first(static_cast<size_t>(axis)));
  const int64_t rows = element_count(kept), length = element_count(normalized);
  kept.resize(static_cast<uint32_t>(x.rank()), 1);
  const auto epsilon = static_cast<double>(context.attributes.get_float("epsilon", 1e-5f));
  TRY(Tensor factor, as<T>(context, *scale));
  int64_t period = length;
  if (factor.dims() != Dims(normalized)) {
    TRY(factor, expanded<T>(context, "scale", factor, x.dims()));
    period = x.size();
  }
  TRY(const Tensor in, as<T>(context, x));
  TRY(Tensor y, context.allocate(dtype_of<T>(), x.dims()));
  TRY(Tensor deviation, context.allocate(DType::kFloat64, kept));
  context.parallel_for(rows, 1, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      const T* from = in.data<T>() + row * length;
      double squares = 0;
      for (int64_t i = 0; i < length; ++i)
        squares += static_cast<double>(from[i]) * static_cast<double>(from[i]);
      const double inverse = 1 / std::sqrt(squares / static_cast<double>(length) + epsilon);
      deviation.data<double>()[row] = inverse;
      for (int64_t i = 0; i < length; ++i) {
        const int64_t at = row * length + i;
        y.data<T>()[at] = static_cast<T>(static_cast<double>(from[i]) * inverse *
                                         static_cast<double>(factor.data<T>()[at % period]));
      }
    }
  });
  CHECK_OK(give(context, 1, stash_type(context.attributes), std::move(deviation)));
  return give(context, 0, scale->dtype(), std::move(y));
}

Status run_simplified(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  return with_float(context, *x, [&]<typename T>() { return simplified<T>(context, *x); });
}

Status infer_simplified(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr) return ok();
  TRY(const size_t axis, checked_axis(context, context.attributes.get_int("axis", -1), x->size()));
  set_shape(context, 0, *x);
  SymShape kept = *x;
  for (size_t i = axis; i < kept.size(); ++i) kept[i] = 1;
  context.set_tensor(1, stash_type(context.attributes), std::move(kept));
  return ok();
}

}  // namespace

OPERATOR(microsoft_SkipLayerNormalization) = {
    .name = "SkipLayerNormalization",
    .domain = "com.microsoft",
    .doc = "layer normalisation of input + skip + bias",
    .versions = {1},
    .inputs =
        {
            {"input", "T"},
            {"skip", "T"},
            {"gamma", "T"},
            {"beta", "T", kOptional},
            {"bias", "T", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"mean", "U", kOptional},
            {"inv_std_var", "U", kOptional},
            {"input_skip_bias_sum", "T", kOptional},
        },
    .attributes =
        {
            {"epsilon", 1e-12f},
        },
    .types =
        {
            {"T", {{1, kBf16 | kF16 | kF32}}},
            {"U", {{1, kF32}}},
        },
    .infer = infer_skip_normalization,
    .reference = run_skip_layer_normalization,
};

OPERATOR(microsoft_SkipSimplifiedLayerNormalization) = {
    .name = "SkipSimplifiedLayerNormalization",
    .domain = "com.microsoft",
    .doc = "root-mean-square normalisation of input + skip + bias",
    .versions = {1},
    .inputs =
        {
            {"input", "T"},
            {"skip", "T"},
            {"gamma", "T"},
            {"bias", "T", kOptional},
        },
    .outputs =
        {
            {"output", "T"},
            {"mean", "U", kOptional},
            {"inv_std_var", "U", kOptional},
            {"input_skip_bias_sum", "T", kOptional},
        },
    .attributes =
        {
            {"epsilon", 1e-12f},
        },
    .types =
        {
            {"T", {{1, kBf16 | kF16 | kF32}}},
            {"U", {{1, kF32}}},
        },
    .infer = infer_skip_normalization,
    .reference = run_skip_simplified,
};

OPERATOR(experimental_SimplifiedLayerNormalization) = {
    .name = "SimplifiedLayerNormalization",
    .domain = "ai.onnx.experimental",
    .doc = "root-mean-square normalisation, as ONNX Runtime has it in ai.onnx",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"scale", "V"},
        },
    .outputs =
        {
            {"Y", "V"},
            {"inv_std_var", "U", kOptional},
        },
    .attributes =
        {
            {"axis", -1},
            {"epsilon", 1e-05f},
            {"stash_type", 1},
        },
    .types =
        {
            {"T", {{1, kFloats | kBf16}}},
            {"U", {{1, kFloats32}}},
            {"V", {{1, kFloats | kBf16}}},
        },
    .infer = infer_simplified,
    .reference = run_simplified,
};

}  // namespace tombolo::ops
