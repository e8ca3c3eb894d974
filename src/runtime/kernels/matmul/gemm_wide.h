#pragma once

// Matrix products of doubles and of 32- and 64-bit integers (which wrap, so that unsigned types
// serve signed ones too).

#include <cstdint>

namespace tombolo {

/// C[m, n] = A B with A[i, p] at a[i * lda + p] and B in panels of `wide_panel` columns:
/// [panel][k][column], padded with zeros; C has rows of ldc. Rows [row, row + rows) and panels
/// [panel, panel + panels) of it.
template <typename T>
struct WideProduct {
  const T* a;
  int64_t lda;
  const T* packed_b;
  T* c;
  int64_t ldc;
  int64_t n, k;
};

/// Columns of a panel.
template <typename T>
int64_t wide_panel();
/// Rows that are computed together: parts of the work should be multiples of it.
template <typename T>
int64_t wide_rows();

/// B[p, j] at b[p * row + j * column]; packs panels [begin, end).
template <typename T>
void pack_wide(const T* b, int64_t row, int64_t column, int64_t k, int64_t n, int64_t begin,
               int64_t end, T* packed);

template <typename T>
void multiply_wide(const WideProduct<T>& product, int64_t row, int64_t rows, int64_t panel,
                   int64_t panels);

/// Columns [begin, end) of one row by B[k, n] as it lies.
void multiply_row(const double* a, const double* b, int64_t k, int64_t n, int64_t begin,
                  int64_t end, double* c);

}  // namespace tombolo
