#pragma once

// Moving elements without looking at them: one implementation per element width, strings, and
// packed sub-byte elements. Callers have checked bounds and that both tensors have one type.

#include <cstdint>
#include <span>
#include <vector>

#include "ir/tensor.h"

namespace tombolo::ops {

/// Strides in elements of a contiguous tensor of this shape.
Dims contiguous_strides(std::span<const int64_t> dims);

/// Copies `count` consecutive elements.
void copy_elements(const Tensor& from, int64_t from_index, Tensor& to, int64_t to_index,
                   int64_t count);

/// Writes element `value_index` of `value` to `count` consecutive elements.
void fill_elements(const Tensor& value, int64_t value_index, Tensor& to, int64_t to_index,
                   int64_t count);

/// All elements zero (strings empty, bool false).
void fill_zero(Tensor& to);

/// Copies a box of shape `dims`: element i of it from from_offset + i . from_strides to
/// to_offset + i . to_strides. Strides may be zero or negative.
void copy_box(const Tensor& from, int64_t from_offset, std::span<const int64_t> from_strides,
              Tensor& to, int64_t to_offset, std::span<const int64_t> to_strides,
              std::span<const int64_t> dims);

/// Element i of `to`, whose axes are as long as the tables, is element (tables[0][i0],
/// tables[1][i1], ...) of `from`, seen as `from_dims`; `value` where a table says -1.
void copy_by_tables(const Tensor& from, std::span<const int64_t> from_dims,
                    std::span<const std::vector<int64_t>> tables, const Tensor* value, Tensor& to);

/// Whether elements can be written from several threads (not where they share bytes).
inline bool parallel_safe(DType dtype) { return !is_sub_byte(dtype); }

}  // namespace tombolo::ops
