#pragma once

// Products of floats by AMX, whose tiles multiply bytes thirty-two times as fast as vectors
// multiply floats.
//
// Each row of A and each column of B is an integer of 31 bits times a power of two that its largest
// number determines. Integers are four digits of eight signed bits, and of all products of one
// digit with another the ten that count are added up in int32, which rounds nothing: those whose
// places together are at least a 2^-32nd of the first one. Where columns of B hold numbers of about
// one size, and so does a row of A, the lowest digit of B is left out: what that loses is less than
// sums of floats round off. Rows of A whose numbers are too far from one another go by vectors, as
// does a B like that (digits_of). (The scheme: K. Ozaki, T. Ogita, S. Oishi, S. M. Rump, Error-free
// transformations of matrix multiplication by using fast routines of matrix multiplication and its
// applications, 2012; with integers: H. Ootomo, K. Ozaki, R. Yokota, DGEMM on integer matrix
// multiplication unit, 2024.)

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/kernels/matmul/gemm.h"

namespace tombolo {

inline constexpr int64_t kDigitsDepth = 64;  ///< of k in a step
inline constexpr int64_t kDigitsWidth = 32;  ///< columns of a panel

/// How a matrix of k x n lies:
///   scales: for each column what its highest digit counts, up to whole panels
///   panel:  two halves of 16 columns
///   half:   for each step the three higher digits, the highest first; then the lowest of each step
///   digit:  [16][16 columns][4]: byte i of line j is that of row 16 i + j of the step
struct DigitPanels {
  int64_t k = 0, n = 0;
  bool three = false;  ///< digits are enough for rows of A that are even

  int64_t steps() const { return (k + kDigitsDepth - 1) / kDigitsDepth; }
  int64_t panels() const { return (n + kDigitsWidth - 1) / kDigitsWidth; }
  int64_t half() const { return steps() * 4 * 1024; }  ///< bytes
  int64_t scales() const { return panels() * kDigitsWidth * 4; }
  int64_t bytes() const { return scales() + panels() * 2 * half(); }
};

/// Whether the processor can, and such a product is large enough to gain.
bool digits_fit(int64_t n, int64_t k);

/// How B, k x n floats at any address (turned: n x k), lies as digits: not at all if a column holds
/// numbers too far from one another, infinities or NaN. Writes the scales, up to whole panels.
/// `read` is told which floats have been read. Threaded.
std::optional<DigitPanels> digits_of(const std::byte* b, int64_t k, int64_t n, bool turned,
                                     const ReadFloats& read, float* scales);
/// Packs rows [k0, k0 + k) of a panel from floats [k][32]. k0 is a multiple of 64, and so is k but
/// at the end. The scales are there already.
void digits_pack(const float* rows, int64_t k0, int64_t k, const DigitPanels& panels, int64_t panel,
                 std::byte* matrix);

/// C[m, n] = A B + epilogue. Threaded.
void gemm_digits(int64_t m, const float* a, int64_t lda, const std::byte* b,
                 const DigitPanels& panels, float* c, int64_t ldc, const GemmEpilogue& epilogue);

}  // namespace tombolo
