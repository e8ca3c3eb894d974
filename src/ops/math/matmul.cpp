#include "ops/infer_helpers.h"
#include "ops/kernels/broadcast.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/gemm.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_matmul_inputs(InferContext& context) { return infer_matmul(context, 0, 1); }
/// Products of the matrices in the last two axes; `dims` is the batch shape of the result.
template <typename T>
void multiply_batches(const KernelContext& context, const Broadcast& batches, const Tensor& a,
                      const Tensor& b, int64_t m, int64_t n, int64_t k, Tensor& out) {
  auto multiply = [&](int64_t i, int64_t x, int64_t y, bool parallel) {
    const MatrixView<T> left{a.data<T>() + x * m * k, k, 1};
    const MatrixView<T> right{b.data<T>() + y * k * n, n, 1};
    T* to = out.data<T>() + i * m * n;
    if (parallel)
      parallel_gemm<T>(context, m, n, k, left, right, to, n);
    else
      gemm<T>(m, n, k, left, right, to, n);
  };
  // Many small products are split by batch, few large ones each.
  if (batches.count < 4) {
    for (BroadcastCursor at(batches, 0, batches.count); !at.done(); at.advance(1))
      multiply(at.at(), at.offset(0), at.offset(1), true);
    return;
  }
  const int64_t grain = std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(1, m * n * k / 16));
  context.parallel_for(batches.count, grain, [&](int64_t begin, int64_t end) {
    for (BroadcastCursor at(batches, begin, end); !at.done(); at.advance(1))
      multiply(at.at(), at.offset(0), at.offset(1), false);
  });
}

/// A vector stands for a matrix of one row (left) or one column (right), as in numpy.matmul.
Status run_matmul(KernelContext& context) {
  TRY(const Tensor* a, context.input(0));
  TRY(const Tensor* b, context.input(1));
  const DType dtype = a->dtype();
  if (b->dtype() != dtype || a->rank() == 0 || b->rank() == 0)
    return context.error("A " + to_string(*a) + " and B " + to_string(*b) +
                         " must be matrices of one type");
  const bool row = a->rank() == 1, column = b->rank() == 1;
  const int64_t m = row ? 1 : a->dim(a->rank() - 2), k = a->dim(a->rank() - 1);
  const int64_t n = column ? 1 : b->dim(b->rank() - 1), depth = b->dim(column ? 0 : b->rank() - 2);
  if (k != depth)
    return context.error("A " + to_string(*a) + " and B " + to_string(*b) + " do not multiply: " +
                         std::to_string(k) + " columns against " + std::to_string(depth) + " rows");
  // Empty tensors with the batch shapes: only their shapes are looked at.
  const auto batch = [](const Tensor& x) {
    return Tensor().reshaped(x.dims().span().first(x.rank() < 2 ? 0 : x.rank() - 2));
  };
  const Tensor left = batch(*a), right = batch(*b);
  const Tensor* const both[] = {&left, &right};
  TRY(const Broadcast batches, Broadcast::of(both));
  Dims dims = batches.output;
  if (!row) dims.push_back(m);
  if (!column) dims.push_back(n);

  const bool small = is_float(dtype) && dtype != DType::kFloat64;
  const DType compute = small ? DType::kFloat32 : dtype;
  TRY(const Tensor x, converted(context, *a, compute));
  TRY(const Tensor y, converted(context, *b, compute));
  TRY(Tensor out, context.allocate(compute, dims));
  switch (compute) {
    case DType::kFloat32:
      multiply_batches<float>(context, batches, x, y, m, n, k, out);
      break;
    case DType::kFloat64:
      multiply_batches<double>(context, batches, x, y, m, n, k, out);
      break;
    case DType::kInt32:
    case DType::kUInt32:
      multiply_batches<uint32_t>(context, batches, x, y, m, n, k, out);
      break;
    case DType::kInt64:
    case DType::kUInt64:
      multiply_batches<uint64_t>(context, batches, x, y, m, n, k, out);
      break;
    default:
      return unsupported("a product of " + to_string(*a));
  }
  return give(context, 0, dtype, std::move(out));
}

}  // namespace

OPERATOR(MatMul) = {
    .name = "MatMul",
    .doc = "matrix product of the last two axes; the others broadcast",
    .versions = {1, 9, 13},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"Y", "T"}},
    .types = {{"T", {{1, kFloats}, {9, kInt32s}, {13, kBf16}}}},
    .infer = infer_matmul_inputs,
    .reference = run_matmul,
};

}  // namespace tombolo::ops
