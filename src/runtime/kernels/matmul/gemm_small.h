#pragma once

// Products so small that to pack B or to ask for threads would cost more than they do: many of them
// make up a batch. B lies in the first cache and is read where it is.

#include <cstdint>

#include "runtime/kernels/matmul/gemm.h"

namespace tombolo {

bool gemm_small_fits(int64_t m, int64_t n, int64_t k, const GemmEpilogue& epilogue);

/// C[m, n] = alpha * A[m, k] B + epilogue, rows of each in one piece and lda, ldb, ldc apart. B is
/// turned if `trans_b`: [n, k].
void gemm_small(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                int64_t ldb, bool trans_b, float alpha, float* c, int64_t ldc,
                const GemmEpilogue& epilogue);

/// Few rows with a B of any size that is turned: its rows are read where they are. Threaded.
bool gemm_dots_fits(int64_t m, const GemmEpilogue& epilogue);
void gemm_dots(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
               int64_t ldb, float alpha, float* c, int64_t ldc, const GemmEpilogue& epilogue);

/// Few rows with a B of not many columns, read where it lies. Threaded.
bool gemm_few_fits(int64_t m, int64_t n);
void gemm_few(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
              int64_t ldb, float alpha, float* c, int64_t ldc, const GemmEpilogue& epilogue);

/// Long rows with a B of few columns, which lies turned: [n, k], ldb apart. Threaded. A panel of B
/// would be empty for the most part, and sums of few rows would wait for one another.
bool gemm_columns_fits(int64_t n, int64_t k);
void gemm_columns(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                  int64_t ldb, float alpha, float* c, int64_t ldc, const GemmEpilogue& epilogue);

}  // namespace tombolo
