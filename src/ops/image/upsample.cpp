#include <array>

#include "ops/infer_helpers.h"
#include "ops/kernels/resize.h"
#include "ops/schema.h"
#include "ops/step_context.h"

namespace tombolo::ops {

namespace {
Status infer_upsample(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr) return ok();
  std::vector<double> scales;
  if (context.opset >= 9) {
    const Tensor* tensor = context.constant(1);
    if (tensor != nullptr && is_float(tensor->dtype()))
      for (int64_t i = 0; i < tensor->size(); ++i) scales.push_back(tensor->get_double(i));
  } else if (context.opset >= 7) {
    for (const float scale : context.attributes.get_floats("scales")) scales.push_back(scale);
  } else if (x->size() == 4) {
    scales = {1, 1, context.attributes.get_float("height_scale", 1),
              context.attributes.get_float("width_scale", 1)};
  }
  if (scales.empty()) {
    set_rank(context, 0, x->size());
    return ok();
  }
  if (scales.size() != x->size())
    return context.error("scales holds " + std::to_string(scales.size()) +
                         " numbers for an input of rank " + std::to_string(x->size()));
  SymShape out;
  for (size_t i = 0; i < scales.size(); ++i) {
    const SymDim& size = (*x)[i];
    const auto length = resized_length(size.is_value() ? size.value() : 1, scales[i]);
    if (!length)
      return context.error("scale " + std::to_string(scales[i]) + " of axis " + std::to_string(i) +
                           " is not a factor");
    if (size.is_value())
      out.push_back(*length);
    else
      out.push_back(static_cast<double>(*length) == scales[i] ? size * *length : SymDim());
  }
  set_shape(context, 0, std::move(out));
  return ok();
}
/// Scales by version: two attributes (1), an attribute (7), an input (9).
Result<std::vector<float>> upsample_scales(const KernelContext& context, const Tensor& x) {
  std::vector<float> scales;
  if (context.opset < 7) {
    if (x.rank() != 4) return context.error("[N, C, H, W] is needed, not " + to_string(x));
    return std::vector<float>{1, 1, context.attributes.get_float("height_scale", 1),
                              context.attributes.get_float("width_scale", 1)};
  }
  if (context.opset < 9) {
    const auto given = context.attributes.get_floats("scales");
    scales.assign(given.begin(), given.end());
  } else {
    TRY(const Tensor* given, context.input(1));
    if (!is_float(given->dtype()) || given->size() > 64)
      return context.error("scales must be a few floats, are " + to_string(*given));
    for (int64_t i = 0; i < given->size(); ++i)
      scales.push_back(static_cast<float>(given->get_double(i)));
  }
  return scales;
}

Status run_upsample(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const std::vector<float> scales, upsample_scales(context, *x));
  if (scales.size() != x->rank())
    return context.error(std::to_string(scales.size()) + " scales for " + to_string(*x));
  ResizeOptions options;
  options.coordinates = "asymmetric";
  options.nearest = "floor";
  const Text mode = context.attributes.get_string("mode", "nearest");
  if (mode == "linear" || mode == "bilinear")
    options.mode = ResizeMode::kLinear;
  else if (mode != "nearest")
    return context.error("mode must be nearest or linear, is \"" + std::string(mode) + "\"");
  std::vector<ResizeAxis> axes;
  for (size_t j = 0; j < scales.size(); ++j) {
    const auto length = resized_length(x->dim(j), scales[j]);
    if (!length)
      return context.error("scale " + std::to_string(scales[j]) + " of axis " + std::to_string(j));
    axes.push_back({scales[j], *length, 0, 1});
  }
  return resize_tensor(context, *x, axes, options);
}

}  // namespace

namespace {

/// Height and width were the only axes.
Status step_scale_list(StepContext& step) {
  const float height = step.get_float("height_scale", 0), width = step.get_float("width_scale", 0);
  if (height <= 0 || width <= 0) return step.cannot("a scale is missing");
  step.node.set_floats("scales", std::array{1.0f, 1.0f, height, width});
  step.node.remove_attribute("height_scale");
  step.node.remove_attribute("width_scale");
  if (step.get_string("mode", "nearest") == "bilinear") step.node.set_string("mode", "linear");
  return ok();
}

Status step_scales_to_input(StepContext& step) {
  const std::optional<std::vector<float>> scales = step.get_floats("scales");
  if (!scales) return step.cannot("there are no scales");
  const int64_t dims[] = {static_cast<int64_t>(scales->size())};
  Value* const input =
      step.constant(Tensor::of(DType::kFloat32, dims, std::span<const float>(*scales)), "scales");
  step.node.remove_attribute("scales");
  step.node.set_input(1, input);
  return ok();
}

Status step_resize(StepContext& step) {
  step.node.set_op_type("Resize");
  return ok();
}

}  // namespace

namespace {

Status step_scales_back_to_attribute(StepContext& step) {
  const auto scales = step.constant_value(1);
  if (!scales) return step.cannot("the scales must be constant there");
  std::vector<float> list;
  for (int64_t i = 0; i < scales->size(); ++i)
    list.push_back(static_cast<float>(scales->get_double(i)));
  step.node.set_floats("scales", list);
  step.node.remove_input(1);
  return ok();
}

}  // namespace

OPERATOR(Upsample) = {
    .name = "Upsample",
    .doc = "old, simpler form of Resize",
    .versions = {1, 7, 9, 10},
    .deprecated = {10},
    .inputs =
        {
            {"X", "T"},
            {"scales", "tensor(float)", kSingle, {.since = 9}},
        },
    .outputs = {{"Y", "T"}},
    .attributes =
        {
            {"height_scale", required(Attr::kFloat), {.until = 6}},
            {"mode", "nearest"},
            {"width_scale", required(Attr::kFloat), {.until = 6}},
            {"scales", required(Attr::kFloats), {.since = 7, .until = 8}},
        },
    .types = {{"T",
               {{1, kFloats | kIndices | kBool}, {7, kUnsigned | kComplex | kI8 | kI16 | kStr}}}},
    .infer = infer_upsample,
    .reference = run_upsample,
    .up = {{1, 7, step_scale_list}, {7, 9, step_scales_to_input}, {9, 10, step_resize}},
    .down = {{9, 7, step_scales_back_to_attribute}},
};

}  // namespace tombolo::ops
