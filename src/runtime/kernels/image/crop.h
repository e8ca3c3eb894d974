#pragma once

// Boxes of planes: resampled (CropAndResize), and the greatest numbers of their cells
// (MaxRoiPool). What all channels of a box share is found once.

#include <cstdint>
#include <vector>

#include "ops/kernels/crop_sample.h"
#include "ops/kernels/roi_cells.h"

namespace tombolo {

/// Channels of pictures one after the other.
struct CropPlanes {
  const float* x;
  int64_t height, width, channels;
  float* y;
};

/// A vector of columns: where what it reads of a row begins, and the vectors that hold it; 0: they
/// are gathered from the row's begin.
struct CropVector {
  int32_t low, loads;
};
/// Room of a thread for box after box: what all channels of one share, and two lines.
struct CropRoom {
  std::vector<int32_t> places[2];
  std::vector<float> share, inside, lines;
  std::vector<CropVector> vectors;
  bool all_inside = true;
  // Of cells: columns that some have, most of one, and cells that have no pixel.
  int64_t left = 0, span = 0, turns = 0;
  bool one_by_one = false;
  std::vector<int64_t> without;
};

struct CropBox {
  const ops::CropSample *rows, *columns;
  int64_t row_count, column_count;
  bool nearest;
  float outside;  ///< what samples outside the picture are
};
void crop_box(const CropPlanes& planes, const CropBox& box, CropRoom& room);

struct CropCells {
  const ops::CellSpan *rows, *columns;
  int64_t row_count, column_count;
};
/// The first number of a cell stays if it is NaN, others that are NaN are passed over; cells
/// without pixels are 0.
void crop_greatest(const CropPlanes& planes, const CropCells& cells, CropRoom& room);

}  // namespace tombolo
