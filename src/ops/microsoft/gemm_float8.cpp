// GemmFloat8: products of 8-bit floats with scales.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/cast.h"
#include "ops/microsoft/official.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Result<double> scale_at(const KernelContext& context, size_t index) {
  TRY(const Tensor* scale, context.optional_input(index));
  if (scale == nullptr) return 1.0;
  if (scale->size() != 1) return context.error("a scale must be a scalar, is " + to_string(*scale));
  return scale->get_double(0);
}

/// scaleY * activation(alpha * scaleA * scaleB * A B + beta * C).
Status run_gemm_float8(KernelContext& context) {
  const auto& attributes = context.attributes;
  TRY(const Tensor* a, context.input(0));
  TRY(const Tensor* b, context.input(1));
  TRY(const Tensor* c, context.optional_input(2));
  TRY(const DType type, dtype_attribute(context, "dtype", DType::kFloat32));
  const Text activation = attributes.get_string("activation", "NONE");
  if (activation != "NONE" && activation != "RELU" && activation != "GELU" && !activation.empty())
    return context.error("activation is \"" + std::string(activation) + "\"");
  if (a->rank() != 2 || b->rank() != 2)
    return context.error("A and B must be matrices, are " + to_string(*a) + " and " +
                         to_string(*b));
  TRY(const double scale_a, scale_at(context, 3));
  TRY(const double scale_b, scale_at(context, 4));
  TRY(const double scale_y, scale_at(context, 5));
  TRY(const Tensor left, converted(context, *a, DType::kFloat32));
  TRY(const Tensor right, converted(context, *b, DType::kFloat32));
  Official official(context);
  TRY(Tensor y, official.call(official.node_with("Gemm", {"transA", "transB"}), {left, right, {}}));
  Tensor added;
  if (c != nullptr) {
    TRY(const Tensor wide, converted(context, *c, DType::kFloat32));
    TRY(added, expanded<float>(context, "C", wide, y.dims()));
  }
  const double alpha = static_cast<double>(attributes.get_float("alpha", 1)) * scale_a * scale_b;
  const auto beta = static_cast<double>(attributes.get_float("beta", 0));
  for (int64_t i = 0; i < y.size(); ++i) {
    double value = alpha * static_cast<double>(y.data<float>()[i]);
    if (!absent(added)) value += beta * static_cast<double>(added.data<float>()[i]);
    if (activation == "RELU") value = std::max(value, 0.0);
    if (activation == "GELU") value = value / 2 * (1 + std::erf(value / std::sqrt(2.0)));
    y.data<float>()[i] = static_cast<float>(value * scale_y);
  }
  TRY(Tensor out, cast_tensor(context, y, type));
  context.set_output(0, std::move(out));
  return ok();
}

Status infer_gemm_float8(InferContext& context) {
  const auto type = dtype_from_number(context.attributes.get_int("dtype", 1));
  InferType out = InferType::tensor(type.value_or(DType::kUndefined));
  const SymShape* a = context.shape(0);
  const SymShape* b = context.shape(1);
  if (a != nullptr && b != nullptr) {
    CHECK_OK(expect_rank(context, 0, 2));
    CHECK_OK(expect_rank(context, 1, 2));
    out.shape = SymShape{(*a)[context.attributes.get_int("transA", 0) != 0 ? 1 : 0],
                         (*b)[context.attributes.get_int("transB", 0) != 0 ? 0 : 1]};
  }
  context.set_output(0, std::move(out));
  return ok();
}

}  // namespace

OPERATOR(microsoft_GemmFloat8) = {
    .name = "GemmFloat8",
    .domain = "com.microsoft",
    .doc = "Gemm of 8-bit floats with scales and an activation",
    .versions = {1},
    .inputs =
        {
            {"A", "TA"},
            {"B", "TB"},
            {"C", "TC", kOptional},
            {"scaleA", "TS", kOptional},
            {"scaleB", "TS", kOptional},
            {"scaleY", "TS", kOptional},
        },
    .outputs =
        {
            {"Y", "TR"},
        },
    .attributes =
        {
            {"activation", Attr::kString},
            {"alpha", 1.0f},
            {"beta", 0.0f},
            {"dtype", 1},
            {"transA", 0},
            {"transB", 0},
        },
    .types =
        {
            {"TA",
             {{1, kBf16 | kF16 | kF32 | tensor_of(DType::kFloat8E4M3FN) |
                      tensor_of(DType::kFloat8E5M2)}}},
            {"TB",
             {{1, kBf16 | kF16 | kF32 | tensor_of(DType::kFloat8E4M3FN) |
                      tensor_of(DType::kFloat8E5M2)}}},
            {"TC", {{1, kBf16 | kF16 | kF32}}},
            {"TR",
             {{1, kBf16 | kF16 | kF32 | tensor_of(DType::kFloat8E4M3FN) |
                      tensor_of(DType::kFloat8E5M2)}}},
            {"TS", {{1, kF32}}},
        },
    .infer = infer_gemm_float8,
    .reference = run_gemm_float8,
};

}  // namespace tombolo::ops
