#include <algorithm>
#include <array>
#include <cmath>

#include "ops/expansions.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/resize.h"
#include "ops/schema.h"
#include "ops/step_context.h"

namespace tombolo::ops {

namespace {
/// resized_length of a size that may be symbolic, exact for the scales people write.
SymDim scaled(const SymDim& size, double scale, double part) {
  if (size.is_value()) {
    const auto length = resized_length(size.value(), scale, part);
    return length ? SymDim(*length) : SymDim();  // what no length can be is the kernel's to refuse
  }
  scale *= part;
  if (!(scale >= 0 && scale < 1e15)) return {};
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
  if (const auto given = context.attributes.get_ints("axes");
      context.opset >= 18 && !given.empty()) {
    TRY(axes, checked_axes(context, given, x->size()));
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
    const bool crops =
        context.opset >= 11 && context.attributes.get_string("coordinate_transformation_mode",
                                                             "half_pixel") == "tf_crop_and_resize";
    const Tensor* roi = crops ? context.constant(1) : nullptr;
    if (roi != nullptr && (!is_float(roi->dtype()) || roi->size() != 2 * scales->size()))
      roi = nullptr;
    for (size_t i = 0; i < axes.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const double scale = scales->get_double(at);
      if (!(scale > 0))
        return context.error("scales must be positive, but one is " + std::to_string(scale));
      if (crops && roi == nullptr) continue;
      const double part = crops ? roi->get_double(at + scales->size()) - roi->get_double(at) : 1;
      out[axes[i]] = scaled((*x)[axes[i]], scale, part);
    }
  }
  set_shape(context, 0, std::move(out));
  return ok();
}
/// A small float input as numbers; empty when absent.
Result<std::vector<double>> float_list(const KernelContext& context, size_t index) {
  TRY(const Tensor* tensor, context.optional_input(index));
  std::vector<double> values;
  if (tensor == nullptr) return values;
  if (!is_float(tensor->dtype()) || tensor->size() > 128)
    return context.error("input " + std::to_string(index) + " must be a few floats, is " +
                         to_string(*tensor));
  for (int64_t i = 0; i < tensor->size(); ++i) values.push_back(tensor->get_double(i));
  return values;
}

Result<ResizeOptions> resize_options(const KernelContext& context) {
  const AttributeReader& attributes = context.attributes;
  ResizeOptions options;
  const bool first = context.opset < 11;  // no choice yet, as in Upsample
  options.coordinates = std::string(
      attributes.get_string("coordinate_transformation_mode", first ? "asymmetric" : "half_pixel"));
  options.nearest =
      std::string(attributes.get_string("nearest_mode", first ? "by_scale" : "round_prefer_floor"));
  const Text mode = attributes.get_string("mode", "nearest");
  if (mode == "linear")
    options.mode = ResizeMode::kLinear;
  else if (mode == "cubic")
    options.mode = ResizeMode::kCubic;
  else if (mode != "nearest")
    return context.error("mode must be nearest, linear or cubic, is \"" + std::string(mode) + "\"");
  options.cubic_a = attributes.get_float("cubic_coeff_a", -0.75f);
  options.exclude_outside = attributes.get_int("exclude_outside", 0) != 0;
  options.antialias = attributes.get_int("antialias", 0) != 0;
  options.extrapolation = attributes.get_float("extrapolation_value", 0);
  return options;
}

/// Lengths and scales out of `sizes`, by keep_aspect_ratio_policy.
Status apply_sizes(const KernelContext& context, const std::vector<int64_t>& sizes,
                   const std::vector<int64_t>& places, std::span<const int64_t> x,
                   std::vector<ResizeAxis>& axes) {
  const Text policy = context.attributes.get_string("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    return context.error("keep_aspect_ratio_policy \"" + std::string(policy) + "\" is not known");
  if (sizes.size() != places.size())
    return context.error(std::to_string(sizes.size()) + " sizes for " +
                         std::to_string(places.size()) + " axes");
  double common = 0;
  for (size_t k = 0; k < sizes.size(); ++k) {
    const auto j = static_cast<size_t>(places[k]);
    if (sizes[k] < 0 || sizes[k] > INT64_C(1) << 50)
      return context.error("a size of " + std::to_string(sizes[k]));
    const double scale =
        static_cast<double>(sizes[k]) / static_cast<double>(std::max<int64_t>(x[j], 1));
    axes[j].scale = scale;
    axes[j].length = sizes[k];
    if (k == 0 || (policy == "not_larger" ? scale < common : scale > common)) common = scale;
  }
  if (policy == "stretch") return ok();
  for (const int64_t place : places) {
    const auto j = static_cast<size_t>(place);
    axes[j].scale = common;
    axes[j].length = static_cast<int64_t>(std::floor(common * static_cast<double>(x[j]) + 0.5));
  }
  return ok();
}

}  // namespace

Result<ResizePlan> plan_resize(const KernelContext& context, std::span<const int64_t> x) {
  TRY(const ResizeOptions options, resize_options(context));
  const bool first = context.opset < 11;
  TRY(const std::vector<double> roi,
      first ? Result<std::vector<double>>(std::vector<double>()) : float_list(context, 1));
  TRY(const std::vector<double> scales, float_list(context, first ? 1 : 2));
  std::vector<int64_t> places(x.size());
  for (size_t j = 0; j < places.size(); ++j) places[j] = static_cast<int64_t>(j);
  if (const auto given = context.attributes.get_ints("axes"); !given.empty()) {
    TRY(places, normalize_axes({given.begin(), given.end()}, static_cast<int64_t>(x.size())));
  }
  std::vector<ResizeAxis> axes;
  for (const int64_t dim : x) axes.push_back({1, dim, 0, 1});
  if (options.coordinates == "tf_crop_and_resize") {
    if (roi.size() != 2 * places.size())
      return context.error("roi has " + std::to_string(roi.size()) + " elements for " +
                           std::to_string(places.size()) + " axes");
    for (size_t k = 0; k < places.size(); ++k) {
      axes[static_cast<size_t>(places[k])].roi_start = roi[k];
      axes[static_cast<size_t>(places[k])].roi_end = roi[k + places.size()];
    }
  }
  if (!scales.empty()) {
    if (scales.size() != places.size())
      return context.error(std::to_string(scales.size()) + " scales for " +
                           std::to_string(places.size()) + " axes");
    for (size_t k = 0; k < scales.size(); ++k) {
      ResizeAxis& axis = axes[static_cast<size_t>(places[k])];
      const auto length = resized_length(axis.length, scales[k], axis.roi_end - axis.roi_start);
      if (!length)
        return context.error("scale " + std::to_string(scales[k]) + " of axis " +
                             std::to_string(places[k]));
      axis.scale = scales[k];
      axis.length = *length;
    }
  } else if (context.has_input(3)) {
    TRY(const std::vector<int64_t> sizes, context.input_ints(3));
    CHECK_OK(apply_sizes(context, sizes, places, x, axes));
  } else {
    return context.error("neither scales nor sizes are given");
  }
  return ResizePlan{options, std::move(axes)};
}

namespace {

Status run_resize(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const ResizePlan plan, plan_resize(context, x->dims()));
  return resize_tensor(context, *x, plan.axes, plan.options);
}

}  // namespace

namespace {

/// Before opset 11 coordinates are x / scale; "nearest" rounds them down where an axis grows and
/// up where it shrinks (so the data of the official cases, the text is silent). Growing and
/// shrinking at once takes two nodes.
Status step_say_coordinates(StepContext& step) {
  Node& node = step.node;
  Value* const scales = node.input(1);
  if (scales == nullptr) return step.cannot("there are no scales");
  Value* roi = nullptr;
  if (step.target < 13)  // required until then
    roi = step.constant(
        Tensor::of(DType::kFloat32, std::array<int64_t, 1>{0}, std::span<const float>()), "roi");
  node.set_input(1, roi);
  node.set_input(2, scales);
  node.set_string("coordinate_transformation_mode", "asymmetric");
  if (step.get_string("mode", "nearest") != "nearest") return ok();

  bool grows = true, shrinks = true;
  if (const std::optional<Tensor> known = step.constant_value(2);
      known && known->dtype() == DType::kFloat32) {
    grows = shrinks = false;
    for (int64_t i = 0; i < known->size(); ++i) {
      grows = grows || known->get_double(i) > 1;
      shrinks = shrinks || known->get_double(i) < 1;
    }
  }
  node.set_string("nearest_mode", shrinks && !grows ? "ceil" : "floor");
  if (!grows || !shrinks || node.output(0) == nullptr) return ok();
  Value* const one = step.constant(Tensor::scalar_float(1), "one");
  node.set_input(2, step.before("Max", {scales, one}, "scales").output(0));
  Value* const shrink = step.before("Min", {scales, one}, "scales").output(0);
  Node& second = step.after("Resize");
  second.add_input(roi);
  second.add_input(shrink);
  second.set_string("mode", "nearest");
  second.set_string("coordinate_transformation_mode", "asymmetric");
  second.set_string("nearest_mode", "ceil");
  return ok();
}

/// tf_half_pixel_for_nn went at opset 13 (models used it until 18): (x + 0.5) / scale is half a
/// pixel more than half_pixel, which rounding makes up for.
Status step_half_pixel_for_nn(StepContext& step) {
  if (step.get_string("coordinate_transformation_mode", "") != "tf_half_pixel_for_nn") return ok();
  const Text rounding = step.get_string("nearest_mode", "round_prefer_floor");
  if (step.get_string("mode", "nearest") != "nearest" ||
      (rounding != "floor" && rounding != "round_prefer_floor"))
    return step.cannot("no newer mode equals tf_half_pixel_for_nn here");
  const bool down = rounding == "floor";
  step.node.set_string("coordinate_transformation_mode", "half_pixel");
  step.node.set_string("nearest_mode", down ? "round_prefer_ceil" : "ceil");
  return ok();
}

/// Empty tensors stood for absent inputs.
Status step_optional_inputs(StepContext& step) {
  CHECK_OK(step_half_pixel_for_nn(step));
  Node& node = step.node;
  for (uint32_t i = 1; i <= 2; ++i)
    if (const std::optional<Tensor> value = step.constant_value(i); value && value->size() == 0)
      node.set_input(i, nullptr);
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
    .reference = run_resize,
    .up = {{10, 11, step_say_coordinates},
           {11, 13, step_optional_inputs},
           {13, 18, step_half_pixel_for_nn}},
    .down = {{19, 18, step_resize_symmetric},
             {18, 13, step_resize_all_axes},
             {13, 11, step_resize_empty_inputs},
             {11, 10, step_resize_asymmetric},
             {10, 0, step_resize_upsample}},
};

}  // namespace tombolo::ops
