#include "ops/kernels/matrix_product.h"

#include <algorithm>
#include <string>

#include "ops/kernels/compute.h"
#include "ops/kernels/gemm.h"

namespace tombolo::ops {

namespace {

/// Where the matrices of one factor lie: strides, in matrices, over the axes of the batch.
Dims batch_strides(std::span<const int64_t> own, std::span<const int64_t> batch) {
  Dims strides;
  strides.resize(static_cast<uint32_t>(batch.size()));
  int64_t stride = 1;
  for (size_t i = 1; i <= own.size(); ++i) {
    const int64_t dim = own[own.size() - i];
    if (dim != 1) strides[batch.size() - i] = stride;
    stride *= dim;
  }
  return strides;
}

template <typename T>
void multiply(const KernelContext& context, const Tensor& a, const Tensor& b, int64_t m, int64_t n,
              int64_t k, std::span<const int64_t> batch, const Dims& a_strides,
              const Dims& b_strides, Tensor& y) {
  const int64_t count = m * n == 0 ? 0 : y.size() / (m * n);
  const auto product = [&](int64_t i, bool split) {
    int64_t left = 0, right = 0, rest = i;
    for (size_t axis = batch.size(); axis-- > 0; rest /= batch[axis]) {
      left += rest % batch[axis] * a_strides[axis];
      right += rest % batch[axis] * b_strides[axis];
    }
    const MatrixView<T> from_a{a.data<T>() + left * m * k, k, 1};
    const MatrixView<T> from_b{b.data<T>() + right * k * n, n, 1};
    if (split)
      parallel_gemm<T>(context, m, n, k, from_a, from_b, y.data<T>() + i * m * n, n);
    else
      gemm<T>(m, n, k, from_a, from_b, y.data<T>() + i * m * n, n);
  };
  // Many small products are split by batch, few large ones each.
  if (count < 8) {
    for (int64_t i = 0; i < count; ++i) product(i, true);
    return;
  }
  const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, m * n * (k / 16 + 1)));
  context.parallel_for(count, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) product(i, false);
  });
}

}  // namespace

Result<Tensor> matrix_product(const KernelContext& context, const Tensor& a, const Tensor& b) {
  const auto wrong = [&](const char* why) {
    return context.error("cannot multiply " + to_string(a) + " by " + to_string(b) + ": " + why);
  };
  if (a.rank() == 0 || b.rank() == 0) return wrong("a scalar is no matrix");
  if (a.dtype() != b.dtype()) return wrong("the types differ");
  const bool row = a.rank() == 1, column = b.rank() == 1;
  const int64_t m = row ? 1 : a.dim(a.rank() - 2), k = a.dim(a.rank() - 1);
  const int64_t n = column ? 1 : b.dim(b.rank() - 1);
  if (k != b.dim(column ? 0 : b.rank() - 2)) return wrong("the inner sizes differ");
  const auto a_batch = a.dims().span().first(row ? 0 : a.rank() - 2);
  const auto b_batch = b.dims().span().first(column ? 0 : b.rank() - 2);
  Dims dims;
  const size_t rank = std::max(a_batch.size(), b_batch.size());
  for (size_t axis = 0; axis < rank; ++axis) {
    const size_t from_end = rank - axis;
    const int64_t left = from_end > a_batch.size() ? 1 : a_batch[a_batch.size() - from_end];
    const int64_t right = from_end > b_batch.size() ? 1 : b_batch[b_batch.size() - from_end];
    if (left != right && left != 1 && right != 1) return wrong("the batches do not broadcast");
    dims.push_back(left == 1 ? right : left);
  }
  const Dims batch = dims;
  if (!row) dims.push_back(m);
  if (!column) dims.push_back(n);
  TRY(Tensor y, context.allocate(a.dtype(), dims));
  if (y.size() == 0) return y;
  const Dims a_strides = batch_strides(a_batch, batch);
  const Dims b_strides = batch_strides(b_batch, batch);
  switch (a.dtype()) {
    case DType::kFloat32:
      multiply<float>(context, a, b, m, n, k, batch, a_strides, b_strides, y);
      return y;
    case DType::kFloat64:
      multiply<double>(context, a, b, m, n, k, batch, a_strides, b_strides, y);
      return y;
    case DType::kInt32:
    case DType::kUInt32:
      multiply<uint32_t>(context, a, b, m, n, k, batch, a_strides, b_strides, y);
      return y;
    case DType::kInt64:
    case DType::kUInt64:
      multiply<uint64_t>(context, a, b, m, n, k, batch, a_strides, b_strides, y);
      return y;
    default:
      return wrong("not a type to multiply in");
  }
}

}  // namespace tombolo::ops
