#include "formats/keras/spatial.h"

#include <algorithm>

namespace tombolo::keras {

Value* to_channels_first(GraphBuilder& b, Value* x) {
  const int64_t rank = b.rank(x);
  std::vector<int64_t> perm{0, rank - 1};
  for (int64_t i = 1; i + 1 < rank; ++i) perm.push_back(i);
  return b.transpose(x, perm);
}

Value* to_channels_last(GraphBuilder& b, Value* x) {
  std::vector<int64_t> perm{0};
  for (int64_t i = 2; i < b.rank(x); ++i) perm.push_back(i);
  perm.push_back(1);
  return b.transpose(x, perm);
}

Result<Spatial> read_spatial(LayerCall& call, size_t count) {
  Spatial spatial;
  spatial.count = count;
  if (call.rank() != static_cast<int64_t>(count) + 2) {
    return parse_error("the input has rank " + std::to_string(call.rank()) + ", not " +
                       std::to_string(count + 2));
  }
  TRY(spatial.first, call.channels_first());
  spatial.x = spatial.first ? call.x() : to_channels_first(call.b, call.x());
  TRY(spatial.strides, call.ints("strides", count, 1));
  TRY(spatial.dilations, call.ints("dilation_rate", count, 1));
  for (size_t i = 0; i < count; ++i) {
    if (spatial.strides[i] < 1 || spatial.strides[i] > INT32_MAX || spatial.dilations[i] < 1 ||
        spatial.dilations[i] > INT32_MAX) {
      return parse_error("strides and dilation_rate must be positive");
    }
  }
  return spatial;
}

Status add_padding(const LayerCall& call, const Spatial& spatial,
                   const std::vector<int64_t>& kernel, Attrs& attrs) {
  const std::string_view padding = call.config["padding"].string_or("valid");
  if (padding == "valid") return ok();
  std::vector<int64_t> pads(2 * spatial.count, 0);
  for (size_t i = 0; i < spatial.count; ++i) {
    if (kernel[i] < 1 || kernel[i] > INT32_MAX) return parse_error("the window must be positive");
    const int64_t extent = (kernel[i] - 1) * spatial.dilations[i] + 1;
    if (padding == "causal") {
      pads[i] = extent - 1;
    } else if (padding == "same") {
      const SymDim length = spatial.length(call.b, i);
      // With a stride of 1 the length does not matter.
      const int64_t stride = spatial.strides[i];
      if (!length.is_value() && stride != 1) {
        attrs.emplace_back("auto_pad", "SAME_UPPER");
        return ok();
      }
      int64_t total = extent - 1;
      if (stride != 1) {
        const int64_t n = length.value();
        total = std::max<int64_t>(((n + stride - 1) / stride - 1) * stride + extent - n, 0);
      }
      pads[i] = total / 2;
      pads[i + spatial.count] = total - total / 2;
    } else {
      return not_supported(call, "padding");
    }
  }
  if (std::any_of(pads.begin(), pads.end(), [](int64_t pad) { return pad != 0; })) {
    attrs.emplace_back("pads", std::move(pads));
  }
  return ok();
}

}  // namespace tombolo::keras
