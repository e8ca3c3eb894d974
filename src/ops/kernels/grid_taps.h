#pragma once

// Where GridSample reads: the elements of one axis that a position takes, and their weights.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace tombolo::ops {

enum class GridMode : uint8_t { kNearest, kLinear, kCubic };
enum class GridPadding : uint8_t { kZeros, kBorder, kReflection };

/// Reflects x into [low, high].
inline double reflect_into(double x, double low, double high) {
  const double range = high - low;
  if (!(range > 0)) return low;
  double away = std::fabs(x - low);
  const double turns = std::floor(away / range);
  away -= turns * range;
  return std::fmod(turns, 2) == 0 ? low + away : high - away;
}

/// What one axis contributes: up to four elements and their weights.
struct GridTaps {
  int count = 0;
  int64_t index[4];  ///< -1 stands for zero
  double weight[4];
};

inline GridTaps grid_taps(double x, int64_t length, GridMode mode, GridPadding padding,
                          bool aligned) {
  const auto last = static_cast<double>(length - 1);
  const double low = aligned ? 0 : -0.5, high = aligned ? last : last + 0.5;
  x = aligned ? (x + 1) / 2 * last : ((x + 1) * static_cast<double>(length) - 1) / 2;
  if (mode == GridMode::kNearest) x = std::nearbyint(x);
  if (padding == GridPadding::kBorder && !(x >= low && x <= high))
    x = x != x ? 0 : std::clamp(x, 0.0, last);
  if (padding == GridPadding::kReflection && !(x >= low && x <= high))
    x = reflect_into(x, low, high);
  // What lies this far outside is outside in every mode; NaN too.
  if (!(std::fabs(x) < 1e15)) x = -8;
  const double floor = std::floor(x), t = x - floor;
  const auto base = static_cast<int64_t>(floor);
  GridTaps taps;
  auto add = [&](int64_t index, double weight) {
    if (index < 0 || index >= length) {
      if (padding == GridPadding::kZeros) index = -1;
      if (padding == GridPadding::kReflection)
        index = static_cast<int64_t>(reflect_into(static_cast<double>(index), low, high));
      if (padding != GridPadding::kZeros) index = std::clamp<int64_t>(index, 0, length - 1);
    }
    taps.index[taps.count] = index;
    taps.weight[taps.count++] = weight;
  };
  if (mode == GridMode::kNearest) {
    add(base, 1);
  } else if (mode == GridMode::kLinear) {
    add(base, 1 - t);
    add(base + 1, t);
  } else {
    constexpr double a = -0.75;
    auto near = [](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    auto far = [](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    add(base - 1, far(t + 1));
    add(base, near(t));
    add(base + 1, near(1 - t));
    add(base + 2, far(2 - t));
  }
  return taps;
}

/// Reads mode by its names in any version; false where it is not known.
inline bool read_grid_mode(std::string_view name, GridMode& mode) {
  mode = name == "nearest"                      ? GridMode::kNearest
         : name == "cubic" || name == "bicubic" ? GridMode::kCubic
                                                : GridMode::kLinear;
  return mode != GridMode::kLinear || name == "linear" || name == "bilinear";
}
inline bool read_grid_padding(std::string_view name, GridPadding& padding) {
  padding = name == "border"       ? GridPadding::kBorder
            : name == "reflection" ? GridPadding::kReflection
                                   : GridPadding::kZeros;
  return padding != GridPadding::kZeros || name == "zeros";
}

}  // namespace tombolo::ops
