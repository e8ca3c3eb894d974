#pragma once

#include <cstddef>
#include <cstdint>

namespace tombolo {

/// y[j * y_step + i] = x[i * x_step + j] for i < rows, j < columns; steps in elements of `bytes`
/// (1, 2, 4 or 8).
void transpose_tile(const std::byte* x, int64_t x_step, std::byte* y, int64_t y_step, int64_t rows,
                    int64_t columns, int64_t bytes);
/// `count` pieces of `size` bytes, each `x_step` and `y_step` bytes after the one before.
void copy_strided(const std::byte* x, size_t x_step, std::byte* y, size_t y_step, size_t size,
                  int64_t count);

}  // namespace tombolo
