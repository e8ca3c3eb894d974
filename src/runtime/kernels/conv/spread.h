#pragma once

#include <cstdint>
#include <vector>

#include "runtime/kernels/conv/conv.h"

namespace tombolo {

/// The last step of a transposed convolution: where what the positions of its kernel give goes.
struct SpreadPlan {
  ConvGeometry shape;  ///< has X as `in` and Y as `out`
  /// A position along one axis and the place of X that reach a place of Y, in elements of the
  /// columns.
  struct Reach {
    int64_t tap, at;
  };
  std::vector<Reach> reach[2];    ///< along depth and height
  std::vector<int64_t> first[2];  ///< of each place of Y, and the end
  /// What a position along the width adds to a row: outputs whose places are equal modulo the
  /// stride lie together.
  struct Stretch {
    int64_t from, to, count;
  };
  std::vector<Stretch> stretches;     ///< those of a part of a row one after the other
  std::vector<size_t> first_stretch;  ///< of each part, and the end
  int64_t length = 0;                 ///< of such a part
  bool apart = false;         ///< windows do not meet, and rows of Y begin with the first of a row
  bool side_by_side = false;  ///< apart, and they cover all
};
SpreadPlan plan_spread(const ConvGeometry& shape);
/// SpreadPlan::apart.
bool spread_apart(const ConvGeometry& shape);

constexpr int64_t kSpreadVector = 16;
/// Floats that spread_rows needs for itself.
int64_t spread_room(const ConvGeometry& shape);

/// For one channel of the output: rows [begin, end) of y, counted over depth and height, are the
/// bias and what every input pixel adds under its window. `columns` is
/// [kernel position][pixel of X].
void spread_rows(const SpreadPlan& plan, const float* columns, float bias, int64_t begin,
                 int64_t end, float* y, float* room);

}  // namespace tombolo
