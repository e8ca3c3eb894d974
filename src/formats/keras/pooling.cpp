// Pooling over 1, 2 and 3 axes, and global pooling.

#include <numeric>

#include "formats/keras/spatial.h"

namespace tombolo::keras {
namespace {

template <size_t kSpatial, bool kAverage>
Status pool(LayerCall& call) {
  TRY(Spatial spatial, read_spatial(call, kSpatial));
  TRY(std::vector<int64_t> window, call.ints("pool_size", kSpatial, 2));
  if (call.config["pool_size"].is_null()) {  // Keras 1 and early 2: 1-D pooling
    TRY(window, call.ints("pool_length", kSpatial, 2));
  }
  if (call.config["strides"].is_null()) spatial.strides = window;
  for (const int64_t size : window) {
    if (size < 1 || size > INT32_MAX) return parse_error("pool_size must be positive");
  }
  spatial.dilations.assign(kSpatial, 1);
  Attrs attrs{{"kernel_shape", window}, {"strides", spatial.strides}};
  CHECK_OK(add_padding(call, spatial, window, attrs));
  // Keras's averages leave padding out, as ONNX's do by default.
  return call.out(
      spatial.back(call.b, call.b.op(kAverage ? "AveragePool" : "MaxPool", {spatial.x}, attrs)));
}

enum class Global { kMax, kAverage };

template <size_t kSpatial, Global kind>
Status global_pool(LayerCall& call) {
  if (call.rank() != static_cast<int64_t>(kSpatial) + 2) return parse_error("wrong rank");
  TRY(const bool first, call.channels_first());
  std::vector<int64_t> axes(kSpatial);
  std::iota(axes.begin(), axes.end(), first ? 2 : 1);
  const bool keep = call.flag("keepdims", false);
  GraphBuilder& b = call.b;
  if (kind == Global::kAverage && call.mask() && kSpatial == 1 && !first) {
    // The average of the steps that count.
    Value* mask = b.unsqueeze(b.cast(call.mask(), call.dtype()), {2});
    const Attrs attrs{{"keepdims", keep}};
    Value* sum = b.op("ReduceSum", {b.op("Mul", {call.x(), mask}), b.ints(axes)}, attrs);
    return call.out(b.op("Div", {sum, b.op("ReduceSum", {mask, b.ints(axes)}, attrs)}));
  }
  return call.out(b.op(kind == Global::kMax ? "ReduceMax" : "ReduceMean", {call.x(), b.ints(axes)},
                       {{"keepdims", keep}}));
}

/// Output i of n covers [floor(i L / n), ceil((i + 1) L / n)).
template <size_t kSpatial, bool kAverage>
Status adaptive_pool(LayerCall& call) {
  TRY(const bool first, call.channels_first());
  TRY(const std::vector<int64_t> sizes, call.ints("output_size", kSpatial, 1));
  if (call.rank() != static_cast<int64_t>(kSpatial) + 2) return parse_error("wrong rank");
  GraphBuilder& b = call.b;
  Value* x = call.x();
  for (size_t i = 0; i < kSpatial; ++i) {
    const int64_t axis = static_cast<int64_t>(i) + (first ? 2 : 1), count = sizes[i];
    const auto length = b.dim(x, axis).constant();
    if (!length) return unsupported("adaptive pooling over a free length");
    if (count < 1 || count > 4096) return not_supported(call, "output_size");
    if (*length == count) continue;
    std::vector<Value*> parts;
    for (int64_t k = 0; k < count; ++k) {
      Value* part = b.slice(x, axis, k * *length / count, ((k + 1) * *length + count - 1) / count);
      parts.push_back(b.op(kAverage ? "ReduceMean" : "ReduceMax", {part, b.ints({axis})}));
    }
    x = parts.size() == 1 ? parts[0] : b.op("Concat", parts, {{"axis", axis}});
  }
  return call.out(x);
}

constexpr LayerRow kPoolingRows[] = {
    {"MaxPooling1D", pool<1, false>},
    {"MaxPooling2D", pool<2, false>},
    {"MaxPooling3D", pool<3, false>},
    {"MaxPool1D", pool<1, false>},
    {"MaxPool2D", pool<2, false>},
    {"MaxPool3D", pool<3, false>},
    {"AveragePooling1D", pool<1, true>},
    {"AveragePooling2D", pool<2, true>},
    {"AveragePooling3D", pool<3, true>},
    {"AvgPool1D", pool<1, true>},
    {"AvgPool2D", pool<2, true>},
    {"AvgPool3D", pool<3, true>},
    {"GlobalMaxPooling1D", global_pool<1, Global::kMax>},
    {"GlobalMaxPooling2D", global_pool<2, Global::kMax>},
    {"GlobalMaxPooling3D", global_pool<3, Global::kMax>},
    {"GlobalAveragePooling1D", global_pool<1, Global::kAverage>},
    {"GlobalAveragePooling2D", global_pool<2, Global::kAverage>},
    {"GlobalAveragePooling3D", global_pool<3, Global::kAverage>},
    {"AdaptiveAveragePooling1D", adaptive_pool<1, true>},
    {"AdaptiveAveragePooling2D", adaptive_pool<2, true>},
    {"AdaptiveAveragePooling3D", adaptive_pool<3, true>},
    {"AdaptiveMaxPooling1D", adaptive_pool<1, false>},
    {"AdaptiveMaxPooling2D", adaptive_pool<2, false>},
    {"AdaptiveMaxPooling3D", adaptive_pool<3, false>},
};

}  // namespace

std::span<const LayerRow> pooling_layers() { return kPoolingRows; }

}  // namespace tombolo::keras
