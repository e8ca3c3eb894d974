#pragma once

// What RoiAlign sums up: pixels whose channels lie together.

#include <cstdint>

namespace tombolo {

/// out[i * channels + c] = sum over taps of weights[t] * from[(bases[i] + at[t]) * channels + c]
/// for i < count. With `maximum` the greatest of them, of which one that is no number is passed
/// over. `more`: beside what out holds.
struct RoiBlend {
  const float* from;
  int64_t channels;
  const int32_t* at;
  const float* weights;
  int64_t taps;
  const int32_t* bases;
  int64_t count;
  float* out;
  bool maximum, more;
};
void roi_blend(const RoiBlend& task);

/// One region of one channel, as it lies: first rows of pixels are blended to a line for each row
/// of cells, then of each cell `taps` places of the lines. For a maximum all is done twice, by the
/// most and by the least weights; else the second of each pair is not used.
struct RoiPlane {
  const float* x;        ///< the leftmost column of the first row
  int64_t span;          ///< columns from there on
  const int32_t* rows;   ///< where those that are blended begin
  const int64_t* first;  ///< of each row of cells, and the end
  const float* weights[2];
  int64_t cell_rows;
  float* lines[2];  ///< kRoiVector elements of zero, then each of `step` elements
  int64_t step;
  const int32_t* places;  ///< [tap][cell], cells in whole kRoiVectors
  const float* shares[2];
  int64_t taps, cells;
  float* out;  ///< in whole kRoiVectors
  bool maximum;
};
constexpr int64_t kRoiVector = 16;
void roi_plane(const RoiPlane& task);

}  // namespace tombolo
