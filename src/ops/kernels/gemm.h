#pragma once

// One matrix product for all kernels that need one: cache-blocked, packed, a register tile of
// four rows by 32 bytes. Plain C++ (vectors of 16 bytes, which every target has), the same order
// of additions whatever the number of threads: partial sums over 256 terms, added in order.

#include <algorithm>
#include <cstdint>

#include "ops/kernel_context.h"

namespace tombolo::ops {

/// A matrix in memory: element (i, j) at data[i * row + j * column]. A transposed matrix has the
/// strides swapped.
template <typename T>
struct MatrixView {
  const T* data;
  int64_t row, column;
};

/// c[i * c_row + j] (+)= sum over p of a(i, p) * b(p, j), for i < m, j < n, p < k. With `add`
/// false c is overwritten (zeros when k is 0). T: float, double, uint32_t, uint64_t (signed
/// integers compute as unsigned: the same bits, and no undefined overflow). One thread.
template <typename T>
void gemm(int64_t m, int64_t n, int64_t k, MatrixView<T> a, MatrixView<T> b, T* c, int64_t c_row,
          bool add = false);

extern template void gemm(int64_t, int64_t, int64_t, MatrixView<float>, MatrixView<float>, float*,
                          int64_t, bool);
extern template void gemm(int64_t, int64_t, int64_t, MatrixView<double>, MatrixView<double>,
                          double*, int64_t, bool);
extern template void gemm(int64_t, int64_t, int64_t, MatrixView<uint32_t>, MatrixView<uint32_t>,
                          uint32_t*, int64_t, bool);
extern template void gemm(int64_t, int64_t, int64_t, MatrixView<uint64_t>, MatrixView<uint64_t>,
                          uint64_t*, int64_t, bool);

/// The same, split among the threads of the run along the longer side of c.
template <typename T>
void parallel_gemm(const KernelContext& context, int64_t m, int64_t n, int64_t k, MatrixView<T> a,
                   MatrixView<T> b, T* c, int64_t c_row, bool add = false) {
  constexpr int64_t kStrip = 64;  // columns or rows: a multiple of the register tile
  const bool by_columns = n >= m;
  const int64_t length = by_columns ? n : m;
  const int64_t work = std::max<int64_t>(1, (by_columns ? m : n) * std::max<int64_t>(k, 1) / 16);
  const int64_t grain = std::clamp<int64_t>(65536 / work, 1, 1 << 20);
  context.parallel_for((length + kStrip - 1) / kStrip, grain, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kStrip, last = std::min(end * kStrip, length);
    if (by_columns)
      gemm<T>(m, last - first, k, a, {b.data + first * b.column, b.row, b.column}, c + first, c_row,
              add);
    else
      gemm<T>(last - first, n, k, {a.data + first * a.row, a.row, a.column}, b, c + first * c_row,
              c_row, add);
  });
}

}  // namespace tombolo::ops
