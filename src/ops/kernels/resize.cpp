#include "ops/kernels/resize.h"

#include <algorithm>
#include <cmath>

#include "ops/kernels/arguments.h"
#include "ops/kernels/elementwise.h"
#include "ops/kernels/movement.h"

namespace tombolo::ops {

namespace {

using Taps = ResizeTaps;

/// Where output element `i` lies on the input's axis of `length` elements.
Result<double> original(const KernelContext& context, const ResizeOptions& options,
                        const ResizeAxis& axis, int64_t length, int64_t i) {
  const std::string& mode = options.coordinates;
  const auto x = static_cast<double>(i), last = static_cast<double>(length - 1);
  const double width = axis.scale * static_cast<double>(length);  // not yet an integer
  if (mode == "half_pixel") return (x + 0.5) / axis.scale - 0.5;
  if (mode == "half_pixel_symmetric") {
    const double adjustment = static_cast<double>(axis.length) / width;
    return static_cast<double>(length) / 2 * (1 - adjustment) + (x + 0.5) / axis.scale - 0.5;
  }
  if (mode == "pytorch_half_pixel") return axis.length > 1 ? (x + 0.5) / axis.scale - 0.5 : 0.0;
  if (mode == "align_corners") return width == 1 || axis.length == 1 ? 0.0 : x * last / (width - 1);
  if (mode == "asymmetric") return x / axis.scale;
  if (mode == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  if (mode == "tf_crop_and_resize") {
    const double extent = axis.roi_end - axis.roi_start;
    if (axis.length == 1) return axis.roi_start * last + extent * last / 2;
    return axis.roi_start * last + x * extent * last / static_cast<double>(axis.length - 1);
  }
  return context.error("coordinate_transformation_mode \"" + mode + "\" is not known");
}

Result<int64_t> nearest_index(const KernelContext& context, const ResizeOptions& options,
                              double scale, double x) {
  // Before operator set 11: down where an axis grows, up where it shrinks.
  if (options.nearest == "by_scale")
    return static_cast<int64_t>(scale < 1 ? std::ceil(x) : std::floor(x));
  if (options.nearest == "round_prefer_floor") return static_cast<int64_t>(std::ceil(x - 0.5));
  if (options.nearest == "round_prefer_ceil") return static_cast<int64_t>(std::floor(x + 0.5));
  if (options.nearest == "floor") return static_cast<int64_t>(std::floor(x));
  if (options.nearest == "ceil") return static_cast<int64_t>(std::ceil(x));
  return context.error("nearest_mode \"" + options.nearest + "\" is not known");
}

/// The interpolation kernel at distance x.
double filter(const ResizeOptions& options, double x) {
  x = std::fabs(x);
  if (options.mode == ResizeMode::kLinear) return std::max(0.0, 1 - x);
  const double a = options.cubic_a;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((x - 5) * x + 8) * x * a - 4 * a;
  return 0;
}

Taps filter_taps(const ResizeOptions& options, double x, double scale, int64_t length) {
  // Antialiasing widens the kernel where the image shrinks.
  const double squeeze = options.antialias ? std::min(scale, 1.0) : 1.0;
  const double reach = (options.mode == ResizeMode::kLinear ? 1 : 2) / squeeze;
  const auto begin = static_cast<int64_t>(std::floor(x - reach)) + 1;
  const auto end = static_cast<int64_t>(std::ceil(x + reach));
  Taps taps;
  taps.first = std::clamp<int64_t>(begin, 0, length - 1);
  taps.weights.resize(
      static_cast<size_t>(std::clamp<int64_t>(end - 1, taps.first, length - 1) - taps.first + 1));
  double sum = 0;
  for (int64_t i = begin; i < end; ++i) {
    const bool inside = i >= 0 && i < length;
    if (options.exclude_outside && !inside) continue;
    const double weight = filter(options, (static_cast<double>(i) - x) * squeeze);
    sum += weight;
    taps.weights[static_cast<size_t>(std::clamp<int64_t>(i, 0, length - 1) - taps.first)] += weight;
  }
  if ((options.exclude_outside || options.antialias) && sum != 0)
    for (double& weight : taps.weights) weight /= sum;
  return taps;
}

}  // namespace

std::optional<int64_t> resized_length(int64_t size, double scale, double part) {
  const float length =
      std::floor(static_cast<float>(size) * static_cast<float>(part) * static_cast<float>(scale));
  if (!(scale > 0) || !(length >= 0 && length < 1e15f)) return std::nullopt;
  return static_cast<int64_t>(length);
}

Result<std::vector<Taps>> resize_taps(const KernelContext& context, const ResizeOptions& options,
                                      const ResizeAxis& axis, int64_t length) {
  std::vector<Taps> all;
  all.reserve(static_cast<size_t>(axis.length));
  for (int64_t i = 0; i < axis.length; ++i) {
    TRY(double x, original(context, options, axis, length, i));
    const bool crops = options.coordinates == "tf_crop_and_resize";
    const bool outside = crops && !(x >= 0 && x <= static_cast<double>(length - 1));
    // Far outside nothing changes any more; and the index must fit an integer.
    const double margin = 4 * static_cast<double>(length) + 8;
    x = x != x ? 0 : std::clamp(x, -margin, static_cast<double>(length) + margin);
    Taps taps;
    if (options.mode == ResizeMode::kNearest) {
      TRY(const int64_t index, nearest_index(context, options, axis.scale, x));
      taps.first = std::clamp<int64_t>(index, 0, length - 1);
    } else {
      taps = filter_taps(options, x, axis.scale, length);
    }
    taps.outside = outside;
    all.push_back(std::move(taps));
  }
  return all;
}

namespace {

/// Interpolates along one axis: [outer, length, inner] to [outer, taps, inner].
void resample_axis(const KernelContext& context, const double* in, int64_t outer, int64_t length,
                   int64_t inner, const std::vector<Taps>& taps, double* out) {
  const auto rows = static_cast<int64_t>(taps.size());
  if (inner == 1) {  // along the last axis: sums of neighbours
    context.parallel_for(outer, std::max<int64_t>(1, (1 << 13) / rows),
                         [&](int64_t begin, int64_t end) {
                           for (int64_t row = begin; row < end; ++row)
                             for (int64_t i = 0; i < rows; ++i) {
                               const Taps& tap = taps[static_cast<size_t>(i)];
                               const double* from = in + row * length + tap.first;
                               double sum = 0;
                               for (size_t k = 0; k < tap.weights.size(); ++k)
                                 sum += tap.weights[k] * from[k];
                               out[row * rows + i] = sum;
                             }
                         });
    return;
  }
  context.parallel_for(outer * rows, std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, inner)),
                       [&](int64_t begin, int64_t end) {
                         for (int64_t row = begin; row < end; ++row) {
                           const Taps& tap = taps[static_cast<size_t>(row % rows)];
                           double* to = out + row * inner;
                           std::fill_n(to, inner, 0.0);
                           for (size_t k = 0; k < tap.weights.size(); ++k) {
                             const double weight = tap.weights[k];
                             const double* from =
                                 in + (row / rows * length + tap.first + static_cast<int64_t>(k)) *
                                          inner;
                             for (int64_t i = 0; i < inner; ++i) to[i] += weight * from[i];
                           }
                         }
                       });
}

/// Nearest neighbours are moved, whatever their type.
void pick_nearest(const Tensor& x, const std::vector<std::vector<Taps>>& taps, Tensor& out) {
  std::vector<std::vector<int64_t>> tables;
  for (const std::vector<Taps>& axis : taps) {
    auto& table = tables.emplace_back();
    for (const Taps& tap : axis) table.push_back(tap.first);
  }
  copy_by_tables(x, x.dims(), tables, nullptr, out);
}

/// Interpolated numbers back to the element type; integers truncate.
void store(const double* in, Tensor& out) {
  if (is_float(out.dtype())) return store_doubles(in, out.size(), out, 0);
  const auto narrow_to = [&]<typename T>(T) {
    T* to = out.data<T>();
    constexpr double kMost = 2147483647;  // what is beyond wraps, as below
    for (int64_t i = 0; i < out.size(); ++i)
      to[i] = std::fabs(in[i]) <= kMost ? static_cast<T>(static_cast<int32_t>(in[i]))
                                        : static_cast<T>(to_integer<int64_t>(in[i]));
  };
  if (out.dtype() == DType::kUInt8) return narrow_to(uint8_t{});
  if (out.dtype() == DType::kInt8) return narrow_to(int8_t{});
  if (out.dtype() == DType::kInt32) return narrow_to(int32_t{});
  for (int64_t i = 0; i < out.size(); ++i)
    out.set_int64(i, to_integer<int64_t>(out.dtype() == DType::kBool ? in[i] != 0 : in[i]));
}

}  // namespace

Status resize_tensor(KernelContext& context, const Tensor& x, const std::vector<ResizeAxis>& axes,
                     const ResizeOptions& options) {
  Dims dims;
  for (const ResizeAxis& axis : axes) dims.push_back(axis.length);
  TRY(Tensor * out, context.output(0, x.dtype(), dims));
  if (out->size() == 0) return ok();
  if (x.size() == 0) return context.error("nothing to resample in " + to_string(x));
  if (x.rank() == 0) {
    context.set_output(0, x);
    return ok();
  }
  std::vector<std::vector<Taps>> taps;
  for (size_t j = 0; j < axes.size(); ++j) {
    TRY(auto all, resize_taps(context, options, axes[j], x.dim(j)));
    taps.push_back(std::move(all));
  }
  if (options.mode == ResizeMode::kNearest) {
    pick_nearest(x, taps, *out);
  } else {
    if (compute_type(x.dtype()) == Compute::kNone)
      return unsupported("interpolation of " + to_string(x));
    TRY(Tensor numbers, context.allocate(DType::kFloat64, x.dims()));
    load_doubles(x, 0, x.size(), numbers.data<double>());
    for (size_t j = 0; j < axes.size(); ++j) {
      const Dims& now = numbers.dims();
      const bool same = axes[j].scale == 1 && axes[j].length == x.dim(j) &&
                        options.coordinates != "tf_crop_and_resize";
      if (same) continue;
      Dims next = now;
      next[j] = axes[j].length;
      TRY(Tensor resampled, context.allocate(DType::kFloat64, next));
      resample_axis(context, numbers.data<double>(), product(now, 0, j), now[j],
                    product(now, j + 1, now.size()), taps[j], resampled.data<double>());
      numbers = std::move(resampled);
    }
    store(numbers.data<double>(), *out);
  }
  if (options.coordinates != "tf_crop_and_resize") return ok();
  Odometer walk(dims);
  int64_t at = 0;
  do {
    bool outside = false;
    for (size_t j = 0; j < axes.size(); ++j)
      outside |= taps[j][static_cast<size_t>(walk.index[j])].outside;
    if (outside && !out->is_string()) out->set_double(at, options.extrapolation);
    ++at;
  } while (walk.next());
  return ok();
}

}  // namespace tombolo::ops
