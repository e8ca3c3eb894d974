// Resizing and sampling of pictures.

#include <algorithm>
#include <cmath>

#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

/// One axis resampled with a filter as wide as the new distance of samples, where the first and
/// last samples keep their distance (ONNX's antialiasing takes its width from the sizes alone): a
/// product with a constant matrix. Source: torch's own rule of weights.
Value* filtered(C& c, Value* x, int64_t axis, int64_t from, int64_t to, bool cubic) {
  if (from < 1 || to < 1 || static_cast<double>(from) * static_cast<double>(to) > 1 << 24) {
    c.refuse("antialiasing from or to no or very many samples");
    return x;
  }
  const double scale = to > 1 ? static_cast<double>(from - 1) / static_cast<double>(to - 1) : 0;
  const double wide = std::max(scale, 1.0), support = (cubic ? 2.0 : 1.0) * wide;
  const auto weight = [&](double at) {
    at = std::abs(at);
    if (!cubic) return std::max(1 - at, 0.0);
    constexpr double a = -0.5;
    if (at < 1) return ((a + 2) * at - (a + 3)) * at * at + 1;
    return at < 2 ? (((at - 5) * at + 8) * at - 4) * a : 0.0;
  };
  Reals table(static_cast<size_t>(from * to), 0);
  for (int64_t row = 0; row < to; ++row) {
    const double center = scale * (static_cast<double>(row) + 0.5);
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(center - support + 0.5), 0);
    const int64_t last = std::min(static_cast<int64_t>(center + support + 0.5), from);
    double sum = 0;
    for (int64_t at = first; at < last; ++at)
      sum += weight((static_cast<double>(at) - center + 0.5) / wide);
    for (int64_t at = first; at < last && sum != 0; ++at)
      table[static_cast<size_t>(at * to + row)] =
          weight((static_cast<double>(at) - center + 0.5) / wide) / sum;
  }
  auto matrix = Tensor::allocate(c.dtype(x), Ints{from, to});
  if (!matrix) {
    c.refuse("too large");
    return x;
  }
  for (int64_t i = 0; i < from * to; ++i) matrix->set_double(i, table[static_cast<size_t>(i)]);
  const int64_t last = c.rank(x) - 1;
  return c.swap(c.op("MatMul", {c.swap(x, axis, last), c.b.constant(*matrix, "filter")}), axis,
                last);
}

/// upsample_*: the mode is the row's detail: "linear", "cubic", "nearest", "nearest-exact", with
/// "-aa" for antialiasing.
void upsample(C& c) {
  Value* x = c.x(c.has_arg("input") ? "input" : "self");
  std::string mode = c.detail();
  const bool antialias = mode.ends_with("-aa");
  if (antialias) mode.resize(mode.size() - 3);
  const int64_t spatial = c.rank(x) - 2;
  SymInts sizes;
  Reals scales;
  if (c.given("output_size")) sizes = c.syms("output_size", static_cast<size_t>(spatial));
  if (c.has_arg("scale_factors") && c.given("scale_factors")) {
    scales = c.reals("scale_factors");
  } else {
    for (const char* name : {"scales_d", "scales_h", "scales_w", "scales"})
      if (c.has_arg(name) && c.given(name)) scales.push_back(c.real(name));
  }
  if (static_cast<int64_t>(scales.size()) != spatial) scales.clear();
  const bool align = c.has_arg("align_corners") && c.flag("align_corners");
  const DType type = c.dtype(x);
  if (antialias && align) {
    if (!is_float(type)) return c.refuse("antialiasing of integers with aligned corners");
    Value* y = x;
    for (int64_t i = 0; i < spatial; ++i) {
      const auto from = c.known(x, i + 2);
      std::optional<int64_t> to;
      if (!sizes.empty()) {
        to = sizes[static_cast<size_t>(i)].dim.constant();
      } else if (from && !scales.empty()) {
        to = to_int64(std::floor(static_cast<double>(*from) * scales[static_cast<size_t>(i)]));
      }
      if (!from || !to)
        return c.refuse("antialiasing with aligned corners and sizes that vary",
                        "leave align_corners out");
      y = filtered(c, y, i + 2, *from, *to, mode == "cubic");
    }
    return c.out(y);
  }
  Ints axes;
  Shape shape = c.b.shape(x);
  for (int64_t i = 0; i < spatial; ++i) axes.push_back(i + 2);
  Attrs attrs = {{"axes", axes}};
  if (mode.starts_with("nearest")) {
    attrs.emplace_back("mode", "nearest");
    attrs.emplace_back("coordinate_transformation_mode",
                       mode == "nearest" ? "asymmetric" : "half_pixel");
    attrs.emplace_back("nearest_mode", mode == "nearest" ? "floor" : "round_prefer_ceil");
  } else {
    attrs.emplace_back("mode", mode);
    attrs.emplace_back("coordinate_transformation_mode", align ? "align_corners"
                                                         : mode == "linear" || mode == "cubic"
                                                             ? "half_pixel"
                                                             : mode);
    if (mode == "cubic") attrs.emplace_back("cubic_coeff_a", antialias ? -0.5f : -0.75f);
    if (antialias) {
      attrs.emplace_back("antialias", 1);
      attrs.emplace_back("exclude_outside", 1);
    }
  }
  Value* source = is_float(type) ? x : c.cast(x, DType::kFloat32);
  Value* y = nullptr;
  if (!scales.empty() && align && sizes.empty()) {
    // Corners lie on corners: the factor only says how many samples there are.
    for (int64_t i = 0; i < spatial; ++i) {
      const double scale = scales[static_cast<size_t>(i)];
      if (const auto known = c.known(x, i + 2)) {
        const auto size = to_int64(std::floor(static_cast<double>(*known) * scale));
        if (!size) return c.refuse("a scale that is too large");
        sizes.emplace_back(*size);
        continue;
      }
      Value* length = c.cast(c.int_value(c.size(x, i + 2)), DType::kFloat64);
      Value* floor = c.op("Floor", {c.mul(length, c.scalar(scale, DType::kFloat64))});
      sizes.emplace_back(SymDim(), c.cast(floor, DType::kInt64));
    }
    scales.clear();
  }
  if (!scales.empty()) {
    // The factor itself decides where samples lie.
    auto tensor = Tensor::allocate(DType::kFloat32, Ints{spatial});
    if (!tensor) return c.refuse("too large");
    for (int64_t i = 0; i < spatial; ++i) tensor->set_double(i, scales[static_cast<size_t>(i)]);
    y = c.op("Resize", {source, nullptr, c.b.constant(*tensor, "scales")}, attrs);
    if (!sizes.empty() && c.has_rank(y)) {
      for (int64_t i = 0; i < spatial; ++i) {
        const auto made = c.known(y, i + 2);
        const auto wanted = sizes[static_cast<size_t>(i)].dim.constant();
        if (made && wanted && *made != *wanted) y = nullptr;
        if (!y) break;
      }
    }
  }
  if (!y) {
    if (sizes.empty()) return c.refuse("neither sizes nor scales");
    y = c.op("Resize", {source, nullptr, nullptr, c.shape_value(sizes)}, attrs);
  }
  for (int64_t i = 0; i < spatial && !sizes.empty(); ++i)
    shape[static_cast<size_t>(i) + 2] = sizes[static_cast<size_t>(i)].dim;
  if (!sizes.empty()) c.b.set_type(y, c.dtype(source), shape);
  if (!is_float(type) && !mode.starts_with("nearest")) y = c.op("Round", {y});
  if (type == DType::kUInt8 && mode == "cubic") y = c.op("Clip", {y, c.like(0, y), c.like(255, y)});
  c.out(c.cast(y, type));
}

void grid_sample(C& c) {
  static const char* kModes[] = {"linear", "nearest", "cubic"};
  static const char* kPads[] = {"zeros", "border", "reflection"};
  const int64_t mode = c.integer("interpolation_mode"), pad = c.integer("padding_mode");
  if (mode < 0 || mode > 2 || pad < 0 || pad > 2) return c.refuse("an unknown mode");
  c.out(c.op("GridSample", {c.x("input"), c.x("grid")},
             {{"mode", kModes[mode]},
              {"padding_mode", kPads[pad]},
              {"align_corners", c.flag("align_corners")}}));
}

void affine_grid(C& c) {
  c.out(c.op("AffineGrid", {c.x("theta"), c.shape_value(c.syms("size"))},
             {{"align_corners", c.flag("align_corners")}}));
}

Ints height_and_width(C& c, std::string_view name) {
  Ints both = c.ints(name, 2);
  if (both.size() != 2) c.refuse("a window of other dimensions");
  both.resize(2, 1);
  return both;
}

/// Windows as columns: [N, C, H, W] -> [N, C*kh*kw, L].
void im2col(C& c) {
  Value* x = c.x("self");
  const bool batched = c.rank(x) == 4;
  if (!batched) x = c.unsqueeze(x, {0});
  const auto kernel = height_and_width(c, "kernel_size"), stride = height_and_width(c, "stride"),
             dilation = height_and_width(c, "dilation"), padding = height_and_width(c, "padding");
  if (std::max(kernel[0], kernel[1]) > 1 << 20 || std::min(stride[0], stride[1]) < 1)
    c.refuse("a window of this size");
  if (c.failed()) return;
  if (padding[0] != 0 || padding[1] != 0)
    x = c.op("Pad", {x, c.b.ints({0, 0, padding[0], padding[1], 0, 0, padding[0], padding[1]})});
  const SymInt n = c.size(x, 0), channels = c.size(x, 1);
  SymInt counts[2];
  for (size_t i = 0; i < 2; ++i) {
    const int64_t axis = i == 0 ? 2 : 4;  // the first one has become two
    const SymInt room = c.sub(c.size(x, axis), SymInt(dilation[i] * (kernel[i] - 1) + 1));
    counts[i] = c.add(c.floor_div(room, SymInt(stride[i])), SymInt(1));
    // [windows, kernel] places along this axis, gathered: the axis becomes two.
    Ints offsets;
    for (int64_t k = 0; k < kernel[i]; ++k) offsets.push_back(k * dilation[i]);
    Value* starts = c.mul(c.range(counts[i]), c.b.int_scalar(stride[i]));
    Value* places = c.add(c.unsqueeze(c.b.ints(offsets), {1}), c.unsqueeze(starts, {0}));
    x = c.op("Gather", {x, places}, {{"axis", axis}});
  }
  // [N, C, kh, oh, kw, ow]
  x = c.transpose(x, {0, 1, 2, 4, 3, 5});
  Value* y = c.reshape(
      x, {n, c.mul(channels, SymInt(kernel[0] * kernel[1])), c.mul(counts[0], counts[1])});
  c.out(batched ? y : c.squeeze(y, {0}));
}

void col2im(C& c) {
  Value* x = c.x("self");
  const bool batched = c.rank(x) == 3;
  if (!batched) x = c.unsqueeze(x, {0});
  const auto padding = height_and_width(c, "padding");
  Value* y = c.op(
      "Col2Im",
      {x, c.shape_value(c.syms("output_size", 2)), c.b.ints(height_and_width(c, "kernel_size"))},
      {{"dilations", height_and_width(c, "dilation")},
       {"strides", height_and_width(c, "stride")},
       {"pads", Ints{padding[0], padding[1], padding[0], padding[1]}}});
  c.out(batched ? y : c.squeeze(y, {0}));
}

#define UPSAMPLE(n, mode, scales)                                                                \
  {"upsample_" n "(Tensor self, SymInt[] output_size, " scales ") -> Tensor", upsample, mode}, { \
    "upsample_" n ".vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor", \
        upsample, mode                                                                           \
  }
#define UPSAMPLE_ALIGNED(n, mode, scales)                                                         \
  {"upsample_" n "(Tensor self, SymInt[] output_size, bool align_corners, " scales ") -> Tensor", \
   upsample, mode},                                                                               \
  {                                                                                               \
    "upsample_" n                                                                                 \
    ".vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "   \
    "Tensor",                                                                                     \
        upsample, mode                                                                            \
  }
#define S1 "float? scales=None"
#define S2 "float? scales_h=None, float? scales_w=None"
#define S3 "float? scales_d=None, float? scales_h=None, float? scales_w=None"

constexpr Row kResizeRows[] = {
    UPSAMPLE("nearest1d", "nearest", S1),
    UPSAMPLE("nearest2d", "nearest", S2),
    UPSAMPLE("nearest3d", "nearest", S3),
    {"_upsample_nearest_exact1d(Tensor self, SymInt[] output_size, " S1 ") -> Tensor", upsample,
     "nearest-exact"},
    {"_upsample_nearest_exact2d(Tensor self, SymInt[] output_size, " S2 ") -> Tensor", upsample,
     "nearest-exact"},
    {"_upsample_nearest_exact3d(Tensor self, SymInt[] output_size, " S3 ") -> Tensor", upsample,
     "nearest-exact"},
    {"_upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) "
     "-> Tensor",
     upsample, "nearest-exact"},
    {"_upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) "
     "-> Tensor",
     upsample, "nearest-exact"},
    {"_upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) "
     "-> Tensor",
     upsample, "nearest-exact"},
    UPSAMPLE_ALIGNED("linear1d", "linear", S1),
    UPSAMPLE_ALIGNED("bilinear2d", "linear", S2),
    UPSAMPLE_ALIGNED("trilinear3d", "linear", S3),
    UPSAMPLE_ALIGNED("bicubic2d", "cubic", S2),
    {"_upsample_bilinear2d_aa(Tensor self, SymInt[] output_size, bool align_corners, " S2
     ") -> Tensor",
     upsample, "linear-aa"},
    {"_upsample_bilinear2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, "
     "float[]? scale_factors) -> Tensor",
     upsample, "linear-aa"},
    {"_upsample_bicubic2d_aa(Tensor self, SymInt[] output_size, bool align_corners, " S2
     ") -> Tensor",
     upsample, "cubic-aa"},
    {"_upsample_bicubic2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
     "scale_factors) -> Tensor",
     upsample, "cubic-aa"},
    {"grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
     "align_corners) -> Tensor",
     grid_sample},
    {"grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
     "align_corners) -> Tensor",
     grid_sample},
    {"grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
     "align_corners) -> Tensor",
     grid_sample},
    {"affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor",
     affine_grid},
    {"im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> "
     "Tensor",
     im2col},
    {"col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] "
     "padding, int[2] stride) -> Tensor",
     col2im},
};

}  // namespace

std::span<const Row> resize_rows() { return kResizeRows; }

}  // namespace tombolo::pytorch
