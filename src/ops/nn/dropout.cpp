#include <span>
#include <utility>

#include "ops/infer_helpers.h"
#include "ops/kernels/elementwise.h"
#include "ops/kernels/movement.h"
#include "ops/kernels/random.h"
#include "ops/schema.h"
#include "ops/step_context.h"

namespace tombolo::ops {

namespace {
Status infer_dropout(InferContext& context) {
  CHECK_OK(infer_unary(context));
  if (const SymShape* shape = context.shape(0)) set_shape(context, 1, *shape);
  return ok();
}
/// Whether this run drops elements, and how likely.
struct DropoutMode {
  bool training = false;
  double ratio = 0.5;
};

Result<DropoutMode> dropout_mode(const KernelContext& context) {
  DropoutMode mode;
  if (context.opset < 12) {
    mode.ratio = context.attributes.get_float("ratio", 0.5f);
    // From 7 to 11 the operator knew only inference; before, is_test said so.
    mode.training = context.opset < 7 && context.attributes.get_int("is_test", 0) == 0;
    return mode;
  }
  TRY(const Tensor* ratio, context.optional_input(1));
  TRY(const Tensor* training, context.optional_input(2));
  if (ratio != nullptr) {
    if (ratio->size() != 1 || !is_float(ratio->dtype()))
      return context.error("ratio must be one number, is " + to_string(*ratio));
    mode.ratio = ratio->get_double(0);
  }
  if (training != nullptr) {
    if (training->size() != 1 || training->dtype() != DType::kBool)
      return context.error("training_mode must be one bool, is " + to_string(*training));
    mode.training = training->data<bool>()[0];
  }
  return mode;
}

Status run_dropout(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const DropoutMode mode, dropout_mode(context));
  if (mode.training && !(mode.ratio >= 0 && mode.ratio < 1))
    return context.error("ratio must lie in [0, 1), is " + std::to_string(mode.ratio));
  const bool drops = mode.training && mode.ratio > 0;
  if (!drops) context.set_output(0, *x);
  if (!drops && !context.wants_output(1)) return ok();

  Tensor scratch;
  Tensor* mask = &scratch;
  const DType mask_type = context.opset < 10 ? x->dtype() : DType::kBool;
  if (context.wants_output(1)) {
    TRY(mask, context.output(1, mask_type, x->dims()));
  } else {
    TRY(scratch, context.allocate(mask_type, x->dims()));
  }
  CHECK_OK(with_random(context, [&](auto& random) {
    const auto keeps = [&] { return !drops || random.next_unit() >= mode.ratio; };
    if (mask_type == DType::kBool)
      for (bool& kept : mask->span<bool>()) kept = keeps();
    else
      for (int64_t i = 0; i < mask->size(); ++i) mask->set_int64(i, keeps());
    return ok();
  }));
  if (!drops) return ok();
  if (!is_float(x->dtype())) return context.error("floats are needed, not " + to_string(*x));
  TRY(Tensor * y, context.output(0, x->dtype(), x->dims()));
  const double scale = 1 / (1 - mode.ratio);
  if (x->dtype() == DType::kFloat32 && mask_type == DType::kBool) {
    const std::span<const bool> kept = std::as_const(*mask).span<bool>();
    const std::span<const float> from = x->span<float>();
    const std::span<float> to = y->span<float>();
    for (size_t i = 0; i < to.size(); ++i)
      to[i] = kept[i] ? static_cast<float>(static_cast<double>(from[i]) * scale) : 0.0f;
    return ok();
  }
  for (int64_t i = 0; i < x->size(); ++i)
    y->set_double(i, mask->get_int64(i) != 0 ? x->get_double(i) * scale : 0);
  return ok();
}

}  // namespace

namespace {

Status step_drop_is_test(StepContext& step) {
  if (step.get_int("is_test", 0) == 0)
    return step.cannot("is_test = 0 drops elements at random, which opset 7 cannot say");
  step.node.remove_attribute("is_test");
  return ok();
}

/// The mask had the type of the data.
Status step_boolean_mask(StepContext& step) {
  if (!step.output_used(1)) return ok();
  const DType dtype = step.dtype(0);
  if (dtype == DType::kUndefined) return step.cannot("the type of the mask is not known");
  step.after("Cast", 1).set_int("to", static_cast<int64_t>(dtype));
  return ok();
}

/// Without training_mode nothing is dropped, as before.
Status step_ratio_to_input(StepContext& step) {
  if (!step.has("ratio")) return ok();
  const float ratio = step.get_float("ratio", 0.5f);
  TRY(Value * input, step.scalar(DType::kFloat32, static_cast<double>(ratio), "ratio"));
  step.node.remove_attribute("ratio");
  step.node.set_input(1, input);
  return ok();
}

}  // namespace

namespace {

Status step_ratio_to_attribute(StepContext& step) {
  Node& node = step.node;
  if (step.output_used(1)) return step.cannot("what its mask held in inference was not said");
  if (step.has_input(2)) {
    const auto training = step.constant_value(2);
    if (!training || training->size() != 1) return step.cannot("training_mode must be constant");
    if (training->get_int64(0) != 0) return step.cannot("it could not say that it trains");
  }
  if (step.has_input(1)) {
    const auto ratio = step.constant_value(1);
    if (!ratio || ratio->size() != 1) return step.cannot("the ratio must be constant there");
    node.set_float("ratio", static_cast<float>(ratio->get_double(0)));
  }
  while (node.inputs().size() > 1)
    node.remove_input(static_cast<uint32_t>(node.inputs().size() - 1));
  node.remove_attribute("seed");
  return ok();
}

/// The mask was of the type of the data.
Status step_mask_unused(StepContext& step) {
  if (step.output_used(1)) return step.cannot("its mask is read");
  return ok();
}

}  // namespace

OPERATOR(Dropout) = {
    .name = "Dropout",
    .doc = "zeroes random elements in training; the identity in inference",
    .versions = {1, 6, 7, 10, 12, 13, 22},
    .inputs =
        {
            {"data", "T"},
            {"ratio", "T1", kOptional, {.since = 12}},
            {"training_mode", "T2", kOptional, {.since = 12}},
        },
    .outputs =
        {
            {"output", "T"},
            {"mask", "T", kOptional, {.until = 9}},
            {"mask", "T1", kOptional, {.since = 10, .until = 11}},
            {"mask", "T2", kOptional, {.since = 12}},
        },
    .attributes =
        {
            {"consumed_inputs", Attr::kInts, {.until = 5}},
            {"is_test", 0, {.until = 6}},
            {"ratio", 0.5f, {.until = 11}},
            {"seed", Attr::kInt, {.since = 12}},
        },
    .types =
        {
            {"T", {{1, kFloats}, {13, kBf16}, {22, kFp8}}},
            {"T1", {{10, kBool}}, {.since = 10, .until = 11}},
            {"T1", {{12, kFloats}, {22, kFp8 | kBf16}}, {.since = 12}},
            {"T2", {{12, kBool}}, {.since = 12}},
        },
    .determinism = Determinism::kRandom,
    .infer = infer_dropout,
    .reference = run_dropout,
    .up = {{6, 7, step_drop_is_test}, {7, 10, step_boolean_mask}, {10, 12, step_ratio_to_input}},
    .down = {{12, 10, step_ratio_to_attribute}, {10, 7, step_mask_unused}},
};

}  // namespace tombolo::ops
