#pragma once

// Products of floats by AMX, whose tiles multiply bytes thirty-two times as fast as vectors
// multiply floats.
//
// Each row of A and each column of B is an integer of 31 bits times a power of two that its largest
// number determines. Integers are four digits of eight signed bits, and of all products of one
// digit with another the ten that count are added up in int32, which rounds nothing: those whose
// places together are at least a 2^-32nd of the first one. Rows of A whose numbers are too far from
// one another go by vectors, as does a B like that (digits_of). (The scheme: K. Ozaki, T. Ogita, S.
// Oishi, S. M. Rump, Error-free transformations of matrix multiplication by using fast routines of
// matrix multiplication and its applications, 2012; with integers: H. Ootomo, K. Ozaki, R. Yokota,
// DGEMM on integer matrix multiplication unit, 2024.)

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/kernels/matmul/gemm.h"
#include "runtime/kernels/parallel.h"

namespace tombolo {

inline constexpr int64_t kDigitsDepth = 64;  ///< of k in a step
inline constexpr int64_t kDigitsWidth = 32;  ///< columns of a panel
inline constexpr int64_t kDigitsHalf = kDigitsWidth / 2;
inline constexpr int64_t kDigitsRows = 16;  ///< of A in a tile

/// How a matrix of k x n lies:
///   scales: for each column what its highest digit counts, up to whole panels
///   panel:  two halves of 16 columns
///   half:   steps, of each its digits, the highest first
///   digit:  [16][16 columns][4]: byte i of line j is that of row 16 i + j of the step
/// Weights that are bytes have one digit, and a scale that is no power of two: four products in
/// place of ten.
struct DigitPanels {
  int64_t k = 0, n = 0;
  int64_t digits = 4;              ///< or 1
  int64_t skipped = 0, whole = 0;  ///< of more steps only some: what is before them, how many; or 0

  int64_t steps() const { return (k + kDigitsDepth - 1) / kDigitsDepth; }
  int64_t panels() const { return (n + kDigitsWidth - 1) / kDigitsWidth; }
  int64_t halves() const {
    return (n + kDigitsHalf - 1) / kDigitsHalf;
  }  ///< of panels that hold a column
  int64_t step_bytes() const { return digits * 1024; }
  int64_t half() const { return std::max(steps(), whole) * step_bytes(); }  ///< bytes
  int64_t scales() const { return panels() * kDigitsWidth * 4; }
  int64_t bytes() const { return scales() + panels() * 2 * half(); }
};

/// Whether the processor can, and such a product is large enough to gain.
bool digits_fit(int64_t n, int64_t k);

/// One scale for many rows, -1 where integers do not hold them.
struct DigitScale {
  float scale;
  int exponent;
};

/// Whether integers hold B, k x n floats at any address (turned: n x k): not if a column has
/// numbers too far from one another, infinities or NaN. Writes the scales, up to whole panels.
/// `read` is told which floats have been read. Threaded.
bool digits_of(const std::byte* b, int64_t k, int64_t n, bool turned, const ReadFloats& read,
               float* scales);
/// Packs rows [k0, k0 + k) of a panel from floats [k][32]. k0 is a multiple of 64, and so is k but
/// at the end. The scales are there already.
void digits_pack(const float* rows, int64_t k0, int64_t k, const DigitPanels& panels, int64_t panel,
                 std::byte* matrix);
/// All k rows of a panel, with a scale for each column, or `all` where that is above zero. False
/// where integers do not hold it.
bool digits_pack_panel(const float* rows, int64_t k, const DigitScale& all,
                       const DigitPanels& panels, int64_t panel, std::byte* matrix);
/// alpha * B at once, B[i, j] at b[i * row + j * column], one of which is 1: `k` rows and `n`
/// columns, the first ones of the panels. False where integers do not hold it. `alike`: columns may
/// share a scale, so that those of small numbers are as exact as the others, but no more.
bool digits_pack_b(const float* b, int64_t row, int64_t column, int64_t k, int64_t n, float alpha,
                   bool alike, const DigitPanels& panels, std::byte* matrix);

/// `k` numbers of A: sixteen at `a`, the next `plane` floats on.
struct DigitRow {
  const float* a;
  int64_t plane;
  int64_t k;
};
/// As they are, one behind the other.
inline void copy_row(const DigitRow& row, float* out) {
  for (int64_t i = 0; i < row.k; i += 16)
    std::copy_n(row.a + i / 16 * row.plane, std::min<int64_t>(16, row.k - i), out + i);
}
/// Where their digits go, 64 bytes of each in a step: the highest first, `digit` bytes apart.
struct DigitPlaces {
  std::byte* digits;
  int64_t step;
  int64_t digit;
};
/// Returns the scale, above zero, or -1 where integers do not hold the row and zeros are written.
float split_digits(const DigitRow& row, const DigitPlaces& to);
void clear_digits(int64_t k, const DigitPlaces& to);
/// That of an image, [channels / 16][pixel][16]. Threaded.
DigitScale digits_scale(const float* x, int64_t channels, int64_t pixels);
void split_digits_as(const DigitRow& row, const DigitScale& scale, const DigitPlaces& to);
/// That of `rows` rows of k numbers, ldx apart.
DigitScale digits_scale_of_rows(const float* x, int64_t ldx, int64_t rows, int64_t k);
/// That of numbers up to 1.
inline constexpr DigitScale kDigitsOfOne{1.0f / 64, 0};

/// Rows of a block, whole tiles, so that `rows` are cut evenly: into a multiple of `unit` blocks,
/// each of which stays in the second cache while panels of B pass.
constexpr int64_t digits_block(int64_t rows, int64_t unit = 1) {
  constexpr int64_t kMost = 256;
  const int64_t blocks = round_up((rows + kMost - 1) / kMost, unit);
  return round_up((rows + blocks - 1) / blocks, kDigitsRows);
}
/// Bytes of a tile of 16 rows as digits: [step][digit][16][64].
constexpr int64_t digit_tile_bytes(int64_t k) {
  return (k + kDigitsDepth - 1) / kDigitsDepth * 4 * 1024;
}
/// Floats that a block of whole tiles takes: a scale for each row, then the tiles.
constexpr int64_t digit_block_floats(int64_t rows, int64_t k) {
  return rows + rows / kDigitsRows * digit_tile_bytes(k) / 4;
}
/// Where row `row` of such tiles goes.
inline DigitPlaces digit_places(std::byte* digits, int64_t row, int64_t k) {
  return {digits + row / kDigitsRows * digit_tile_bytes(k) + row % kDigitsRows * 64, 4 * 1024,
          1024};
}
/// Rows [first, last) of tiles of `rows` rows of k numbers each, of which row_at(row) is a
/// DigitRow, filled up with zeros; and their scales: `all` where that is above zero.
template <typename RowAt>
void split_rows(int64_t first, int64_t last, int64_t rows, int64_t k, std::byte* digits,
                float* scales, RowAt&& row_at, const DigitScale& all = {-1, 0}) {
  for (int64_t r = first; r < last; ++r) {
    const DigitPlaces to = digit_places(digits, r, k);
    if (r >= rows) {
      clear_digits(k, to);
    } else if (all.scale > 0) {
      split_digits_as(row_at(r), all, to);
      scales[r] = all.scale;
    } else {
      scales[r] = split_digits(row_at(r), to);
    }
  }
}
/// All of them.
template <typename RowAt>
void split_tiles(int64_t rows, int64_t k, std::byte* digits, float* scales, RowAt&& row_at,
                 const DigitScale& all = {-1, 0}) {
  split_rows(0, round_up(rows, kDigitsRows), rows, k, digits, scales, row_at, all);
}

/// Rows of A as digits. Whole tiles of 16 rows are read.
struct DigitRows {
  const std::byte* digits;
  int64_t tile;                     ///< bytes from 16 rows to the next
  int64_t line = 64;                ///< from a row to the next
  int64_t digit = 1024;             ///< from a digit to the next
  const int64_t* steps = nullptr;   ///< where each step begins; null: one after the other
  const float* scales;              ///< of each row: 0 where nobody reads it, -1: by vectors
  const int32_t* places = nullptr;  ///< of rows in the result; null: one after the other
  /// Row `row` as floats, in the order of B; `room` is for k of them.
  const float* (*floats)(const void* argument, int64_t row, float* room);
  const void* argument;
};
/// Rows that lie `step` floats apart, for DigitRows::floats.
struct PlainRows {
  const float* a;
  int64_t step;
  static const float* row(const void* argument, int64_t row, float*) {
    const auto& self = *static_cast<const PlainRows*>(argument);
    return self.a + row * self.step;
  }
};
/// Where a product goes: sixteen columns at `c`, the next `plane` floats on, rows `ldc`.
struct DigitResult {
  float* c;
  int64_t ldc;
  int64_t plane = 16;
  const float* init = nullptr;  ///< added, or null
  int64_t ldi = 0;
  int64_t init_plane = 16;
  const float* row_bias = nullptr;
  const float* column_bias = nullptr;
  bool clamp = false;
  float lo = 0, hi = 0;
  /// What is done to finished columns of all rows, or null.
  void (*post)(const void* argument, int64_t rows, int64_t column, int64_t columns) = nullptr;
  const void* argument = nullptr;
};
/// Steps of k so that what a panel of B meets at a time stays in the second cache.
int64_t digits_depth(int64_t rows, int64_t steps);
/// Rows of A by halves [from, to) of panels of B, `depth` steps of all of them before the next
/// steps.
void digits_product(const DigitRows& a, int64_t rows, const std::byte* b, const DigitPanels& panels,
                    const DigitResult& result, int64_t depth, int64_t from, int64_t to);

/// fn(block, from, to) for blocks of rows and panels (or halves) [from, to) of each, which are cut
/// into so many groups; what a thread takes of one block is one call. Threaded, at least `grain`
/// groups for each.
template <typename Fn>
void share_products(int64_t blocks, int64_t groups, int64_t panels, Fn&& fn, int64_t grain = 1) {
  // Halves of one panel together take less time than apart.
  const int64_t unit = panels >= 2 * groups ? 2 : 1, units = panels / unit;
  const auto start = [&](int64_t group) {
    return group == groups ? panels : units * group / groups * unit;
  };
  parallel(blocks * groups, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t block = begin / groups, first = begin % groups;
      const int64_t last = std::min(groups, end - block * groups);
      fn(block, start(first), start(last));
      begin += last - first;
    }
  });
}

/// C[m, n] = A B + epilogue. Threaded.
void gemm_digits(int64_t m, const float* a, int64_t lda, const std::byte* b,
                 const DigitPanels& panels, float* c, int64_t ldc, const GemmEpilogue& epilogue);

/// B as floats, some panels of which become digits at a time.
struct FloatPanels {
  /// [k][32], filled up with zeros: in `room` or where they lie.
  const float* (*panel)(const void* argument, int64_t panel, float* room);
  const void* argument;
  /// Those that are bytes: writes the one digit of each half, `half` bytes apart, and the scales of
  /// the columns. Null: four digits are made of the floats.
  void (*bytes)(const void* argument, int64_t panel, int64_t half, std::byte* to,
                float* scales) = nullptr;
};
/// Whether that repays making digits.
bool digits_pay_for_floats(int64_t m, int64_t n, int64_t k);
/// The same of weights that are bytes.
bool digits_pay_for_bytes(int64_t m, int64_t n, int64_t k);
/// C[m, n] = A B + epilogue. Panels that integers do not hold go by vectors. Threaded.
void gemm_digits(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const FloatPanels& b,
                 float* c, int64_t ldc, const GemmEpilogue& epilogue);

}  // namespace tombolo
