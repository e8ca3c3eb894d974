#pragma once

// The greatest numbers of windows over small planes: some rows of windows at a time, straight from
// the plane.

#include <cstdint>

namespace tombolo {

struct MaxPlane {
  int64_t height, width, out_height, out_width;
  int64_t kernel_height, stride_height, pad_top;
  int64_t kernel_width, stride_width, pad_left;  ///< at most 5; 1 or 2
};

/// Floats that max_plane() needs, all of them -infinity at first; what it leaves there is good for
/// the next plane.
int64_t max_plane_room(const MaxPlane& s);
/// One plane, in which no number is NaN. `writable`: so many floats from y on may be written, if
/// only the first out_height * out_width stay.
void max_plane(const MaxPlane& s, const float* x, float* y, int64_t writable, float* room);

}  // namespace tombolo
