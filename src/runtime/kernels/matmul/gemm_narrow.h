#pragma once

// Products of many rows with a small matrix: several rows at a time, one behind the other in a
// vector, or each with its columns in one where they are longer.

#include <cstdint>

#include "runtime/kernels/matmul/gemm.h"

namespace tombolo {

bool gemm_narrow_fits(int64_t m, int64_t n, int64_t k, const GemmEpilogue& epilogue);

/// C[m, n] = alpha * A[m, k] B + epilogue, B[i, j] at b[i * row + j * column]; A, C and what is
/// added in one piece. Threaded. The same bits as gemm().
void gemm_narrow(int64_t m, int64_t n, int64_t k, const float* a, const float* b, int64_t row,
                 int64_t column, float alpha, float* c, const GemmEpilogue& epilogue);

/// C[i, j] = alpha * A[i] B[j]: numbers of A lie lda apart, rows of C ldc. Threaded.
void gemm_outer(int64_t m, int64_t n, float alpha, const float* a, int64_t lda, const float* b,
                float* c, int64_t ldc);

}  // namespace tombolo
