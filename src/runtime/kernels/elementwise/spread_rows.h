#pragma once

// Broadcasting along a short innermost axis: what one input has to say to a block of the output,
// written out. Run by run, such rows would cost more to find than to compute.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "runtime/kernels/broadcast.h"

namespace tombolo {

constexpr int64_t kShortRow = 64;
/// Elements before and behind a block that spread_rows() may write: only whole rows are written.
constexpr int64_t kSpreadBefore = kShortRow, kSpreadBehind = 2 * kShortRow;

/// Each of `x` as often as a row is long. Whole chunks: the next row overwrites what was too much.
template <int kChunk, typename T>
void repeat_each(const T* x, int64_t rows, int64_t row, T* to) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < row; j += kChunk) std::fill_n(to + i * row + j, kChunk, x[i]);
}

/// `row` elements again and again.
template <typename T>
void repeat_row(const T* x, int64_t rows, int64_t row, T* to) {
  std::copy_n(x, row, to);
  for (int64_t done = row, all = rows * row; done < all; done *= 2)
    std::memcpy(to + done, to, static_cast<size_t>(std::min(done, all - done)) * sizeof(T));
}

/// Where elements [at, at + n) of input `k` lie as broadcast: in `to`, or in `x` itself. `held`
/// says what `to` was made of before, and is set to what it is made of now; -1: of nothing that
/// comes again. It counts on blocks of one length, but for the last.
template <typename T, int kInputs>
const T* spread_rows(const BroadcastLoops<kInputs>& loops, int k, const T* x, int64_t at, int64_t n,
                     T* to, int64_t& held) {
  const int64_t row = loops.length[0], rows_inside = loops.axes > 1 ? loops.length[1] : 1;
  const int64_t step = loops.step[0][k], row_step = loops.axes > 1 ? loops.step[1][k] : 0;
  const int64_t end = at + n;
  for (int64_t from = at - at % row; from < end;) {
    int64_t rest = from / row;
    const int64_t inside = rest % rows_inside;
    rest /= rows_inside;
    int64_t offset = inside * row_step;
    for (int axis = 2; axis < loops.axes; ++axis) {
      offset += rest % loops.length[axis] * loops.step[axis][k];
      rest /= loops.length[axis];
    }
    const int64_t rows = std::min(rows_inside - inside, (end - from + row - 1) / row);
    const int64_t next = from + rows * row;
    if (row_step == 0) {
      const int64_t made_of = step == 0 ? offset : offset * row + at % row;
      const bool whole = from <= at && next >= end;
      if (whole && held == made_of) return to;
      held = whole ? made_of : -1;
    } else if (step != 0 && from <= at && next >= end) {
      return x + offset + (at - from);
    } else {
      held = -1;
    }
    T* out = to + (from - at);
    if (step == 0 && row_step == 0)
      std::fill_n(out, rows * row, x[offset]);
    else if (row_step == 0)
      repeat_row(x + offset, rows, row, out);
    else if (step != 0)
      std::memcpy(out, x + offset, static_cast<size_t>(rows * row) * sizeof(T));
    else if (row <= 4)
      repeat_each<4>(x + offset, rows, row, out);
    else if (row <= 8)
      repeat_each<8>(x + offset, rows, row, out);
    else
      repeat_each<16>(x + offset, rows, row, out);
    from = next;
  }
  return to;
}

}  // namespace tombolo
