#include "runtime/kernels/conv/geometry.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/thread_pool.h"
#include "ops/kernels/window.h"

namespace tombolo {
namespace {

constexpr int64_t kLimit = int64_t{1} << 24;  ///< below this no product below overflows

/// `count` numbers in [least, kLimit) to out[3 - count...]; absent leaves what is there.
bool read(const AttributeReader& attributes, Text name, size_t count, int64_t least, int64_t* out) {
  const auto given = attributes.get_ints(name);
  if (given.empty()) return true;
  if (given.size() != count) return false;
  for (size_t i = 0; i < count; ++i) {
    if (given[i] < least || given[i] >= kLimit) return false;
    out[3 - count + i] = given[i];
  }
  return true;
}

/// The copied image is a few times the input at most; a stride or dilation beyond that is odd
/// enough for the reference.
bool image_fits(const ConvGeometry& s) {
  double floats = 1;
  for (int axis = 0; axis < 3; ++axis)
    floats *=
        static_cast<double>((s.out[axis] - 1) * s.stride[axis] + s.extent(axis) + s.stride[axis]);
  return floats <= 16 * static_cast<double>(s.in_plane()) + 4096;
}

/// Some window has position k of the kernel inside the input.
bool meets_input(const ConvGeometry& s, int axis, int64_t k) {
  const int64_t start = k * s.dilation[axis] - s.pad[axis];
  const int64_t o = start < 0 ? (-start + s.stride[axis] - 1) / s.stride[axis] : 0;
  return o < s.out[axis] && start + o * s.stride[axis] < s.in[axis];
}

/// Takes the positions at both ends that only ever see padding off the kernel.
LiveTaps trim_kernel(ConvGeometry& s) {
  LiveTaps live;
  for (int axis = 0; axis < 3; ++axis) {
    live.all[axis] = s.kernel[axis];
    while (s.kernel[axis] > 1 && s.pad[axis] >= s.dilation[axis] && !meets_input(s, axis, 0)) {
      s.pad[axis] -= s.dilation[axis];
      --s.kernel[axis];
      ++live.first[axis];
    }
    while (s.kernel[axis] > 1 && !meets_input(s, axis, s.kernel[axis] - 1)) --s.kernel[axis];
    live.count[axis] = s.kernel[axis];
    if (s.kernel[axis] == 1) s.dilation[axis] = 1;
  }
  return live;
}

/// Makes one row of an image, where rows are so narrow that kernels, which take many pixels of one
/// at a time, would take few: those of one column, those that a window covers from end to end, and
/// narrow ones where each channel has a kernel of its own, one pixel wide.
void join_rows(ConvGeometry& s) {
  const int64_t width = s.in[2];
  constexpr int64_t kNarrow = 16;
  if (s.in[1] == 1 || s.pad[2] != 0) return;
  const bool covers = s.kernel[2] == width && s.out[2] == 1 &&
                      (width == 1 || (s.dilation[1] == 1 && s.dilation[2] == 1));
  const bool apart = s.kernel[2] == 1 && s.out[2] == width && s.in_channels == 1 &&
                     s.out_channels == 1 && width <= kNarrow && s.stride[1] == 1 &&
                     s.stride[2] == 1;
  if (!covers && !apart) return;
  if (!s.joined()) std::copy_n(s.out, 3, s.given_out);
  s.in[2] *= std::exchange(s.in[1], 1);
  s.out[2] *= std::exchange(s.out[1], 1);
  s.kernel[2] *= std::exchange(s.kernel[1], 1);
  s.pad[2] = std::exchange(s.pad[1], 0) * width;
  // A step down is as many pixels as a row has. Positions of a window that covers rows lie side by
  // side.
  s.stride[2] = std::exchange(s.stride[1], 1) * (covers ? width : 1);
  s.dilation[2] = covers && width > 1 ? 1 : std::exchange(s.dilation[1], 1) * width;
}

/// Makes a row of each plane of a volume whose kernel is one pixel high and wide.
void join_planes(ConvGeometry& s) {
  if (s.in[0] == 1) return;
  for (const int axis : {1, 2})
    if (s.kernel[axis] != 1 || s.pad[axis] != 0 || s.out[axis] != s.in[axis] ||
        (s.stride[axis] != 1 && s.in[axis] != 1))
      return;
  std::copy_n(s.out, 3, s.given_out);
  for (int64_t* sizes : {s.in, s.out}) sizes[2] *= sizes[1];
  for (int64_t* sizes : {s.in, s.kernel, s.stride, s.dilation, s.pad, s.out}) {
    sizes[1] = sizes[0];
    sizes[0] = sizes == s.pad ? 0 : 1;
  }
  s.stride[2] = 1;
}

/// Joins axes where that makes longer rows of what lies in memory as before.
void join_axes(ConvGeometry& s) {
  join_planes(s);
  join_rows(s);
}

std::optional<SlidingWindow> slide(const AttributeReader& attributes,
                                   std::span<const int64_t> input, std::span<const int64_t> kernel,
                                   bool ceil_mode) {
  SlidingWindow window;
  ConvGeometry& s = window.shape;
  const size_t rank = input.size();
  if (rank < 1 || rank > 3) return std::nullopt;
  const size_t first = 3 - rank;
  for (size_t i = 0; i < rank; ++i) {
    if (input[i] < 1 || input[i] >= kLimit) return std::nullopt;
    s.in[first + i] = input[i];
  }
  int64_t attribute[3] = {0, 0, 0};
  if (!read(attributes, "kernel_shape", rank, 1, attribute)) return std::nullopt;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t given = attribute[first + i];
    const int64_t size = kernel.empty() ? given : kernel[i];
    if (size < 1 || size >= kLimit || (given != 0 && given != size)) return std::nullopt;
    s.kernel[first + i] = size;
  }
  if (!read(attributes, "strides", rank, 1, s.stride) ||
      !read(attributes, "dilations", rank, 1, s.dilation))
    return std::nullopt;
  const auto pads = attributes.get_ints("pads");
  if (!pads.empty() && pads.size() != 2 * rank) return std::nullopt;
  for (size_t i = 0; i < pads.size(); ++i) {
    if (pads[i] < 0 || pads[i] >= kLimit) return std::nullopt;
    (i < rank ? s.pad[first + i] : window.pad_end[first + i - rank]) = pads[i];
  }
  const Text auto_pad = attributes.get_string("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID" && !auto_pad.empty())
    return std::nullopt;
  for (int axis = static_cast<int>(first); axis < 3; ++axis) {
    if (auto_pad == "VALID") s.pad[axis] = window.pad_end[axis] = 0;
    if (same) {
      s.out[axis] = (s.in[axis] + s.stride[axis] - 1) / s.stride[axis];
      const int64_t total =
          std::max<int64_t>(0, (s.out[axis] - 1) * s.stride[axis] + s.extent(axis) - s.in[axis]);
      s.pad[axis] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      window.pad_end[axis] = total - s.pad[axis];
      continue;
    }
    const int64_t room = s.in[axis] + s.pad[axis] + window.pad_end[axis] - s.extent(axis);
    s.out[axis] = ops::window_count(room, s.stride[axis], s.in[axis] + s.pad[axis],
                                    ceil_mode && auto_pad != "VALID");
    if (s.out[axis] < 1) return std::nullopt;
  }
  return window;
}

}  // namespace

std::optional<SlidingWindow> read_sliding_window(const AttributeReader& attributes,
                                                 std::span<const int64_t> input,
                                                 std::span<const int64_t> kernel, bool ceil_mode) {
  auto window = slide(attributes, input, kernel, ceil_mode);
  if (window && !image_fits(window->shape)) return std::nullopt;
  return window;
}

void join_column(SlidingWindow& window) {
  if (window.shape.in[2] != 1 || window.pad_end[2] != 0) return;
  join_rows(window.shape);
  if (window.shape.joined()) window.pad_end[2] = std::exchange(window.pad_end[1], 0);
}

template <typename T>
std::vector<T> LiveTaps::weights(const T* w, int64_t rows) const {
  std::vector<T> out;
  out.reserve(static_cast<size_t>(rows * count[0] * count[1] * count[2]));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < count[0]; ++i)
      for (int64_t j = 0; j < count[1]; ++j) {
        const int64_t line = (r * all[0] + first[0] + i) * all[1] + first[1] + j;
        const T* from = w + line * all[2] + first[2];
        out.insert(out.end(), from, from + count[2]);
      }
  return out;
}

template std::vector<float> LiveTaps::weights(const float*, int64_t) const;
template std::vector<uint8_t> LiveTaps::weights(const uint8_t*, int64_t) const;

std::string LiveTaps::key() const {
  std::string text;
  for (int axis = 0; axis < 3; ++axis)
    if (count[axis] != all[axis])
      text += "/" + std::to_string(axis) + ":" + std::to_string(first[axis]) + "+" +
              std::to_string(count[axis]);
  if (joined[0] != 0)
    for (const int64_t size : joined) text += "/" + std::to_string(size);
  return text;
}

std::optional<ConvGeometry> read_conv_geometry(const AttributeReader& attributes,
                                               std::span<const int64_t> x,
                                               std::span<const int64_t> w, LiveTaps* live) {
  if (x.size() < 3 || w.size() != x.size()) return std::nullopt;
  const auto window = slide(attributes, x.subspan(2), w.subspan(2), false);
  if (!window) return std::nullopt;
  ConvGeometry s = window->shape;
  if (live != nullptr) *live = trim_kernel(s);
  if (!image_fits(s)) return std::nullopt;
  s.batch = x[0];
  s.groups = attributes.get_int("group", 1);
  if (s.batch < 1 || s.groups < 1 || x[1] < 1 || w[0] < 1 || x[1] % s.groups != 0 ||
      w[0] % s.groups != 0 || w[1] != x[1] / s.groups)
    return std::nullopt;
  s.in_channels = x[1] / s.groups;
  s.out_channels = w[0] / s.groups;
  if (live != nullptr) {
    join_axes(s);
    if (s.joined()) std::copy_n(s.kernel, 3, live->joined);
  }
  return s;
}

std::optional<ConvGeometry> read_transposed_geometry(const AttributeReader& attributes,
                                                     std::span<const int64_t> x,
                                                     std::span<const int64_t> w) {
  if (x.size() < 3 || x.size() > 5 || w.size() != x.size() || element_count(x) < 1 ||
      element_count(w) < 1)
    return std::nullopt;
  const size_t spatial = x.size() - 2, first = 3 - spatial;
  ConvGeometry s;
  s.batch = x[0];
  s.groups = attributes.get_int("group", 1);
  if (s.groups < 1 || x[1] % s.groups != 0 || w[0] != x[1]) return std::nullopt;
  s.in_channels = x[1] / s.groups;
  s.out_channels = w[1];
  int64_t kernel[3] = {}, more[3] = {};
  if (!read(attributes, "strides", spatial, 1, s.stride) ||
      !read(attributes, "dilations", spatial, 1, s.dilation) ||
      !read(attributes, "kernel_shape", spatial, 1, kernel) ||
      !read(attributes, "output_padding", spatial, 0, more))
    return std::nullopt;
  const auto pads = attributes.get_ints("pads");
  auto wanted = attributes.get_ints("output_shape");
  if (wanted.size() == spatial + 2) wanted = wanted.subspan(2);
  if ((!pads.empty() && pads.size() != 2 * spatial) ||
      (!wanted.empty() && wanted.size() != spatial))
    return std::nullopt;
  const Text auto_pad = attributes.get_string("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID" && !auto_pad.empty())
    return std::nullopt;
  double floats = static_cast<double>(s.groups * s.out_channels);
  for (size_t i = 0; i < spatial; ++i) {
    const size_t axis = first + i;
    s.in[axis] = x[2 + i];
    s.kernel[axis] = w[2 + i];
    if (s.in[axis] >= kLimit || s.kernel[axis] >= kLimit) return std::nullopt;
    if (kernel[axis] != 0 && kernel[axis] != s.kernel[axis]) return std::nullopt;
    int64_t end = 0;
    if (!pads.empty() && auto_pad != "VALID") {
      s.pad[axis] = pads[i];
      end = pads[i + spatial];
      if (s.pad[axis] < 0 || s.pad[axis] >= kLimit || end < 0 || end >= kLimit) return std::nullopt;
    }
    const int64_t full =
        (s.in[axis] - 1) * s.stride[axis] + more[axis] + s.extent(static_cast<int>(axis));
    if (!wanted.empty() || same) {
      s.out[axis] = !wanted.empty() ? wanted[i] : s.in[axis] * s.stride[axis];
      const int64_t total = std::max<int64_t>(0, full - s.out[axis]);
      s.pad[axis] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    } else {
      s.out[axis] = full - s.pad[axis] - end;
    }
    if (s.out[axis] < 1 || s.out[axis] >= kLimit) return std::nullopt;
    floats *= static_cast<double>(s.out[axis]);
  }
  if (floats > 1e9) return std::nullopt;
  if (s.in[2] == 1) join_rows(s);
  return s;
}

Dims output_dims(const ConvGeometry& shape, int64_t channels, size_t spatial) {
  Dims dims = {shape.batch, channels};
  for (int axis = 3 - static_cast<int>(spatial); axis < 3; ++axis)
    dims.push_back(shape.out_size(axis));
  return dims;
}

bool groups_apart(const ConvGeometry& shape) { return shape.groups >= 2 * thread_count(); }

std::optional<Activation> read_activation(const AttributeReader& attributes) {
  using Kind = Activation::Kind;
  const Text name = attributes.get_string("activation", "");
  const auto params = attributes.get_floats("activation_params");
  const auto param = [&](size_t i, float fallback) {
    return i < params.size() ? params[i] : fallback;
  };
  const float infinity = std::numeric_limits<float>::infinity();
  if (name.empty()) return Activation{};
  if (name == "Relu") return Activation{Kind::kClamp, 0, infinity};
  if (name == "Clip") return Activation{Kind::kClamp, param(0, -infinity), param(1, infinity)};
  if (name == "LeakyRelu") return Activation{Kind::kLeakyRelu, param(0, 0.01f)};
  if (name == "Sigmoid") return Activation{Kind::kSigmoid};
  if (name == "Tanh") return Activation{Kind::kTanh};
  if (name == "HardSigmoid") return Activation{Kind::kHardSigmoid, param(0, 0.2f), param(1, 0.5f)};
  if (name == "HardSwish") return Activation{Kind::kHardSwish};
  if (name == "Swish") return Activation{Kind::kSwish, param(0, 1.0f)};
  if (name == "Gelu") return Activation{Kind::kGelu};
  if (name == "GeluTanh") return Activation{Kind::kGeluTanh};
  if (name == "Elu") return Activation{Kind::kElu, param(0, 1.0f)};
  if (name == "Softplus") return Activation{Kind::kSoftplus};
  if (name == "Mish") return Activation{Kind::kMish};
  return std::nullopt;
}

}  // namespace tombolo
