#pragma once

// Where RoiAlign looks.

#include <algorithm>
#include <cstdint>

namespace tombolo::ops {

/// Four neighbours of a point and their weights; no weight outside the picture.
struct RoiSample {
  int64_t at[4] = {};
  double weight[4] = {};
};

inline RoiSample roi_sample(double y, double x, int64_t height, int64_t width) {
  RoiSample sample;
  if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width)))
    return sample;
  const auto split = [](double position, int64_t length, int64_t& low, int64_t& high) {
    position = std::max(position, 0.0);
    low = std::min(static_cast<int64_t>(position), length - 1);
    high = std::min(low + 1, length - 1);
    return low == high ? 0 : position - static_cast<double>(low);
  };
  int64_t top, bottom, left, right;
  const double down = split(y, height, top, bottom), across = split(x, width, left, right);
  const int64_t rows[] = {top, bottom}, columns[] = {left, right};
  const double by_row[] = {1 - down, down}, by_column[] = {1 - across, across};
  for (size_t i = 0; i < 4; ++i) {
    sample.at[i] = rows[i / 2] * width + columns[i % 2];
    sample.weight[i] = by_row[i / 2] * by_column[i % 2];
  }
  return sample;
}

}  // namespace tombolo::ops
