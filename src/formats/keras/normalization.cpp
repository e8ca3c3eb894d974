// Normalisations.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "formats/keras/spatial.h"

namespace tombolo::keras {
namespace {

/// A constant vector, for a scale or shift that the layer does not have.
Result<Tensor> filled(const Dims& dims, double value) {
  TRY(Tensor tensor, Tensor::allocate(DType::kFloat32, dims.span()));
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, value);
  return tensor;
}

Status batch_normalization(LayerCall& call) {
  GraphBuilder& b = call.b;
  const int64_t rank = call.rank();
  TRY(const int64_t axis, call.axis("axis", -1, rank));
  const bool scale = call.flag("scale", true), center = call.flag("center", true);
  Tensor gamma, beta;
  if (scale) {
    TRY(gamma, call.weight_tensor("gamma"));
  }
  if (center) {
    TRY(beta, call.weight_tensor("beta"));
  }
  TRY(const Tensor mean, call.weight_tensor("moving_mean"));
  TRY(const Tensor variance, call.weight_tensor("moving_variance"));
  if (!scale) {
    TRY(gamma, filled(mean.dims(), 1));
  }
  if (!center) {
    TRY(beta, filled(mean.dims(), 0));
  }
  if (mean.rank() != 1 || b.dim(call.x(), axis).differs(SymDim(mean.dim(0)))) {
    return parse_error("the statistics do not fit the input");
  }
  std::vector<int64_t> perm{0, axis}, back(static_cast<size_t>(rank));
  for (int64_t i = 1; i < rank; ++i)
    if (i != axis) perm.push_back(i);
  if (axis == 0 || rank < 2) return not_supported(call, "axis");
  for (size_t i = 0; i < perm.size(); ++i)
    back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  Value* y =
      b.op("BatchNormalization",
           {b.transpose(call.x(), perm), call.constant(gamma, "gamma"), call.constant(beta, "beta"),
            call.constant(mean, "mean"), call.constant(variance, "variance")},
           {{"epsilon", call.config["epsilon"].double_or(1e-3)}});
  return call.out(b.transpose(y, back));
}

/// The axes of a layer, sorted, from 0.
Result<std::vector<int64_t>> axes_of(const LayerCall& call, int64_t rank) {
  const Json value = call.config["axis"];
  std::vector<int64_t> axes = value.as_ints().value_or(std::vector<int64_t>{value.int_or(-1)});
  for (int64_t& axis : axes) {
    if (axis < 0) axis += rank;
    if (axis < 1 || axis >= rank) return parse_error("axis is out of range");
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

/// Statistics run over all of `axis`; ONNX normalises from one axis to the end, so axes that are
/// not the last ones are moved there.
Status layer_normalization(LayerCall& call) {
  GraphBuilder& b = call.b;
  const int64_t rank = call.rank();
  TRY(const std::vector<int64_t> axes, axes_of(call, rank));
  Value* gamma = nullptr;
  Value* beta = nullptr;
  if (call.flag("scale", true)) {
    TRY(gamma, call.weight("gamma"));
  }
  if (call.flag("center", true) && !call.flag("rms_scaling", false)) {
    TRY(beta, call.weight("beta"));
  }
  std::vector<int64_t> perm, back(static_cast<size_t>(rank));
  Dims normal;
  for (int64_t i = 0; i < rank; ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) perm.push_back(i);
  const auto from = static_cast<int64_t>(perm.size());
  for (const int64_t axis : axes) {
    perm.push_back(axis);
    const auto size = b.dim(call.x(), axis).constant();
    if (!size) return unsupported("normalising over a free size");
    normal.push_back(*size);
  }
  for (size_t i = 0; i < perm.size(); ++i)
    back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  if (!gamma) {
    TRY(const Tensor ones, filled(normal, 1));
    gamma = call.constant(ones, "ones");
  }
  const float epsilon = static_cast<float>(call.config["epsilon"].double_or(1e-3));
  Value* x = b.transpose(call.x(), perm);
  if (call.flag("rms_scaling", false)) {
    return not_supported(call, "rms_scaling");
  }
  Value* y =
      b.op("LayerNormalization", {x, gamma, beta}, {{"axis", from - rank}, {"epsilon", epsilon}});
  return call.out(b.transpose(y, back));
}

Status rms_normalization(LayerCall& call) {
  GraphBuilder& b = call.b;
  const int64_t rank = call.rank();
  TRY(const std::vector<int64_t> axes, axes_of(call, rank));
  if (axes.front() != rank - static_cast<int64_t>(axes.size())) return not_supported(call, "axis");
  TRY(Value * scale, call.weight("scale"));
  return call.out(
      b.op("RMSNormalization", {call.x(), scale},
           {{"axis", axes.front() - rank}, {"epsilon", call.config["epsilon"].double_or(1e-6)}}));
}

Status group_normalization(LayerCall& call) {
  GraphBuilder& b = call.b;
  TRY(const int64_t axis, call.axis("axis", -1, call.rank()));
  const bool last = axis == call.rank() - 1;
  if (!last && axis != 1) return not_supported(call, "axis");
  const auto channels = b.dim(call.x(), axis).constant();
  if (!channels) return unsupported("a free number of channels");
  const Dims dims{*channels};
  Tensor gamma, beta;
  if (call.flag("scale", true)) {
    TRY(gamma, call.weight_tensor("gamma"));
  } else {
    TRY(gamma, filled(dims, 1));
  }
  if (call.flag("center", true)) {
    TRY(beta, call.weight_tensor("beta"));
  } else {
    TRY(beta, filled(dims, 0));
  }
  int64_t groups = call.config["groups"].int_or(32);
  if (groups == -1) groups = *channels;
  Value* x = last ? to_channels_first(b, call.x()) : call.x();
  Value* y =
      b.op("GroupNormalization", {x, call.constant(gamma, "gamma"), call.constant(beta, "beta")},
           {{"num_groups", groups}, {"epsilon", call.config["epsilon"].double_or(1e-3)}});
  return call.out(last ? to_channels_last(b, y) : y);
}

/// x / sqrt(max(sum x^2, 1e-12)).
Status unit_normalization(LayerCall& call) {
  GraphBuilder& b = call.b;
  TRY(const std::vector<int64_t> axes, axes_of(call, call.rank()));
  Value* square = b.op("ReduceSumSquare", {call.x(), b.ints(axes)});
  Value* norm = b.op("Sqrt", {b.op("Max", {square, b.scalar(1e-12, call.dtype())})});
  return call.out(b.op("Div", {call.x(), norm}));
}

constexpr LayerRow kNormalizationRows[] = {
    {"BatchNormalization", batch_normalization, MaskRule::kPass},
    {"BatchNormalizationV1", batch_normalization, MaskRule::kPass},
    {"BatchNormalizationV2", batch_normalization, MaskRule::kPass},
    {"LayerNormalization", layer_normalization, MaskRule::kPass},
    {"RMSNormalization", rms_normalization, MaskRule::kPass},
    {"GroupNormalization", group_normalization, MaskRule::kPass},
    {"UnitNormalization", unit_normalization, MaskRule::kPass},
};

}  // namespace

std::span<const LayerRow> normalization_layers() { return kNormalizationRows; }

}  // namespace tombolo::keras
