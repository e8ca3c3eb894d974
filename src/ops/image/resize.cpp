#include "ops/infer_helpers.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
/// floor(size * scale), exact for the scales people write.
SymDim scaled(const SymDim& size, double scale) {
  if (size.is_value()) return static_cast<int64_t>(static_cast<double>(size.value()) * scale);
  for (int64_t denominator = 1; denominator <= 64; denominator *= 2) {
    const double numerator = scale * static_cast<double>(denominator);
    if (numerator == static_cast<double>(static_cast<int64_t>(numerator)) && numerator < 1e6)
      return floor_div(size * static_cast<int64_t>(numerator), SymDim(denominator));
  }
  return {};
}

Status infer_resize(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr) return ok();
  const size_t scales_at = context.opset < 11 ? 1 : 2;
  std::vector<size_t> axes(x->size());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = i;
  if (context.opset >= 18 && context.attributes.has("axes")) {
    TRY(axes, checked_axes(context, context.attributes.get_ints("axes"), x->size()));
  }
  SymShape out = *x;
  for (const size_t axis : axes) out[axis] = SymDim();
  const Text policy = context.attributes.get_string("keep_aspect_ratio_policy", "stretch");
  const Tensor* scales = context.constant(scales_at);
  if (scales != nullptr && scales->size() == 0) scales = nullptr;
  if (context.opset >= 11 && context.has_input(3) && scales == nullptr) {
    const auto sizes = elements_or_unknown(context, 3);
    if (sizes && !sizes->empty()) {
      if (sizes->size() != axes.size())
        return context.error("sizes holds " + std::to_string(sizes->size()) + " numbers for " +
                             std::to_string(axes.size()) + " axes");
      if (policy == "stretch") {
        for (size_t i = 0; i < axes.size(); ++i) out[axes[i]] = (*sizes)[i];
      } else {
        // One scale for all axes: the smallest or the largest.
        double scale = 0;
        bool known = true;
        for (size_t i = 0; i < axes.size(); ++i) {
          const SymDim& from = (*x)[axes[i]];
          if (!from.is_value() || from.value() == 0 || !(*sizes)[i].is_value()) {
            known = false;
            break;
          }
          const double ratio =
              static_cast<double>((*sizes)[i].value()) / static_cast<double>(from.value());
          if (i == 0 || (policy == "not_larger" ? ratio < scale : ratio > scale)) scale = ratio;
        }
        if (known)
          for (const size_t axis : axes)
            out[axis] = static_cast<int64_t>(scale * static_cast<double>((*x)[axis].value()) + 0.5);
      }
    }
  } else if (scales != nullptr && is_float(scales->dtype())) {
    if (scales->size() != static_cast<int64_t>(axes.size()))
      return context.error("scales holds " + std::to_string(scales->size()) + " numbers for " +
                           std::to_string(axes.size()) + " axes");
    for (size_t i = 0; i < axes.size(); ++i) {
      const double scale = scales->get_double(static_cast<int64_t>(i));
      if (!(scale > 0))
        return context.error("scales must be positive, but one is " + std::to_string(scale));
      out[axes[i]] = scaled((*x)[axes[i]], scale);
    }
  }
  set_shape(context, 0, std::move(out));
  return ok();
}
}  // namespace

OPERATOR(Resize) = {
    .name = "Resize",
    .doc = "resamples by nearest, linear or cubic interpolation",
    .versions = {10, 11, 13, 18, 19},
    .inputs =
        {
            {"X", "T", kSingle, {.until = 10}},
            {"X", "T1", kSingle, {.since = 11}},
            {"roi", "T2", kSingle, {.since = 11, .until = 12}},
            {"scales", "tensor(float)", kSingle, {.until = 12}},
            {"roi", "T2", kOptional, {.since = 13}},
            {"scales", "tensor(float)", kOptional, {.since = 13}},
            {"sizes", "tensor(int64)", kOptional, {.since = 11}},
        },
    .outputs =
        {
            {"Y", "T", kSingle, {.until = 10}},
            {"Y", "T1", kSingle, {.since = 11}},
        },
    .attributes =
        {
            {"mode", "nearest"},
            {"coordinate_transformation_mode", "half_pixel", {.since = 11}},
            {"cubic_coeff_a", -0.75f, {.since = 11}},
            {"exclude_outside", 0, {.since = 11}},
            {"extrapolation_value", 0.0f, {.since = 11}},
            {"nearest_mode", "round_prefer_floor", {.since = 11}},
            {"antialias", 0, {.since = 18}},
            {"axes", Attr::kInts, {.since = 18}},
            {"keep_aspect_ratio_policy", "stretch", {.since = 18}},
        },
    .types =
        {
            {"T", {{10, kAll}}, {.until = 10}},
            {"T1", {{11, kAll}, {13, kBf16}}, {.since = 11}},
            {"T2", {{11, kFloats}}, {.since = 11}},
        },
    .infer = infer_resize,
};

}  // namespace tombolo::ops
