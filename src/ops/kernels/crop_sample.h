#pragma once

// What CropAndResize reads for a row or a column of its output.

#include <cmath>
#include <cstdint>

namespace tombolo::ops {

/// Where sample `i` of `count` between `first` and `last` (of [0, 1]) lies on an axis of `length`.
inline float crop_position(int64_t i, int64_t count, float first, float last, int64_t length) {
  const auto span = static_cast<float>(length - 1);
  if (count > 1)
    return first * span +
           static_cast<float>(i) * ((last - first) * span / static_cast<float>(count - 1));
  return 0.5f * (first + last) * span;
}

/// The elements of an axis that a sample lies between.
struct CropSample {
  int64_t first = 0, second = 0;
  float share = 0;  ///< of the second
  bool inside = false;

  CropSample() = default;
  CropSample(float at, int64_t length, bool nearest) {
    inside = at >= 0 && at <= static_cast<float>(length - 1);
    if (!inside) return;
    first = static_cast<int64_t>(nearest ? std::round(at) : std::floor(at));
    second = nearest ? first : static_cast<int64_t>(std::ceil(at));
    share = at - static_cast<float>(first);
  }
};

}  // namespace tombolo::ops
