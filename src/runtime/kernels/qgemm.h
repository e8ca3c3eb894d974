#pragma once

// Products of bytes with sums of 32 bits. Both sides are cut into groups of k that fill four bytes:
// four bytes where the processor has VNNI, two 16-bit numbers elsewhere (whose products cannot
// saturate). One side is broadcast group by group, the other lies in panels [group][column].
//
// Everywhere below, unsigned numbers a' are 0..255 (signed ones are stored plus 128) and signed
// numbers b' are -128..127 (unsigned ones are stored minus 128); zero points move along.

#include <cstddef>
#include <cstdint>

namespace tombolo {

struct QTile {
  const std::byte* a;  ///< broadcast side: rows of groups
  int64_t lda;         ///< bytes from row to row
  const std::byte* b;  ///< panel
  int64_t groups;
  int32_t* c;
  int64_t ldc;
};
using QTileFn = void(const QTile&);

inline constexpr int kMaxQRows = 14;

struct QTiles {
  int max_rows;
  int panel;                                   ///< columns
  int group;                                   ///< elements of k in a group: 4 or 2
  int element;                                 ///< bytes of one: 1 or 2
  QTileFn* unsigned_rows[kMaxQRows + 1] = {};  ///< the broadcast side is unsigned
  QTileFn* signed_rows[kMaxQRows + 1] = {};    ///< the broadcast side is signed
  const char* name;

  int64_t groups_of(int64_t k) const { return (k + group - 1) / group; }
  int tile_rows(int64_t rows) const {
    if (rows <= 0) return 1;
    const int64_t tiles = (rows + max_rows - 1) / max_rows;
    return static_cast<int>((rows + tiles - 1) / tiles);
  }
};
const QTiles& q_tiles();
/// VNNI's, filled where the compiler can; the caller asks whether the processor has it.
void fill_vnni_tiles(QTiles& tiles);

/// What becomes of a block of sums: value = sum + row_add[r] + column_add[c] - row_sum[r] *
/// zero[c].
struct QFinish {
  const int32_t* row_add = nullptr;
  const int32_t* column_add = nullptr;
  const int32_t* row_sum = nullptr;
  const int32_t* zero = nullptr;     ///< one for each column, with row_sum
  const float* row_scale = nullptr;  ///< float and byte results: value * row_scale * column_scale
  const float* column_scale = nullptr;
  float scale = 1;
  const float* column_bias = nullptr;  ///< float results
  enum class Kind : uint8_t { kInt32, kFloat, kByte } kind = Kind::kInt32;
  // Bytes: round to nearest even, add the zero point, clamp.
  int32_t zero_point = 0, least = 0, greatest = 255;
  void* out = nullptr;
  int64_t ldo = 0;  ///< elements from row to row
};
/// sums[rows][columns] (ldc apart) belong at (row, column) of the result.
void q_finish(const QFinish& finish, const int32_t* sums, int64_t ldc, int64_t row, int64_t rows,
              int64_t column, int64_t columns);

/// The side that is broadcast: m rows of k bytes as groups, zeros at the end. `flip` adds (or takes
/// away) 128. `is_signed` says what the bytes are after that.
int64_t q_row_bytes(int64_t k);
void q_pack_rows(const uint8_t* x, int64_t ldx, int64_t m, int64_t k, bool flip, bool is_signed,
                 std::byte* out);
/// The side in panels: x[i * row + j * column] for i < k, j < n; sums[j] is the sum down column j.
size_t q_panel_bytes(int64_t k, int64_t n);
void q_pack_panels(const uint8_t* x, int64_t row, int64_t column, int64_t k, int64_t n, bool flip,
                   bool is_signed, std::byte* out, int32_t* sums);
/// rows[i][0..width) (bytes, `step` apart), i < k, as one panel.
void q_interleave(const uint8_t* rows, int64_t step, int64_t k, bool is_signed, std::byte* out);
void q_row_sums(const uint8_t* x, int64_t ldx, int64_t m, int64_t k, bool flip, bool is_signed,
                int32_t* sums);

/// C = A B, A unsigned rows, B signed panels, finished. Threaded.
void qgemm(int64_t m, int64_t n, int64_t k, const std::byte* a, const std::byte* b,
           const QFinish& finish);

}  // namespace tombolo
