#pragma once

// Resampling along axes: Resize and Upsample.

#include <optional>
#include <string>
#include <vector>

#include "ops/kernel_context.h"

namespace tombolo::ops {

enum class ResizeMode : uint8_t { kNearest, kLinear, kCubic };

/// How one axis is resampled.
struct ResizeAxis {
  double scale = 1;                   ///< output length per input length, before rounding
  int64_t length = 0;                 ///< of the output
  double roi_start = 0, roi_end = 1;  ///< of the input, for tf_crop_and_resize
};

struct ResizeOptions {
  ResizeMode mode = ResizeMode::kNearest;
  std::string coordinates = "half_pixel";      ///< coordinate_transformation_mode
  std::string nearest = "round_prefer_floor";  ///< nearest_mode, or by_scale
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  double extrapolation = 0;
};

/// What one output element takes from the axis: weights[k] of element first + k, or `first` alone
/// where the nearest one is taken, which has no weights. `outside` says that it lies beyond the
/// image (tf_crop_and_resize).
struct ResizeTaps {
  int64_t first = 0;
  std::vector<double> weights;
  bool outside = false;
};
/// The taps of each output element of an axis of `length` elements.
Result<std::vector<ResizeTaps>> resize_taps(const KernelContext& context,
                                            const ResizeOptions& options, const ResizeAxis& axis,
                                            int64_t length);

/// floor(size * part * scale) in float, as scales are: 10 * 0.7f is 7, and 5 * 2.8f is 14. `part`
/// is that of the axis which the region of interest covers. Nothing where that is no length.
std::optional<int64_t> resized_length(int64_t size, double scale, double part = 1);

/// What a node of Resize says for an input of this shape.
struct ResizePlan {
  ResizeOptions options;
  std::vector<ResizeAxis> axes;
};
Result<ResizePlan> plan_resize(const KernelContext& context, std::span<const int64_t> dims);

/// Resamples `x` (one entry of `axes` for each axis) into output 0.
Status resize_tensor(KernelContext& context, const Tensor& x, const std::vector<ResizeAxis>& axes,
                     const ResizeOptions& options);

}  // namespace tombolo::ops
