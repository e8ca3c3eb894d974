// Products with weights of 4- and 8-bit floats in blocks that share a scale.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/gemm.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

/// A of [..., k] times the transpose of weights [n, k], plus a bias of [n].
Status times_weights(KernelContext& context, const Tensor& a, const Tensor& in,
                     const Tensor& weights, size_t bias_input) {
  const int64_t n = weights.dim(0), k = weights.dim(1);
  const int64_t rows = product(a.dims().span(), 0, a.rank() - 1);
  TRY(const Tensor bias, optional_as<float>(context, bias_input));
  if (!absent(bias)) CHECK_OK(check_dims(context, "bias", bias, {{n}}));
  Dims dims = a.dims();
  dims[dims.size() - 1] = n;
  TRY(Tensor y, context.allocate(DType::kFloat32, dims));
  gemm<float>(rows, n, k, {in.data<float>(), k, 1}, {weights.data<float>(), 1, k}, y.data<float>(),
              n);
  for (int64_t i = 0; !absent(bias) && i < y.size(); ++i)
    y.data<float>()[i] += bias.data<float>()[i % n];
  return give(context, 0, a.dtype(), std::move(y));
}

Status check_operands(const KernelContext& context, const Tensor& a, const Tensor& b,
                      int64_t per_byte, const Tensor& scales, int64_t block) {
  if (a.rank() < 1 || b.rank() != 2 || !is_float(a.dtype()) ||
      a.dim(a.rank() - 1) != b.dim(1) * per_byte)
    return context.error("A and B do not fit: " + to_string(a) + ", " + to_string(b));
  if (block < 1) return context.error("block_size is " + std::to_string(block));
  const int64_t width = b.dim(1) * per_byte;
  return check_dims(context, "the block scales", scales,
                    {{b.dim(0), width / block + (width % block != 0)}});
}

Status run_fp4_weight(KernelContext& context) {
  TRY(const Tensor* a, context.input(0));
  TRY(const Tensor* b, context.input(1));
  TRY(const Tensor* scales, context.input(2));
  TRY(const Tensor* global, context.input(3));
  const int64_t block = context.attributes.get_int("block_size", 16);
  if (b->dtype() != DType::kUInt8 || scales->dtype() != DType::kUInt8 || global->size() != 1)
    return context.error("B and weight_scale must be uint8, weight_scale_2 one number: " +
                         to_string(*b) + ", " + to_string(*scales) + ", " + to_string(*global));
  CHECK_OK(check_operands(context, *a, *b, 2, *scales, block));
  constexpr float kMagnitudes[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  const Tensor factors = scales->reinterpreted(DType::kFloat8E4M3FN);
  const auto whole = static_cast<float>(global->get_double(0));
  const int64_t n = b->dim(0), k = 2 * b->dim(1);
  TRY(Tensor weights, context.allocate(DType::kFloat32, {{n, k}}));
  for (int64_t i = 0; i < n * k; ++i) {
    const unsigned code = b->data<uint8_t>()[i / 2] >> (i % 2 * 4) & 15u;
    const float value = (code & 8u) != 0 ? -kMagnitudes[code & 7u] : kMagnitudes[code & 7u];
    const int64_t at = i / k * scales->dim(1) + i % k / block;
    weights.data<float>()[i] = value * whole * static_cast<float>(factors.get_double(at));
  }
  TRY(const Tensor in, as<float>(context, *a));
  return times_weights(context, *a, in, weights, 5);
}

Status run_fp8_weight(KernelContext& context) {
  TRY(const Tensor* a, context.input(0));
  TRY(const Tensor* b, context.input(1));
  TRY(const Tensor* scales, context.input(2));
  TRY(const Tensor* a_scale, context.optional_input(3));
  const int64_t block = context.attributes.get_int("block_size", 128);
  CHECK_OK(check_operands(context, *a, *b, 1, *scales, block));
  const int64_t n = b->dim(0), k = b->dim(1);
  TRY(Tensor weights, as<float>(context, *b));
  if (weights.data<float>() == b->data<float>()) {
    TRY(weights, weights.clone());
  }
  for (int64_t i = 0; i < n * k; ++i)
    weights.data<float>()[i] *=
        static_cast<float>(scales->get_double(i / k * scales->dim(1) + i % k / block));
  TRY(Tensor in, as<float>(context, *a));
  if (a_scale != nullptr) {
    if (a_scale->size() != 1)
      return context.error("a_scale must be one number, is " + to_string(*a_scale));
    const auto factor = static_cast<float>(a_scale->get_double(0));
    TRY(Tensor codes, context.allocate(DType::kFloat8E4M3FN, a->dims()));
    for (int64_t i = 0; i < in.size(); ++i)
      codes.set_double(
          i, static_cast<double>(std::clamp(in.data<float>()[i] / factor, -448.0f, 448.0f)));
    TRY(Tensor rounded, context.allocate(DType::kFloat32, a->dims()));
    for (int64_t i = 0; i < in.size(); ++i)
      rounded.data<float>()[i] = static_cast<float>(codes.get_double(i)) * factor;
    in = std::move(rounded);
  }
  return times_weights(context, *a, in, weights, 4);
}

Status infer_block_float(InferContext& context) {
  const SymShape* a = context.shape(0);
  const SymShape* b = context.shape(1);
  if (a == nullptr || b == nullptr) return ok();
  CHECK_OK(expect_rank(context, 1, 2));
  if (a->empty()) return context.error("A is a scalar");
  SymShape out = *a;
  out.back() = (*b)[0];
  set_shape(context, 0, std::move(out));
  return ok();
}

/// B is a list of bytes: for each column and each block of rows a scale, a zero point where the
/// kind has one, and the codes of 32 rows in 16 bytes, the second half of them in the high bits.
Status run_matmul_fp_q4(KernelContext& context) {
  TRY(const Tensor* a, context.input(0));
  TRY(const Tensor* b, context.input(1));
  TRY(const std::vector<int64_t> shape, context.input_ints(2));
  const int64_t kind = context.attributes.get_int("blk_quant_type", 1);
  if (kind < 0 || kind > 2) return context.error("blk_quant_type is " + std::to_string(kind));
  const int64_t block = kind == 2 ? 64 : 32;
  if (a->rank() < 1 || shape.size() != 2 || shape[0] < 0 || shape[1] < 0 || shape[0] > INT32_MAX ||
      shape[1] > INT32_MAX || a->dim(a->rank() - 1) != shape[0] || b->dtype() != DType::kUInt8)
    return context.error("A, B and B_shape do not fit: " + to_string(*a) + ", " + to_string(*b) +
                         ", " + dims_to_string(shape));
  const int64_t k = shape[0], n = shape[1], blocks = (k + block - 1) / block;
  const int64_t bytes = 4 + (kind == 1 ? 1 : 0) + block / 2;
  if (b->size() != n * blocks * bytes)
    return context.error("B must hold " + std::to_string(n * blocks * bytes) + " bytes, is " +
                         to_string(*b));
  TRY(Tensor weights, context.allocate(DType::kFloat32, {{n, k}}));
  for (int64_t i = 0; i < n * k; ++i) {
    const int64_t row = i % k;
    const uint8_t* at = b->data<uint8_t>() + (i / k * blocks + row / block) * bytes;
    float scale = 0;
    std::copy_n(at, 4, reinterpret_cast<uint8_t*>(&scale));
    const int zero = kind == 1 ? at[4] : 8;
    const int64_t place = row % block, half = place % 32;
    const uint8_t code = at[bytes - block / 2 + place / 32 * 16 + half % 16];
    const int value = half < 16 ? code & 15 : code >> 4;
    weights.data<float>()[i] = scale * static_cast<float>(value - zero);
  }
  TRY(const Tensor in, as<float>(context, *a));
  return times_weights(context, *a, in, weights, 3);
}

Status infer_matmul_fp_q4(InferContext& context) {
  const SymShape* a = context.shape(0);
  if (a == nullptr || a->empty()) return ok();
  const SymShape* shape = context.ints(2);
  SymShape out = *a;
  out.back() = shape != nullptr && shape->size() == 2 ? (*shape)[1] : SymDim();
  set_shape(context, 0, std::move(out));
  return ok();
}

}  // namespace

OPERATOR(microsoft_MatMulBlockQuantizedFp4Weight) = {
    .name = "MatMulBlockQuantizedFp4Weight",
    .domain = "com.microsoft",
    .doc = "product with weights of 4-bit floats in blocks",
    .versions = {1},
    .inputs =
        {
            {"A", "T"},
            {"B", "T1"},
            {"weight_scale", "T2"},
            {"weight_scale_2", "T3"},
            {"input_scale", "T3", kOptional},
            {"bias", "T", kOptional},
        },
    .outputs = {{"Y", "T"}},
    .attributes = {{"block_size", 16}},
    .types =
        {
            {"T", {{1, kF16 | kBf16}}},
            {"T1", {{1, kU8}}},
            {"T2", {{1, kU8}}},
            {"T3", {{1, kF32}}},
        },
    .infer = infer_block_float,
    .reference = run_fp4_weight,
};

OPERATOR(microsoft_MatMulBlockQuantizedFp8Weight) = {
    .name = "MatMulBlockQuantizedFp8Weight",
    .domain = "com.microsoft",
    .doc = "product with weights of 8-bit floats in blocks",
    .versions = {1},
    .inputs =
        {
            {"A", "T"},
            {"B", "T1"},
            {"b_scale", "T2"},
            {"a_scale", "T2", kOptional},
            {"bias", "T", kOptional},
        },
    .outputs = {{"Y", "T"}},
    .attributes = {{"block_size", 128}},
    .types =
        {
            {"T", {{1, kF16 | kBf16}}},
            {"T1", {{1, tensor_of(DType::kFloat8E4M3FN)}}},
            {"T2", {{1, kF32}}},
        },
    .infer = infer_block_float,
    .reference = run_fp8_weight,
};

OPERATOR(microsoft_MatMulFpQ4) = {
    .name = "MatMulFpQ4",
    .domain = "com.microsoft",
    .doc = "product with weights of 4 bits, packed as one list of bytes",
    .versions = {1},
    .inputs = {{"A", "T1"}, {"B", "T2"}, {"B_shape", "T3"}},
    .outputs = {{"Y", "T1"}},
    .attributes = {{"blk_quant_type", 1}},
    .types = {{"T1", {{1, kF32}}}, {"T2", {{1, kU8}}}, {"T3", {{1, kI64}}}},
    .infer = infer_matmul_fp_q4,
    .reference = run_matmul_fp_q4,
};

}  // namespace tombolo::ops
