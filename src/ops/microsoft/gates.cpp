// Gates, residuals and norms that newer decoders put between their layers.

#include <cmath>
#include <string>
#include <utility>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

double silu(double x) { return x / (1 + std::exp(-x)); }

/// x + gate * y, the gate broadcast.
Status run_gated_add(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* y, context.input(1));
  TRY(const Tensor* gate, context.input(2));
  CHECK_OK(check_dims(context, "Y", *y, x->dims()));
  return with_float(context, *x, [&]<typename T>() -> Status {
    TRY(const Tensor a, as<T>(context, *x));
    TRY(const Tensor b, as<T>(context, *y));
    TRY(const Tensor wide, as<T>(context, *gate));
    TRY(const Tensor g, expanded<T>(context, "gate", wide, x->dims()));
    TRY(Tensor out, context.allocate(dtype_of<T>(), x->dims()));
    for (int64_t i = 0; i < out.size(); ++i)
      out.data<T>()[i] = a.data<T>()[i] + g.data<T>()[i] * b.data<T>()[i];
    return give(context, 0, x->dtype(), std::move(out));
  });
}

/// x / rms(x) * scale * activation(gate) over the last axis.
Status run_gated_rms_norm(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* scale, context.input(1));
  TRY(const Tensor* gate, context.input(2));
  const Text kind = context.attributes.get_string("activation", "silu");
  if (kind != "silu" && kind != "swish" && kind != "sigmoid")
    return context.error("activation is \"" + std::string(kind) + "\"");
  if (x->rank() < 1) return context.error("X must not be a scalar");
  const int64_t width = x->dim(x->rank() - 1);
  CHECK_OK(check_dims(context, "scale", *scale, {{width}}));
  CHECK_OK(check_dims(context, "gate", *gate, x->dims()));
  const auto epsilon = static_cast<double>(context.attributes.get_float("epsilon", 1e-5f));
  return with_float(context, *x, [&]<typename T>() -> Status {
    TRY(const Tensor in, as<T>(context, *x));
    TRY(const Tensor factor, as<T>(context, *scale));
    TRY(const Tensor g, as<T>(context, *gate));
    TRY(Tensor y, context.allocate(dtype_of<T>(), x->dims()));
    for (int64_t row = 0; width != 0 && row < y.size() / width; ++row) {
      double squares = 0;
      for (int64_t i = row * width; i < (row + 1) * width; ++i)
        squares += static_cast<double>(in.data<T>()[i]) * static_cast<double>(in.data<T>()[i]);
      const double inverse = 1 / std::sqrt(squares / static_cast<double>(width) + epsilon);
      for (int64_t j = 0; j < width; ++j) {
        const int64_t i = row * width + j;
        const auto z = static_cast<double>(g.data<T>()[i]);
        y.data<T>()[i] = static_cast<T>(static_cast<double>(in.data<T>()[i]) * inverse *
                                        static_cast<double>(factor.data<T>()[j]) *
                                        (kind == "sigmoid" ? 1 / (1 + std::exp(-z)) : silu(z)));
      }
    }
    return give(context, 0, x->dtype(), std::move(y));
  });
}

}  // namespace

OPERATOR(microsoft_GatedAdd) = {
    .name = "GatedAdd",
    .domain = "com.microsoft",
    .doc = "x + gate * y",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"Y", "T"},
            {"gate", "T"},
        },
    .outputs =
        {
            {"output", "T"},
        },
    .types =
        {
            {"T", {{1, kBf16 | kF16 | kF32}}},
        },
    .infer = infer_unary,
    .reference = run_gated_add,
};

OPERATOR(microsoft_GatedRMSNorm) = {
    .name = "GatedRMSNorm",
    .domain = "com.microsoft",
    .doc = "root-mean-square normalisation times an activated gate",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"scale", "T"},
            {"gate", "T"},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .attributes =
        {
            {"activation", "silu"},
            {"epsilon", 1e-05f},
        },
    .types =
        {
            {"T", {{1, kBf16 | kF16 | kF32}}},
        },
    .infer = infer_unary,
    .reference = run_gated_rms_norm,
};

}  // namespace tombolo::ops
