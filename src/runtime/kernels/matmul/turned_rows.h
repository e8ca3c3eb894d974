#pragma once

// A few rows times a B that lies turned, whose rows are read where they are: to pack them would
// take longer than the products.

#include <cstdint>

#include "runtime/kernels/matmul/gemm.h"

namespace tombolo {

/// c[r * ldc + j] = row r of a (m rows of k, lda apart) times row j of b (n of them, ldb apart).
struct TurnedRows {
  const float* a;
  int64_t lda, m;
  const float* b;
  int64_t ldb, n, k;
  float* c;
  int64_t ldc;
};
/// On the calling thread; B is read once for every few rows of A.
void turned_rows(const TurnedRows& rows);

/// Whether that takes less time than to pack B.
bool gemm_turned_rows_fits(int64_t m, int64_t n, int64_t k);
/// C[m, n] = alpha * A[m, k] B + epilogue, with B as [n, k]. Threaded.
void gemm_turned_rows(const TurnedRows& rows, float alpha, const GemmEpilogue& epilogue);

}  // namespace tombolo
