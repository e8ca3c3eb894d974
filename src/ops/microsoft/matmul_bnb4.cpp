// Products with weights in the 4-bit formats of bitsandbytes.

#include <string>
#include <utility>

#include "ops/infer_helpers.h"
#include "ops/kernels/bnb4.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/gemm.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_matmul_bnb4(KernelContext& context) {
  TRY(const Tensor* a, context.input(0));
  TRY(const Tensor* codes, context.input(1));
  TRY(const Tensor* greatest, context.input(2));
  const auto& attributes = context.attributes;
  const int64_t n = attributes.get_int("N", 0), k = attributes.get_int("K", 0);
  const int64_t block = attributes.get_int("block_size", 0);
  const int64_t kind = attributes.get_int("quant_type", 0);
  const bool transposed_b = attributes.get_int("transB", 1) != 0;
  constexpr int64_t kMost = int64_t{1} << 30;
  if (n < 0 || k < 0 || n > kMost || k > kMost || block < 1 || (kind != 0 && kind != 1))
    return context.error("N is " + std::to_string(n) + ", K is " + std::to_string(k) +
                         ", block_size is " + std::to_string(block) + ", quant_type is " +
                         std::to_string(kind));
  const int64_t count = n * k;
  if (codes->dtype() != DType::kUInt8 || codes->size() != (count + 1) / 2)
    return context.error("B must be " + std::to_string((count + 1) / 2) + " bytes, is " +
                         to_string(*codes));
  if (greatest->size() != count / block + (count % block != 0))
    return context.error("absmax must have one value for each block of " + std::to_string(block) +
                         ", is " + to_string(*greatest));
  const int64_t inner = transposed_b ? k : n;
  if (a->rank() == 0 || a->dim(a->rank() - 1) != inner)
    return context.error("A must have " + std::to_string(inner) + " columns, is " + to_string(*a));
  TRY(const Tensor scale, as<float>(context, *greatest));
  TRY(Tensor weights, context.allocate(DType::kFloat32, {{n, k}}));
  const float* table = kind == 0 ? kFp4Values : kNf4Values;
  for (int64_t i = 0; i < count; ++i) {
    const unsigned byte = codes->data<uint8_t>()[i / 2];
    // The first of a pair has the high bits.
    weights.data<float>()[i] =
        table[i % 2 == 0 ? byte >> 4 : byte & 15] * scale.data<float>()[i / block];
  }
  TRY(const Tensor left, as<float>(context, *a));
  Dims dims = a->dims();
  const int64_t columns = transposed_b ? n : k;
  dims[dims.size() - 1] = columns;
  TRY(Tensor y, context.allocate(DType::kFloat32, dims));
  const int64_t rows = element_count(a->dims().span().first(a->rank() - 1));
  const MatrixView<float> right = transposed_b ? MatrixView<float>{weights.data<float>(), 1, k}
                                               : MatrixView<float>{weights.data<float>(), k, 1};
  parallel_gemm<float>(context, rows, columns, inner, {left.data<float>(), inner, 1}, right,
                       y.data<float>(), columns);
  return give(context, 0, a->dtype(), std::move(y));
}

Status infer_matmul_bnb4(InferContext& context) {
  const SymShape* a = context.shape(0);
  if (a == nullptr) return ok();
  if (a->empty()) return context.error("A must not be a scalar");
  SymShape shape = *a;
  const bool transposed_b = context.attributes.get_int("transB", 1) != 0;
  shape.back() = SymDim(context.attributes.get_int(transposed_b ? "N" : "K", 0));
  set_shape(context, 0, std::move(shape));
  return ok();
}

}  // namespace

OPERATOR(microsoft_MatMulBnb4) = {
    .name = "MatMulBnb4",
    .domain = "com.microsoft",
    .doc = "product with weights in the 4-bit formats of bitsandbytes",
    .versions = {1},
    .inputs =
        {
            {"A", "T1"},
            {"B", "T2"},
            {"absmax", "T1"},
        },
    .outputs =
        {
            {"Y", "T1"},
        },
    .attributes =
        {
            {"K", required(Attr::kInt)},
            {"N", required(Attr::kInt)},
            {"block_size", required(Attr::kInt)},
            {"quant_type", required(Attr::kInt)},
            {"training_mode", 0},
            {"transB", 1},
        },
    .types =
        {
            {"T1", {{1, kBf16 | kF16 | kF32}}},
            {"T2", {{1, kU8}}},
        },
    .infer = infer_matmul_bnb4,
    .reference = run_matmul_bnb4,
};

}  // namespace tombolo::ops
