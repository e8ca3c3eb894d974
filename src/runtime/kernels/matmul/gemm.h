#pragma once

// Float matrix products over packed weights. A is row major, B lies in panels of as many columns as
// a tile is wide ([panel][k][column], padded with zeros), C is row major.

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/matmul/gemm_tile.h"

namespace tombolo {

constexpr int64_t round_up(int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; }

/// What is applied to a finished block of C that no tile can do itself (Gelu, ...).
struct BlockPost {
  void (*apply)(const void* argument, float* c, int64_t ldc, int64_t row, int64_t rows,
                int64_t column, int64_t columns);
  const void* argument;
};

struct GemmEpilogue {
  const float* row_bias = nullptr;
  const float* col_bias = nullptr;
  const float* init = nullptr;  ///< added: a residual, or C itself for C += A B
  int64_t ldi = 0;
  bool clamp = false;
  float lo = 0, hi = 0;
  const BlockPost* post = nullptr;
  /// Panels of B from the last to the first; the same bits. For products in a row with a B that is
  /// a little larger than a cache: where every other one goes backwards, it begins with what the
  /// one before it has left there.
  bool backwards = false;

  /// Nothing is done to the sums.
  bool is_plain() const {
    return row_bias == nullptr && col_bias == nullptr && init == nullptr && !clamp &&
           post == nullptr;
  }
};

/// Floats of the packed form of a k x n matrix.
int64_t packed_b_floats(int64_t k, int64_t n);
/// Packs alpha * B, with B[i, j] at b[i * row + j * column]. Threaded.
void pack_b(const float* b, int64_t row, int64_t column, int64_t k, int64_t n, float alpha,
            float* out);
/// One panel: columns [0, n) of b, n at most the width of a panel.
void pack_b_panel(const float* b, int64_t row, int64_t column, int64_t k, int64_t n, float alpha,
                  float* out);

/// Is told which floats have been read.
struct ReadFloats {
  void (*done)(const void* argument, int64_t begin, int64_t end) = [](const void*, int64_t,
                                                                      int64_t) {};
  const void* argument = nullptr;
};

/// Whether gemm() takes B in this format on the active instruction set.
bool takes_panels(PanelFormat format);
/// One panel of 16-bit elements, as they are, from any address: b[i * row + j * column].
void pack_b_panel(const uint16_t* b, int64_t row, int64_t column, int64_t k, int64_t n,
                  uint16_t* out);

/// C[m, n] = A[m, k] B + epilogue. Threaded.
void gemm(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* packed_b,
          float* c, int64_t ldc, const GemmEpilogue& epilogue);
/// The same with panels of another format (takes_panels), as many elements: equal bits to those of
/// the panels widened, unless 16 bits of A count (`short_a`: a model in halves) and the processor
/// multiplies such faster (gemm_parts.h). Few rows by kFixed26 have more exact sums.
void gemm(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const void* packed_b,
          PanelFormat format, float* c, int64_t ldc, const GemmEpilogue& epilogue,
          bool short_a = false);
/// The same with B as it lies: row major, rows ldb apart. For few rows of A, where packing would
/// cost more than it saves.
void gemm_unpacked(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                   int64_t ldb, float* c, int64_t ldc, const GemmEpilogue& epilogue);

/// The same with alpha * b[i * row + j * column], whose panels are packed one at a time on the way,
/// for a B that one product uses: it need not be kept.
bool gemm_packing_fits(int64_t m);
void gemm_packing(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                  int64_t row, int64_t column, float alpha, float* c, int64_t ldc,
                  const GemmEpilogue& epilogue);

/// Where B lies that is not packed: alpha * b[i * row + j * column].
struct LyingB {
  int64_t row, column;
  float alpha;
};
/// gemm() with A turned: [k][m], lda floats from one k to the next. B is packed, or packed on the
/// way where it `lies`.
void gemm_turned(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                 const LyingB* lies, float* c, int64_t ldc, const GemmEpilogue& epilogue);

/// Floats of A (m x k) packed by tiles, as the left side of a product whose right side is made on
/// the way (convolution): [tile][k][row].
int64_t packed_a_floats(int64_t m, int64_t k);
/// A[i, j] at a[i * row + j * column].
void pack_a(const float* a, int64_t row, int64_t column, int64_t m, int64_t k, float* out);

/// What may take part of the second cache and stay there: half of it.
int64_t near_bytes();

/// Whether rows so many floats apart, a multiple of 4 KiB, fall into one set of the first cache.
inline bool rows_collide(int64_t lda) { return lda % 1024 == 0; }

/// Whether threads take whole images of a batch with so many weights, rather than parts of one
/// image after the other: small images do not wait for one another then, but each thread reads all
/// weights. `parts`: how many of an image threads could share; few do not come out even.
bool images_apart(int64_t batch, int64_t weight_floats, int64_t parts);

/// Memory of the calling thread, 64-byte aligned, with anything in it, valid until its next call.
/// `slot` tells apart what is needed at the same time (0 to 6; 4 to 6: gemm() itself).
float* thread_floats(int slot, size_t count);
inline constexpr int kThreadRooms = 7;  ///< slots
/// So few threads have one piece each where a piece begins with what nobody has asked for yet. Of
/// more some are slower than the others (they share a core, or their machine with others): there
/// are several pieces for each.
inline constexpr int64_t kFewThreads = 2;
/// Products of floats, or of floats by codes, that are worth a thread's turn.
inline constexpr int64_t kWorthATurn = 200'000;
/// Into how many blocks `rows` rows are cut, `blocks` or more: where threads would share few pieces
/// (`each` of a block), or few threads not as many each, blocks are smaller, down to `least` rows.
int64_t row_blocks(int64_t blocks, int64_t each, int64_t rows, int64_t least);
/// Into how many groups of panels threads cut each of so many blocks of rows.
int64_t panel_groups(int64_t blocks, int64_t panels);

}  // namespace tombolo
