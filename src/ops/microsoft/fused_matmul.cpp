// Matrix products with a factor, transposed operands and an activation.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/matrix_product.h"
#include "ops/microsoft/activation.h"
#include "ops/microsoft/official.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// The order in which the operand's axes are read. A transposed batch moves the axes but the last
/// and the first to the front: [m, batch..., k] stands for [batch..., m, k].
std::vector<int64_t> axes_of(size_t rank, bool transpose, bool batch) {
  std::vector<int64_t> perm;
  const auto count = static_cast<int64_t>(rank);
  if (batch && rank > 2) {
    for (int64_t axis = 1; axis + 1 < count; ++axis) perm.push_back(axis);
    perm.push_back(0);
    perm.push_back(count - 1);
  } else {
    for (int64_t axis = 0; axis < count; ++axis) perm.push_back(axis);
  }
  if (transpose && rank > 1) std::swap(perm[rank - 1], perm[rank - 2]);
  return perm;
}

struct Operands {
  std::vector<int64_t> a, b;
};
Operands operands_of(const AttributeReader& attributes, size_t a_rank, size_t b_rank) {
  return {axes_of(a_rank, attributes.get_int("transA", 0) != 0,
                  attributes.get_int("transBatchA", 0) != 0),
          axes_of(b_rank, attributes.get_int("transB", 0) != 0,
                  attributes.get_int("transBatchB", 0) != 0)};
}

Result<Tensor> fused_product(KernelContext& context) {
  TRY(const Tensor* a, context.input(0));
  TRY(const Tensor* b, context.input(1));
  const double alpha = static_cast<double>(context.attributes.get_float("alpha", 1));
  const Operands order = operands_of(context.attributes, a->rank(), b->rank());
  const DType type = a->dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  TRY(Tensor left, converted(context, *a, type));
  TRY(Tensor right, converted(context, *b, type));
  if (!std::is_sorted(order.a.begin(), order.a.end())) {
    TRY(left, transposed(context, left, order.a));
  }
  if (!std::is_sorted(order.b.begin(), order.b.end())) {
    TRY(right, transposed(context, right, order.b));
  }
  TRY(Tensor product, matrix_product(context, left, right));
  if (alpha != 1) {
    if (type == DType::kFloat64)
      for (double& value : product.span<double>()) value *= alpha;
    else
      for (float& value : product.span<float>()) value *= static_cast<float>(alpha);
  }
  return product;
}

Status run_fused_matmul(KernelContext& context) {
  TRY(const Tensor* a, context.input(0));
  if (!is_float(a->dtype())) return context.error("A must hold floats, is " + to_string(*a));
  TRY(Tensor product, fused_product(context));
  return give(context, 0, a->dtype(), std::move(product));
}

Status run_fused_matmul_activation(KernelContext& context) {
  TRY(const Tensor* a, context.input(0));
  if (!is_float(a->dtype())) return context.error("A must hold floats, is " + to_string(*a));
  TRY(Tensor product, fused_product(context));
  TRY(const FusedActivation activation, read_activation(context));
  CHECK_OK(activation.apply(context, product));
  return give(context, 0, a->dtype(), std::move(product));
}

Status infer_fused_matmul(InferContext& context) {
  const SymShape* a = context.shape(0);
  const SymShape* b = context.shape(1);
  if (a == nullptr || b == nullptr) return ok();
  if (a->empty() || b->empty()) return context.error("a scalar is no matrix");
  const Operands order = operands_of(context.attributes, a->size(), b->size());
  InferType left = InferType::tensor(context.elem(0), {}), right = left;
  for (const int64_t axis : order.a) left.shape->push_back((*a)[static_cast<size_t>(axis)]);
  for (const int64_t axis : order.b) right.shape->push_back((*b)[static_cast<size_t>(axis)]);
  const InferType* inputs[] = {&left, &right};
  InferContext inner{context.node, context.opset,   context.attributes,
                     context.host, inputs,          {},
                     {},           context.outputs, {}};
  return infer_matmul(inner, 0, 1);
}

/// fast gelu of x w + bias.
Status run_gemm_fast_gelu(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* w, context.input(1));
  TRY(const Tensor* bias, context.optional_input(2));
  if (!is_float(x->dtype())) return context.error("X must hold floats, is " + to_string(*x));
  TRY(const Tensor left, as<float>(context, *x));
  TRY(const Tensor right, as<float>(context, *w));
  TRY(Tensor product, matrix_product(context, left, right));
  const int64_t width = product.rank() == 0 ? 1 : product.dim(product.rank() - 1);
  Tensor added;
  if (bias != nullptr) {
    CHECK_OK(check_dims(context, "bias", *bias, {{width}}));
    TRY(added, as<float>(context, *bias));
  }
  for (int64_t i = 0; i < product.size(); ++i) {
    double v = static_cast<double>(product.data<float>()[i]);
    if (bias != nullptr) v += static_cast<double>(added.data<float>()[i % width]);
    product.data<float>()[i] = static_cast<float>(
        v / 2 * (1 + std::tanh(0.7978845608028654 * v + 0.035677408136300125 * v * v * v)));
  }
  return give(context, 0, x->dtype(), std::move(product));
}
Status infer_gemm_fast_gelu(InferContext& context) { return infer_matmul(context, 0, 1); }

Status infer_fused_gemm(InferContext& context) { return infer_as(context, "Gemm"); }

Status run_fused_gemm(KernelContext& context) {
  TRY(const Tensor a, tensor_at(context, 0));
  TRY(const Tensor b, tensor_at(context, 1));
  TRY(const Tensor c, tensor_or_absent(context, 2));
  Official official(context);
  TRY(Tensor y,
      official.call(official.node_with("Gemm", {"alpha", "beta", "transA", "transB"}), {a, b, c}));
  TRY(const FusedActivation activation, read_activation(context));
  if (activation.none()) {
    context.set_output(0, std::move(y));
    return ok();
  }
  if (!is_float(y.dtype())) return context.error("an activation needs floats, not " + to_string(y));
  const DType type = y.dtype();
  TRY(Tensor wide, converted(context, y, type == DType::kFloat64 ? type : DType::kFloat32));
  CHECK_OK(activation.apply(context, wide));
  return give(context, 0, type, std::move(wide));
}

}  // namespace

OPERATOR(microsoft_FusedMatMul) = {
    .name = "FusedMatMul",
    .domain = "com.microsoft",
    .doc = "alpha * a b, operands and batches transposed on request",
    .versions = {1},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .attributes =
        {
            {"alpha", 1.0f},
            {"transA", 0},
            {"transB", 0},
            {"transBatchA", 0},
            {"transBatchB", 0},
        },
    .types =
        {
            {"T", {{1, kFloats | kBf16}}},
        },
    .infer = infer_fused_matmul,
    .reference = run_fused_matmul,
};

OPERATOR(microsoft_TransposeMatMul) = {
    .name = "TransposeMatMul",
    .domain = "com.microsoft",
    .doc = "alpha * a b, operands transposed on request",
    .versions = {1},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .attributes =
        {
            {"alpha", 1.0f},
            {"transA", 0},
            {"transB", 0},
        },
    .types =
        {
            {"T", {{1, kFloats | kBf16}}},
        },
    .infer = infer_fused_matmul,
    .reference = run_fused_matmul,
};

OPERATOR(microsoft_FusedMatMulActivation) = {
    .name = "FusedMatMulActivation",
    .domain = "com.microsoft",
    .doc = "an activation of alpha * a b",
    .versions = {1},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .attributes =
        {
            {"activation", required(Attr::kString)},
            {"activation_alpha", Attr::kFloat},
            {"activation_axis", Attr::kInt},
            {"activation_beta", Attr::kFloat},
            {"activation_gamma", Attr::kFloat},
            {"alpha", 1.0f},
            {"transA", 0},
            {"transB", 0},
            {"transBatchA", 0},
            {"transBatchB", 0},
        },
    .types =
        {
            {"T", {{1, kFloats | kBf16}}},
        },
    .infer = infer_fused_matmul,
    .reference = run_fused_matmul_activation,
};

OPERATOR(microsoft_GemmFastGelu) = {
    .name = "GemmFastGelu",
    .domain = "com.microsoft",
    .doc = "gelu by tanh of x w + bias",
    .versions = {1},
    .inputs =
        {
            {"X", "T"},
            {"W", "T"},
            {"bias", "T", kOptional},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .types =
        {
            {"T", {{1, kBf16 | kF16 | kF32}}},
        },
    .infer = infer_gemm_fast_gelu,
    .reference = run_gemm_fast_gelu,
};

OPERATOR(microsoft_FusedGemm) = {
    .name = "FusedGemm",
    .domain = "com.microsoft",
    .doc = "an activation of alpha * a b + beta * c",
    .versions = {1},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
            {"C", "T", kOptional},
        },
    .outputs =
        {
            {"Y", "T"},
        },
    .attributes =
        {
            {"activation", Attr::kString},
            {"activation_alpha", Attr::kFloat},
            {"activation_beta", Attr::kFloat},
            {"activation_gamma", Attr::kFloat},
            {"alpha", 1.0f},
            {"beta", 1.0f},
            {"transA", 0},
            {"transB", 0},
        },
    .types =
        {
            {"T", {{1, kInt32s | kFloats}}},
        },
    .infer = infer_fused_gemm,
    .reference = run_fused_gemm,
};

}  // namespace tombolo::ops
