// Layers that move data: Reshape, Permute, padding, cropping, upsampling.

#include <algorithm>

#include "formats/keras/spatial.h"

namespace tombolo::keras {
namespace {

Status reshape(LayerCall& call) {
  auto target = call.config["target_shape"].as_ints();
  if (!target) return not_supported(call, "target_shape");
  std::vector<int64_t> shape{0};
  for (const int64_t size : *target) {
    if (size == 0 || size < -1) return not_supported(call, "target_shape");
    shape.push_back(size);
  }
  // With all sizes known the open one is a number, so that the batch may stay open.
  GraphBuilder& b = call.b;
  int64_t total = 1, known = 1;
  bool fixed = true;
  for (int64_t i = 1; i < call.rank(); ++i) {
    const auto size = b.dim(call.x(), i).constant();
    fixed = fixed && size;
    total *= size.value_or(1);
  }
  for (const int64_t size : *target) known *= size == -1 ? 1 : size;
  const auto open = std::find(shape.begin(), shape.end(), -1);
  if (open != shape.end() && fixed && known > 0) *open = total / known;
  return call.out(b.reshape(call.x(), shape));
}

Status permute(LayerCall& call) {
  auto dims = call.config["dims"].as_ints();
  if (!dims || static_cast<int64_t>(dims->size()) + 1 != call.rank()) {
    return not_supported(call, "dims");
  }
  dims->insert(dims->begin(), 0);
  return call.out(call.b.transpose(call.x(), *dims));
}

Status repeat_vector(LayerCall& call) {
  const int64_t n = call.config["n"].int_or(0);
  if (n < 1) return not_supported(call, "n");
  return call.out(call.b.op("Expand", {call.b.unsqueeze(call.x(), {1}), call.b.ints({1, n, 1})}));
}

/// n, (a, b), or ((a, b), (c, d)): amounts before and after each spatial axis.
Result<std::vector<std::pair<int64_t, int64_t>>> amounts(const LayerCall& call,
                                                         std::string_view key, size_t count) {
  const Json value = call.config[key];
  std::vector<std::pair<int64_t, int64_t>> result;
  for (size_t i = 0; i < count; ++i) {
    Json part = value.is_array() ? value.at(i) : value;
    if (count == 1 && value.is_array() && value.size() == 2) part = value;
    const auto both = part.as_int();
    const auto pair = part.as_ints();
    if (both) {
      result.emplace_back(*both, *both);
    } else if (pair && pair->size() == 2) {
      result.emplace_back((*pair)[0], (*pair)[1]);
    } else {
      return not_supported(call, key);
    }
    if (result.back().first < 0 || result.back().second < 0) return not_supported(call, key);
  }
  return result;
}

template <size_t kSpatial>
Status zero_padding(LayerCall& call) {
  if (call.rank() != static_cast<int64_t>(kSpatial) + 2) return parse_error("wrong rank");
  TRY(const bool first, call.channels_first());
  TRY(const auto by, amounts(call, "padding", kSpatial));
  const size_t rank = kSpatial + 2, start = first ? 2 : 1;
  std::vector<int64_t> pads(2 * rank, 0);
  for (size_t i = 0; i < kSpatial; ++i) {
    pads[start + i] = by[i].first;
    pads[rank + start + i] = by[i].second;
  }
  return call.out(call.b.op("Pad", {call.x(), call.b.ints(pads)}));
}

template <size_t kSpatial>
Status cropping(LayerCall& call) {
  if (call.rank() != static_cast<int64_t>(kSpatial) + 2) return parse_error("wrong rank");
  TRY(const bool first, call.channels_first());
  TRY(const auto by, amounts(call, "cropping", kSpatial));
  GraphBuilder& b = call.b;
  std::vector<int64_t> starts, ends, axes, steps;
  for (size_t i = 0; i < kSpatial; ++i) {
    if (by[i].first == 0 && by[i].second == 0) continue;
    starts.push_back(by[i].first);
    ends.push_back(by[i].second == 0 ? INT64_MAX : -by[i].second);
    axes.push_back(static_cast<int64_t>(i + (first ? 2 : 1)));
    steps.push_back(1);
  }
  if (axes.empty()) return call.out(call.x());
  return call.out(
      b.op("Slice", {call.x(), b.ints(starts), b.ints(ends), b.ints(axes), b.ints(steps)}));
}

/// How ONNX says what TensorFlow's resize does: half-pixel centres, no antialiasing.
Result<Attrs> resize_attributes(const LayerCall& call, std::string_view how) {
  if (how == "nearest") {
    return Attrs{{"mode", "nearest"},
                 {"coordinate_transformation_mode", "half_pixel"},
                 {"nearest_mode", "round_prefer_ceil"}};
  }
  if (how == "bilinear") {
    return Attrs{{"mode", "linear"}, {"coordinate_transformation_mode", "half_pixel"}};
  }
  if (how == "bicubic") {
    return Attrs{{"mode", "cubic"},
                 {"coordinate_transformation_mode", "half_pixel"},
                 {"cubic_coeff_a", -0.5f},
                 {"exclude_outside", 1}};
  }
  return not_supported(call, "interpolation");
}

template <size_t kSpatial>
Status upsampling(LayerCall& call) {
  GraphBuilder& b = call.b;
  const bool old = !call.config["length"].is_null();  // Keras 1 and early 2: UpSampling1D
  TRY(const std::vector<int64_t> size, call.ints(old ? "length" : "size", kSpatial, 2));
  if (call.rank() != static_cast<int64_t>(kSpatial) + 2) return parse_error("wrong rank");
  TRY(const bool first, call.channels_first());
  const std::string_view how = call.config["interpolation"].string_or("nearest");
  std::vector<float> scales(kSpatial + 2, 1.0f);
  for (size_t i = 0; i < kSpatial; ++i) scales[i + 2] = static_cast<float>(size[i]);
  // Whole factors: nearest is plain repetition.
  Attrs attrs{{"mode", "nearest"},
              {"coordinate_transformation_mode", "asymmetric"},
              {"nearest_mode", "floor"}};
  if (how != "nearest") {
    TRY(attrs, resize_attributes(call, how));
  }
  Value* x = first ? call.x() : to_channels_first(b, call.x());
  const std::vector<int64_t> dims{static_cast<int64_t>(scales.size())};
  Value* factors =
      b.constant(Tensor::of(DType::kFloat32, dims, std::span<const float>(scales)), "scales");
  Value* y = b.op("Resize", {x, nullptr, factors}, attrs);
  return call.out(first ? y : to_channels_last(b, y));
}

Status resizing(LayerCall& call) {
  GraphBuilder& b = call.b;
  for (const std::string_view key : {"crop_to_aspect_ratio", "pad_to_aspect_ratio", "antialias"}) {
    if (call.flag(key, false)) return not_supported(call, key);
  }
  TRY(const bool first, call.channels_first());
  if (call.rank() != 4) return parse_error("wrong rank");
  const std::string_view how = call.config["interpolation"].string_or("bilinear");
  TRY(const Attrs attrs, resize_attributes(call, how));
  Value* x = first ? call.x() : to_channels_first(b, call.x());
  // Keras computes in float and casts back.
  if (!is_float(call.dtype())) x = b.cast(x, DType::kFloat32);
  Attrs all = attrs;
  all.emplace_back("axes", std::vector<int64_t>{2, 3});
  Value* y = b.op("Resize",
                  {x, nullptr, nullptr,
                   b.ints({call.config["height"].int_or(0), call.config["width"].int_or(0)})},
                  all);
  return call.out(first ? y : to_channels_last(b, y));
}

Status center_crop(LayerCall& call) {
  GraphBuilder& b = call.b;
  TRY(const bool first, call.channels_first());
  if (call.rank() != 4) return parse_error("wrong rank");
  const int64_t axis = first ? 2 : 1;
  const int64_t want[2] = {call.config["height"].int_or(0), call.config["width"].int_or(0)};
  Value* y = b.cast(call.x(), is_float(call.dtype()) ? call.dtype() : DType::kFloat32);
  for (int64_t i = 0; i < 2; ++i) {
    const auto have = b.dim(y, axis + i).constant();
    if (!have || *have < want[i]) return unsupported("a picture smaller than the crop, or free");
    const int64_t start = (*have - want[i]) / 2;
    if (*have != want[i]) y = b.slice(y, axis + i, start, start + want[i]);
  }
  return call.out(y);
}

constexpr LayerRow kReshapingRows[] = {
    {"Reshape", reshape},
    {"Permute", permute},
    {"RepeatVector", repeat_vector},
    {"ZeroPadding1D", zero_padding<1>},
    {"ZeroPadding2D", zero_padding<2>},
    {"ZeroPadding3D", zero_padding<3>},
    {"Cropping1D", cropping<1>},
    {"Cropping2D", cropping<2>},
    {"Cropping3D", cropping<3>},
    {"UpSampling1D", upsampling<1>},
    {"UpSampling2D", upsampling<2>},
    {"UpSampling3D", upsampling<3>},
    {"Resizing", resizing},
    {"CenterCrop", center_crop},
};

}  // namespace

std::span<const LayerRow> reshaping_layers() { return kReshapingRows; }

}  // namespace tombolo::keras
