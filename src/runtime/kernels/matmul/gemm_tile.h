#pragma once

// The inner loop of float products: a tile of C that stays in registers while A and B stream by.
// GEMM, convolution and Winograd all stand on it. B comes as rows of full vectors (packed panels,
// padded with zeros), A either packed by columns of the tile or as it lies.

#include <cstdint>

namespace tombolo {

/// How the elements of packed panels of B are kept. Halves are widened on the way into registers
/// or, for many rows, a panel at a time: products are those of float32. Fixed26: fixed26.h.
enum class PanelFormat : uint8_t { kFloat32, kFloat16, kBfloat16, kFixed26 };
inline constexpr int kPanelFormats = 4;

/// Made once for many tiles: to fill it with zeros takes as long as a sixth of a tile of 64 inputs.
struct GemmTile {
  const float* a;
  int64_t lda;  ///< row major: from row to row; packed: from one k to the next
  const float* b;
  int64_t ldb;
  int64_t panel_step = 0;  ///< wide tiles: from one panel of B to the next
  int64_t k;
  float* c;
  int64_t ldc;
  int64_t cols;                 ///< columns of C to write, at most those of the tile
  const float* init = nullptr;  ///< what the sums start from (C itself, a residual), or null
  int64_t ldi = 0;
  const float* row_bias = nullptr;   ///< added: one for each row, or null
  const float* col_bias = nullptr;   ///< added: one for each column, or null
  const float* row_scale = nullptr;  ///< then multiplied: by one for each row, or null
  bool clamp = false;                ///< C = min(max(C, lo), hi)
  float lo = 0, hi = 0;
  /// What will be needed soon: one cache line a step of k is asked for. Null: B some steps ahead.
  const float* next = nullptr;
  int64_t next_step = 16;  ///< floats from one step of k to the next
  /// B is small: wide tiles ask for nothing ahead. What lies behind it may be no memory at all, and
  /// to find that out takes longer than such a product.
  bool near = false;
  int64_t next_also = 0;      ///< floats to a second place that is asked for as well
  float* widened = nullptr;   ///< widening tiles: where B goes as floats, for the tiles after this
  bool widened_once = false;  ///< no tile after this: kFixed26 keeps one group there
  /// Of PanelFormat::kFixed26, whose groups begin at `b`: their scales, and what they keep as
  /// floats.
  const uint8_t* scales = nullptr;
  const float* raws = nullptr;
};

using GemmTileFn = void(const GemmTile&);
using GemmRowsFn = void(const GemmTile&, int64_t rows);

inline constexpr int kMaxTileRows = 14;
inline constexpr int kMaxWideRows = 6;
inline constexpr int kMaxShort = 16;

/// Tiles of the active instruction set: [rows][vectors a row], rows from 1 to `max_rows`, vectors
/// 1 or 2.
struct GemmTiles {
  int max_rows;
  int lanes;                                        ///< floats in a vector
  GemmTileFn* row_major[kMaxTileRows + 1][3] = {};  ///< a[row * lda + k]
  GemmTileFn* packed[kMaxTileRows + 1][3] = {};     ///< a[k * lda + row]
  /// Few rows of A by whole panels of B, 4, 2 or 1 at a time: B comes from memory then, and the
  /// processor fetches several streams ahead faster than one. Null where registers do not suffice;
  /// one panel always does. `b` points to elements of the format; all are null where the
  /// instruction set has no way to widen them.
  GemmTileFn* wide[kPanelFormats][kMaxWideRows + 1][5] = {};
  /// Tall tiles on B of the format, whole panels: [row major or packed]. Of kFloat32: B that lies
  /// in no panel becomes one.
  GemmTileFn* widening[kPanelFormats][kMaxTileRows + 1][2] = {};
  /// Any number of rows, row major, of sums so short that registers hold the panel of B: such take
  /// no longer than to write them, and a tile's rows would be looked for as long. By k; null: none.
  GemmRowsFn* short_rows[kMaxShort + 1] = {};
  /// alpha * k rows of B, `row` floats apart, as rows of a panel; n columns and zeros.
  void (*pack_rows)(const float* b, int64_t row, int64_t k, int64_t n, float alpha,
                    float* out) = nullptr;
  /// n floats, of whole panels, times alpha.
  void (*scale)(float* x, int64_t n, float alpha) = nullptr;
  /// Whether it pays to pack rows of A for packed tiles: tall ones read rows as they lie.
  bool packs_rows = false;
  int panel() const { return 2 * lanes; }  ///< columns of a packed panel of B

  /// Rows a tile so that `rows` are cut evenly: 64 are 5 x 13, not 4 x 14 and 8.
  int tile_rows(int64_t rows) const {
    if (rows <= 0) return 1;
    const int64_t tiles = (rows + max_rows - 1) / max_rows;
    return static_cast<int>((rows + tiles - 1) / tiles);
  }
  GemmTileFn* row_major_tile(int rows, int64_t cols) const {
    return row_major[rows][cols > lanes ? 2 : 1];
  }
  GemmTileFn* packed_tile(int rows, int64_t cols) const {
    return packed[rows][cols > lanes ? 2 : 1];
  }
};

const GemmTiles& gemm_tiles();

}  // namespace tombolo
