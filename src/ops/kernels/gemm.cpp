#include "ops/kernels/gemm.h"

#include <cstring>

namespace tombolo::ops {

namespace {

constexpr int64_t kRows = 4;     // of the register tile
constexpr int64_t kDepth = 256;  // terms summed in registers before they go to memory
constexpr int64_t kRowBlock = 48, kColumnBlock = 64;

/// 16 bytes of T: what every 64-bit machine computes at once.
template <typename T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(16)));
  static constexpr int64_t kWidth = 16 / sizeof(T);
};

/// Columns of the register tile.
template <typename T>
constexpr int64_t kColumns = 2 * VectorOf<T>::kWidth;

/// Strips of kRows rows, each [depth][kRows]; missing rows are zero.
template <typename T>
void pack_a(MatrixView<T> a, int64_t rows, int64_t depth, T* packed) {
  for (int64_t i = 0; i < rows; i += kRows, packed += depth * kRows)
    for (int64_t r = 0; r < kRows; ++r) {
      const T* from = a.data + (i + r) * a.row;
      for (int64_t p = 0; p < depth; ++p)
        packed[p * kRows + r] = i + r < rows ? from[p * a.column] : T{};
    }
}

/// Strips of kColumns columns, each [depth][kColumns]; missing columns are zero.
template <typename T>
void pack_b(MatrixView<T> b, int64_t columns, int64_t depth, T* packed) {
  constexpr int64_t width = kColumns<T>;
  for (int64_t j = 0; j < columns; j += width, packed += depth * width) {
    const int64_t count = std::min(width, columns - j);
    for (int64_t p = 0; p < depth; ++p) {
      const T* from = b.data + p * b.row + j * b.column;
      T* to = packed + p * width;
      if (count == width && b.column == 1) {
        std::memcpy(to, from, width * sizeof(T));
      } else {
        for (int64_t c = 0; c < count; ++c) to[c] = from[c * b.column];
        for (int64_t c = count; c < width; ++c) to[c] = T{};
      }
    }
  }
}

/// tile[kRows][kColumns] = strip of a times strip of b.
template <typename T>
void multiply_tile(int64_t depth, const T* a, const T* b, T* tile) {
  using Vector = typename VectorOf<T>::Type;
  constexpr int64_t width = VectorOf<T>::kWidth;
  Vector sum[kRows][2] = {};
  for (int64_t p = 0; p < depth; ++p) {
    Vector low, high;
    std::memcpy(&low, b + p * 2 * width, sizeof low);
    std::memcpy(&high, b + p * 2 * width + width, sizeof high);
    for (int64_t r = 0; r < kRows; ++r) {
      const T factor = a[p * kRows + r];
      sum[r][0] += factor * low;
      sum[r][1] += factor * high;
    }
  }
  std::memcpy(tile, sum, sizeof sum);
}

template <typename T>
void store_tile(const T* tile, int64_t rows, int64_t columns, T* c, int64_t c_row, bool add) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < columns; ++j) {
      T& to = c[r * c_row + j];
      to = add ? to + tile[r * kColumns<T> + j] : tile[r * kColumns<T> + j];
    }
}

}  // namespace

template <typename T>
void gemm(int64_t m, int64_t n, int64_t k, MatrixView<T> a, MatrixView<T> b, T* c, int64_t c_row,
          bool add) {
  alignas(16) T a_block[kRowBlock * kDepth], b_block[kColumnBlock * kDepth];
  alignas(16) T tile[kRows * kColumns<T>];
  if (k <= 0 && !add)
    for (int64_t i = 0; i < m; ++i) std::fill_n(c + i * c_row, n, T{});
  for (int64_t j = 0; j < n; j += kColumnBlock) {
    const int64_t columns = std::min(kColumnBlock, n - j);
    for (int64_t p = 0; p < k; p += kDepth) {
      const int64_t depth = std::min(kDepth, k - p);
      pack_b<T>({b.data + p * b.row + j * b.column, b.row, b.column}, columns, depth, b_block);
      for (int64_t i = 0; i < m; i += kRowBlock) {
        const int64_t rows = std::min(kRowBlock, m - i);
        pack_a<T>({a.data + i * a.row + p * a.column, a.row, a.column}, rows, depth, a_block);
        for (int64_t jj = 0; jj < columns; jj += kColumns<T>)
          for (int64_t ii = 0; ii < rows; ii += kRows) {
            multiply_tile(depth, a_block + ii * depth, b_block + jj * depth, tile);
            store_tile(tile, std::min(kRows, rows - ii), std::min(kColumns<T>, columns - jj),
                       c + (i + ii) * c_row + j + jj, c_row, add || p > 0);
          }
      }
    }
  }
}

template void gemm(int64_t, int64_t, int64_t, MatrixView<float>, MatrixView<float>, float*, int64_t,
                   bool);
template void gemm(int64_t, int64_t, int64_t, MatrixView<double>, MatrixView<double>, double*,
                   int64_t, bool);
template void gemm(int64_t, int64_t, int64_t, MatrixView<uint32_t>, MatrixView<uint32_t>, uint32_t*,
                   int64_t, bool);
template void gemm(int64_t, int64_t, int64_t, MatrixView<uint64_t>, MatrixView<uint64_t>, uint64_t*,
                   int64_t, bool);

}  // namespace tombolo::ops
