#pragma once

#include <cstddef>
#include <cstdint>

namespace tombolo {

/// Tiles of one size; steps in elements, `next` ones from tile to tile.
struct Tiles {
  int64_t x_step, y_step, rows, columns;
  int64_t count = 1, x_next = 0, y_next = 0;
  int64_t lines = 1, x_line = 0, y_line = 0;  ///< of `count` tiles each
};
/// y[l * y_line + t * y_next + j * y_step + i] = x[l * x_line + t * x_next + i * x_step + j] for
/// l < lines, t < count, i < rows, j < columns, of elements of `bytes` (1, 2, 4 or 8).
void transpose_tiles(const std::byte* x, std::byte* y, const Tiles& all, int64_t bytes);
/// One of them: y[j * y_step + i] = x[i * x_step + j] for i < rows, j < columns.
void transpose_tile(const std::byte* x, int64_t x_step, std::byte* y, int64_t y_step, int64_t rows,
                    int64_t columns, int64_t bytes);
/// `count` pieces of `size` bytes, each `x_step` and `y_step` bytes after the one before.
void copy_strided(const std::byte* x, size_t x_step, std::byte* y, size_t y_step, size_t size,
                  int64_t count);

}  // namespace tombolo
