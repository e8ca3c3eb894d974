// Products with weights of a few bits in blocks.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "ops/infer_helpers.h"
#include "ops/kernels/gemm.h"
#include "ops/microsoft/block_weights.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Result<BlockWeights> read_shape(const KernelContext& context, const char* columns) {
  const auto& attributes = context.attributes;
  BlockWeights shape;
  shape.n = attributes.get_int(columns, 0);
  shape.k = attributes.get_int("K", 0);
  shape.block = attributes.get_int("block_size", 0);
  const int64_t bits = attributes.get_int("bits", 4);
  constexpr int64_t kMost = int64_t{1} << 30;
  if (shape.n < 0 || shape.k < 0 || shape.n > kMost || shape.k > kMost || shape.block < 8 ||
      shape.block % 8 != 0 || shape.block > kMost ||
      (bits != 1 && bits != 2 && bits != 4 && bits != 8))
    return context.error(std::string(columns) + " is " + std::to_string(shape.n) + ", K is " +
                         std::to_string(shape.k) + ", block_size is " +
                         std::to_string(shape.block) + ", bits is " + std::to_string(bits));
  shape.bits = static_cast<int>(bits);
  shape.blocks = (shape.k + shape.block - 1) / shape.block;
  return shape;
}

/// a [..., k] times weights [n, k] transposed, plus bias [n], in float.
Result<Tensor> multiply(const KernelContext& context, const Tensor& a, const Tensor& weights,
                        const Tensor* bias) {
  const int64_t n = weights.dim(0), k = weights.dim(1);
  if (a.rank() == 0 || a.dim(a.rank() - 1) != k)
    return context.error("A must have " + std::to_string(k) + " columns, is " + to_string(a));
  if (bias != nullptr) CHECK_OK(check_dims(context, "bias", *bias, {{n}}));
  TRY(const Tensor left, as<float>(context, a));
  Dims dims = a.dims();
  dims[dims.size() - 1] = n;
  TRY(Tensor y, context.allocate(DType::kFloat32, dims));
  const int64_t rows = element_count(a.dims().span().first(a.rank() - 1));
  TRY(const Tensor added, bias == nullptr ? Result<Tensor>(Tensor()) : as<float>(context, *bias));
  for (int64_t i = 0; i < y.size(); ++i)
    y.data<float>()[i] = absent(added) ? 0 : added.data<float>()[i % n];
  parallel_gemm<float>(context, rows, n, k, {left.data<float>(), k, 1},
                       {weights.data<float>(), 1, k}, y.data<float>(), n, true);
  return y;
}

Status run_matmul_nbits(KernelContext& context) {
  TRY(const Tensor* a, context.input(0));
  TRY(const Tensor* codes, context.input(1));
  TRY(const Tensor* scales, context.input(2));
  TRY(const Tensor* zeros, context.optional_input(3));
  TRY(const Tensor* group_of, context.optional_input(4));
  TRY(const Tensor* bias, context.optional_input(5));
  if (context.attributes.get_int("weight_prepacked", 0) != 0)
    return unsupported("weights prepacked for a kind of machine");
  TRY(const BlockWeights shape, read_shape(context, "N"));
  TRY(const Tensor weights, unpack_block_weights(context, shape, *codes, *scales, zeros, group_of));
  TRY(Tensor y, multiply(context, *a, weights, bias));
  return give(context, 0, a->dtype(), std::move(y));
}

Status infer_columns(InferContext& context, size_t output, const char* attribute) {
  const SymShape* a = context.shape(0);
  if (a == nullptr) return ok();
  if (a->empty()) return context.error("A must not be a scalar");
  CHECK_OK(unify_dims(context, a->back(), SymDim(context.attributes.get_int("K", 0)),
                      "the last axis of A and K"));
  SymShape shape = *a;
  shape.back() = SymDim(context.attributes.get_int(attribute, 0));
  context.set_tensor(output, context.elem(0), std::move(shape));
  return ok();
}
Status infer_matmul_nbits(InferContext& context) { return infer_columns(context, 0, "N"); }

/// What stands before the products of MatMulNBitsMlp and MatMulNBitsQkv: A + skip, normalised by
/// its root mean square when there is a scale. Gives the sum as output `sum_output`.
Result<Tensor> normalized(KernelContext& context, const Tensor& a, size_t sum_output) {
  TRY(const Tensor* skip, context.optional_input(1));
  TRY(const Tensor* scale, context.optional_input(2));
  TRY(const Tensor in, as<float>(context, a));
  if (a.rank() == 0) return context.error("A must not be a scalar");
  const int64_t width = a.dim(a.rank() - 1);
  TRY(Tensor sum, context.allocate(DType::kFloat32, a.dims()));
  std::copy_n(in.data<float>(), in.size(), sum.data<float>());
  if (skip != nullptr) {
    CHECK_OK(check_dims(context, "skip", *skip, a.dims()));
    TRY(const Tensor added, as<float>(context, *skip));
    for (int64_t i = 0; i < sum.size(); ++i) sum.data<float>()[i] += added.data<float>()[i];
  }
  TRY(Tensor kept, sum.clone());
  CHECK_OK(give(context, sum_output, a.dtype(), std::move(kept)));
  if (scale == nullptr) return sum;
  CHECK_OK(check_dims(context, "norm_scale", *scale, {{width}}));
  TRY(const Tensor factor, as<float>(context, *scale));
  const auto epsilon = static_cast<double>(context.attributes.get_float("epsilon", 1e-6f));
  for (int64_t i = 0; width != 0 && i < sum.size() / width; ++i) {
    float* row = sum.data<float>() + i * width;
    double squares = 0;
    for (int64_t j = 0; j < width; ++j) squares += static_cast<double>(row[j]) * row[j];
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(width) + epsilon);
    for (int64_t j = 0; j < width; ++j)
      row[j] = static_cast<float>(row[j] * inverse * factor.data<float>()[j]);
  }
  return sum;
}

/// One of the products: codes, scales and bias lie at `first` and after.
Result<Tensor> product_at(const KernelContext& context, const Tensor& x, size_t first,
                          const char* columns) {
  TRY(const Tensor* codes, context.input(first));
  TRY(const Tensor* scales, context.input(first + 1));
  TRY(const Tensor* bias, context.optional_input(first + 2));
  TRY(const BlockWeights shape, read_shape(context, columns));
  TRY(const Tensor weights,
      unpack_block_weights(context, shape, *codes, *scales, nullptr, nullptr));
  return multiply(context, x, weights, bias);
}

Status run_matmul_nbits_mlp(KernelContext& context) {
  TRY(const Tensor* a, context.input(0));
  const Text activation = context.attributes.get_string("activation", "silu");
  if (activation != "silu")
    return context.error("the activation \"" + std::string(activation) + "\" is not known");
  TRY(const Tensor x, normalized(context, *a, 1));
  TRY(Tensor gate, product_at(context, x, 3, "N"));
  TRY(const Tensor up, product_at(context, x, 6, "N"));
  for (int64_t i = 0; i < gate.size(); ++i) {
    const auto g = static_cast<double>(gate.data<float>()[i]);
    gate.data<float>()[i] =
        static_cast<float>(g / (1 + std::exp(-g)) * static_cast<double>(up.data<float>()[i]));
  }
  return give(context, 0, a->dtype(), std::move(gate));
}

Status infer_matmul_nbits_mlp(InferContext& context) {
  CHECK_OK(infer_columns(context, 0, "N"));
  context.same_as_input(1, 0);
  return ok();
}

Status run_matmul_nbits_qkv(KernelContext& context) {
  TRY(const Tensor* a, context.input(0));
  TRY(const Tensor x, normalized(context, *a, 3));
  const char* const columns[] = {"Nq", "Nkv", "Nkv"};
  for (size_t i = 0; i < 3; ++i) {
    TRY(Tensor y, product_at(context, x, 3 + 3 * i, columns[i]));
    CHECK_OK(give(context, i, a->dtype(), std::move(y)));
  }
  return ok();
}

Status infer_matmul_nbits_qkv(InferContext& context) {
  CHECK_OK(infer_columns(context, 0, "Nq"));
  CHECK_OK(infer_columns(context, 1, "Nkv"));
  CHECK_OK(infer_columns(context, 2, "Nkv"));
  context.same_as_input(3, 0);
  return ok();
}

}  // namespace

OPERATOR(microsoft_MatMulNBits) = {
    .name = "MatMulNBits",
    .domain = "com.microsoft",
    .doc = "product with weights of 2, 4 or 8 bits in blocks",
    .versions = {1},
    .inputs =
        {
            {"A", "T1"},
            {"B", "T2"},
            {"scales", "T1"},
            {"zero_points", "T3", kOptional},
            {"g_idx", "T4", kOptional},
            {"bias", "T1", kOptional},
        },
    .outputs =
        {
            {"Y", "T1"},
        },
    .attributes =
        {
            {"K", required(Attr::kInt)},
            {"N", required(Attr::kInt)},
            {"accuracy_level", 0},
            {"bits", 4},
            {"block_size", required(Attr::kInt)},
            {"weight_prepacked", 0},
        },
    .types =
        {
            {"T1", {{1, kBf16 | kF16 | kF32}}},
            {"T2", {{1, kU8}}},
            {"T3", {{1, kBf16 | kF16 | kF32 | kU8}}},
            {"T4", {{1, kI32}}},
        },
    .infer = infer_matmul_nbits,
    .reference = run_matmul_nbits,
};

OPERATOR(microsoft_MatMulNBitsMlp) = {
    .name = "MatMulNBitsMlp",
    .domain = "com.microsoft",
    .doc = "silu(x gate) * (x up) with weights of a few bits, x normalised on request",
    .versions = {1},
    .inputs =
        {
            {"A", "T1"},
            {"skip", "T1", kOptional},
            {"norm_scale", "T1", kOptional},
            {"gate_B", "T2"},
            {"gate_scales", "T1"},
            {"gate_bias", "T1", kOptional},
            {"up_B", "T2"},
            {"up_scales", "T1"},
            {"up_bias", "T1", kOptional},
        },
    .outputs =
        {
            {"Y", "T1"},
            {"input_skip_bias_sum", "T1", kOptional},
        },
    .attributes =
        {
            {"K", required(Attr::kInt)},
            {"N", required(Attr::kInt)},
            {"accuracy_level", 0},
            {"activation", required(Attr::kString)},
            {"bits", 4},
            {"block_size", required(Attr::kInt)},
            {"epsilon", 1e-05f},
        },
    .types =
        {
            {"T1", {{1, kBf16 | kF16 | kF32}}},
            {"T2", {{1, kU8}}},
        },
    .infer = infer_matmul_nbits_mlp,
    .reference = run_matmul_nbits_mlp,
};

OPERATOR(microsoft_MatMulNBitsQkv) = {
    .name = "MatMulNBitsQkv",
    .domain = "com.microsoft",
    .doc = "queries, keys and values by weights of a few bits from a normalised input",
    .versions = {1},
    .inputs =
        {
            {"A", "T1"},
            {"skip", "T1", kOptional},
            {"norm_scale", "T1"},
            {"q_B", "T2"},
            {"q_scales", "T1"},
            {"q_bias", "T1", kOptional},
            {"k_B", "T2"},
            {"k_scales", "T1"},
            {"k_bias", "T1", kOptional},
            {"v_B", "T2"},
            {"v_scales", "T1"},
            {"v_bias", "T1", kOptional},
        },
    .outputs =
        {
            {"Q", "T1"},
            {"K", "T1"},
            {"V", "T1"},
            {"input_skip_bias_sum", "T1", kOptional},
        },
    .attributes =
        {
            {"K", required(Attr::kInt)},
            {"Nkv", required(Attr::kInt)},
            {"Nq", required(Attr::kInt)},
            {"accuracy_level", 0},
            {"bits", 4},
            {"block_size", required(Attr::kInt)},
            {"epsilon", 1e-06f},
        },
    .types =
        {
            {"T1", {{1, kBf16 | kF16 | kF32}}},
            {"T2", {{1, kU8}}},
        },
    .infer = infer_matmul_nbits_qkv,
    .reference = run_matmul_nbits_qkv,
};

}  // namespace tombolo::ops
