// Gelu and its relatives, alone and with what is fused to them.

#include <cmath>
#include <numbers>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

double gelu(double x) { return x / 2 * (1 + std::erf(x / std::numbers::sqrt2)); }
double fast_gelu(double x) {
  return x / 2 * (1 + std::tanh(0.7978845608028654 * x + 0.035677408136300125 * x * x * x));
}

/// y = function(x + bias), bias [last axis of x] or absent.
template <typename Function>
Status biased(KernelContext& context, bool needs_bias, Function&& function) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* given, needs_bias ? context.input(1) : context.optional_input(1));
  return with_float(context, *x, [&]<typename T>() -> Status {
    TRY(const Tensor in, as<T>(context, *x));
    Tensor bias;
    if (given != nullptr) {
      if (x->rank() == 0) return context.error("a scalar has no axis for the bias");
      CHECK_OK(check_dims(context, "bias", *given, {{x->dim(x->rank() - 1)}}));
      TRY(bias, as<T>(context, *given));
    }
    TRY(Tensor y, context.allocate(dtype_of<T>(), x->dims()));
    const int64_t width = absent(bias) ? 1 : bias.size();
    context.parallel_for(x->size(), 1 << 12, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T sum = absent(bias) ? in.data<T>()[i]
                                   : static_cast<T>(in.data<T>()[i] + bias.data<T>()[i % width]);
        y.data<T>()[i] = static_cast<T>(function(static_cast<double>(sum)));
      }
    });
    return give(context, 0, x->dtype(), std::move(y));
  });
}

Status infer_biased(InferContext& context) {
  CHECK_OK(infer_unary(context));
  const SymShape* x = context.shape(0);
  const SymShape* bias = context.shape(1);
  if (x == nullptr || bias == nullptr) return ok();
  CHECK_OK(expect_rank(context, 1, 1));
  if (x->empty()) return context.error("a scalar has no axis for the bias");
  CHECK_OK(unify_dims(context, x->back(), bias->front(), "the bias and the last axis"));
  return ok();
}

Status run_ms_gelu(KernelContext& context) {
  return map(context, [](auto x) { return static_cast<decltype(x)>(gelu(x)); });
}
Status run_bias_gelu(KernelContext& context) { return biased(context, true, gelu); }
Status run_fast_gelu(KernelContext& context) { return biased(context, false, fast_gelu); }
Status run_quick_gelu(KernelContext& context) {
  const auto alpha = static_cast<double>(context.attributes.get_float("alpha", 1.702f));
  return map(context, [alpha](auto x) {
    const auto wide = static_cast<double>(x);
    return static_cast<decltype(x)>(wide / (1 + std::exp(-alpha * wide)));
  });
}

/// [N, S, 2 C] + bias: the first half times the gelu of the second.
Status run_bias_split_gelu(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* bias, context.input(1));
  if (x->rank() != 3 || x->dim(2) % 2 != 0)
    return context.error("X must be [batch, pixels, 2 * channels], is " + to_string(*x));
  CHECK_OK(check_dims(context, "bias", *bias, {{x->dim(2)}}));
  const int64_t width = x->dim(2) / 2;
  return with_float(context, *x, [&]<typename T>() -> Status {
    TRY(const Tensor in, as<T>(context, *x));
    TRY(const Tensor added, as<T>(context, *bias));
    TRY(Tensor y, context.allocate(dtype_of<T>(), {{x->dim(0), x->dim(1), width}}));
    for (int64_t i = 0; i < y.size(); ++i) {
      const int64_t row = i / width, column = i % width;
      const T* from = in.data<T>() + row * 2 * width;
      const double left = static_cast<double>(from[column]) + added.data<T>()[column];
      const double right =
          static_cast<double>(from[width + column]) + added.data<T>()[width + column];
      y.data<T>()[i] = static_cast<T>(left * gelu(right));
    }
    return give(context, 0, x->dtype(), std::move(y));
  });
}

Status infer_bias_split_gelu(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr) return ok();
  CHECK_OK(expect_rank(context, 0, 3));
  set_shape(context, 0, {(*x)[0], (*x)[1], floor_div((*x)[2], SymDim(2))});
  return ok();
}

/// x + bias + skip, bias [last axis].
Status run_bias_add(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* bias, context.input(1));
  TRY(const Tensor* skip, context.input(2));
  if (x->rank() != 3) return context.error("X must have rank 3, is " + to_string(*x));
  CHECK_OK(check_dims(context, "bias", *bias, {{x->dim(2)}}));
  CHECK_OK(check_dims(context, "skip", *skip, x->dims()));
  return with_float(context, *x, [&]<typename T>() -> Status {
    TRY(const Tensor in, as<T>(context, *x));
    TRY(const Tensor added, as<T>(context, *bias));
    TRY(const Tensor skipped, as<T>(context, *skip));
    TRY(Tensor y, context.allocate(dtype_of<T>(), x->dims()));
    for (int64_t i = 0; i < y.size(); ++i)
      y.data<T>()[i] = in.data<T>()[i] + added.data<T>()[i % x->dim(2)] + skipped.data<T>()[i];
    return give(context, 0, x->dtype(), std::move(y));
  });
}

}  // namespace

OPERATOR(microsoft_Gelu) = {
    .name = "Gelu",
    .domain = "com.microsoft",
    .doc = "x * Phi(x), exactly",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .types =
        {
            {"T", {{1, kFloats | kBf16}}},
        },
    .infer = infer_unary,
    .reference = run_ms_gelu,
};

OPERATOR(microsoft_BiasGelu) = {
    .name = "BiasGelu",
    .domain = "com.microsoft",
    .doc = "gelu(a + bias)",
    .versions = {1},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs =
        {
            {"C", "T"},
        },
    .types =
        {
            {"T", {{1, kFloats | kBf16}}},
        },
    .infer = infer_biased,
    .reference = run_bias_gelu,
};

OPERATOR(microsoft_FastGelu) = {
    .name = "FastGelu",
    .domain = "com.microsoft",
    .doc = "gelu(x + bias) by tanh",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"bias", "T", kOptional},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .types =
        {
            {"T", {{1, kFloats | kBf16}}},
        },
    .infer = infer_biased,
    .reference = run_fast_gelu,
};

OPERATOR(microsoft_QuickGelu) = {
    .name = "QuickGelu",
    .domain = "com.microsoft",
    .doc = "x * sigmoid(alpha * x)",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .attributes =
        {
            {"alpha", 1.702f},
        },
    .types =
        {
            {"T", {{1, kFloats | kBf16}}},
        },
    .infer = infer_unary,
    .reference = run_quick_gelu,
};

OPERATOR(microsoft_BiasSplitGelu) = {
    .name = "BiasSplitGelu",
    .domain = "com.microsoft",
    .doc = "x + bias: the first half times the gelu of the second",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"bias", "T"},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .types =
        {
            {"T", {{1, kF16 | kF32}}},
        },
    .infer = infer_bias_split_gelu,
    .reference = run_bias_split_gelu,
};

OPERATOR(microsoft_BiasAdd) = {
    .name = "BiasAdd",
    .domain = "com.microsoft",
    .doc = "x + bias + skip",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"bias", "T"},
            {"skip", "T"},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .types =
        {
            {"T", {{1, kF16 | kF32}}},
        },
    .infer = infer_unary,
    .reference = run_bias_add,
};

}  // namespace tombolo::ops
