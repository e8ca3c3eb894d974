#pragma once

// Numpy broadcasting as a few nested loops: axes that behave alike are joined, axes of length 1 are
// dropped, the innermost comes first.

#include <algorithm>
#include <optional>
#include <span>

#include "ir/tensor.h"

namespace tombolo {

template <int kInputs>
struct BroadcastLoops {
  static constexpr int kMaxAxes = 8;
  int axes = 0;
  int64_t count = 1;
  int64_t length[kMaxAxes] = {};
  int64_t step[kMaxAxes][kInputs] = {};  ///< in elements; 0 where repeated
  Dims output;

  static std::optional<BroadcastLoops> of(const std::span<const int64_t> (&dims)[kInputs]) {
    BroadcastLoops loops;
    size_t rank = 0;
    for (const auto& d : dims) rank = std::max(rank, d.size());
    loops.output.resize(static_cast<uint32_t>(rank), 1);
    for (const auto& d : dims)
      for (size_t i = 0; i < d.size(); ++i) {
        int64_t& out = loops.output[static_cast<uint32_t>(i + rank - d.size())];
        if (d[i] == out || d[i] == 1) continue;
        if (out != 1) return std::nullopt;
        out = d[i];
      }
    loops.count = element_count(loops.output);
    if (loops.count < 0) return std::nullopt;
    int64_t stride[kInputs];
    std::fill_n(stride, kInputs, int64_t{1});
    for (size_t i = rank; i-- > 0;) {
      const int64_t length = loops.output[static_cast<uint32_t>(i)];
      int64_t step[kInputs];
      for (int k = 0; k < kInputs; ++k) {
        const size_t own = dims[k].size();
        const int64_t dim = i + own >= rank ? dims[k][i + own - rank] : 1;
        step[k] = dim == 1 ? 0 : stride[k];
        stride[k] *= dim;
      }
      if (length == 1) continue;
      const int last = loops.axes - 1;
      bool joins = last >= 0;
      for (int k = 0; k < kInputs && joins; ++k)
        joins = step[k] == loops.step[last][k] * loops.length[last];
      if (joins) {
        loops.length[last] *= length;
        continue;
      }
      if (loops.axes == kMaxAxes) return std::nullopt;
      loops.length[loops.axes] = length;
      std::copy_n(step, kInputs, loops.step[loops.axes]);
      ++loops.axes;
    }
    if (loops.axes == 0) {
      loops.axes = 1;
      loops.length[0] = 1;
      std::fill_n(loops.step[0], kInputs, int64_t{1});
    }
    return loops;
  }

  /// Elements [begin, end) of the output as runs along the innermost axis:
  /// body(output index, offsets of the inputs, length).
  template <typename Body>
  void for_runs(int64_t begin, int64_t end, Body&& body) const {
    if (begin >= end) return;
    int64_t place[kMaxAxes], offset[kInputs] = {};
    int64_t rest = begin;
    for (int axis = 0; axis < axes; ++axis) {
      place[axis] = rest % length[axis];
      rest /= length[axis];
      for (int k = 0; k < kInputs; ++k) offset[k] += place[axis] * step[axis][k];
    }
    while (true) {
      const int64_t n = std::min(end - begin, length[0] - place[0]);
      body(begin, offset, n);
      begin += n;
      if (begin >= end) return;
      for (int k = 0; k < kInputs; ++k) offset[k] -= place[0] * step[0][k];
      place[0] = 0;
      for (int axis = 1; axis < axes; ++axis) {
        for (int k = 0; k < kInputs; ++k) offset[k] += step[axis][k];
        if (++place[axis] < length[axis]) break;
        for (int k = 0; k < kInputs; ++k) offset[k] -= length[axis] * step[axis][k];
        place[axis] = 0;
      }
    }
  }
};

}  // namespace tombolo
