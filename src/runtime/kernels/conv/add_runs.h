#pragma once

// Pieces of rows that are added to pieces of rows.

#include <cstdint>
#include <span>

namespace tombolo {

/// `count` elements from `from` on, added to those from `to` on.
struct AddRun {
  int64_t from, to, count;
  /// With a stride of 2: as many elements that are added to those between; none: -1.
  int64_t between = -1;
};
/// image[run.to + i * stride] += columns[run.from + i], run after run; of float, double, uint32_t
/// or uint64_t.
template <typename T>
void add_runs(std::span<const AddRun> runs, int64_t stride, const T* columns, T* image);

}  // namespace tombolo
