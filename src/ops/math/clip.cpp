#include <optional>

#include "ops/function_text.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"
#include "ops/step_context.h"

namespace tombolo::ops {

namespace {
Status infer_clip(InferContext& context) {
  CHECK_OK(infer_unary(context));
  if (context.opset < 11 || context.ints(0) == nullptr) return ok();
  SymShape out = *context.ints(0);
  for (const size_t bound : {size_t{1}, size_t{2}}) {
    if (!context.has_input(bound)) continue;
    const auto limit = scalar_of(context, bound);
    if (!limit) return ok();
    for (SymDim& x : out) x = bound == 1 ? max(x, *limit) : min(x, *limit);
  }
  context.set_value(0, std::move(out));
  return ok();
}
}  // namespace

namespace {

/// A limit in each of the types in which we compute.
struct Limit {
  bool given = false;
  float f = 0;
  double d = 0;
  int64_t i = 0;
  uint64_t u = 0;

  template <typename T>
  T as() const {
    if constexpr (std::is_same_v<T, float>) return f;
    if constexpr (std::is_same_v<T, double>) return d;
    if constexpr (std::is_same_v<T, int64_t>) return i;
    if constexpr (std::is_same_v<T, uint64_t>) return u;
  }
};

/// The scalar input `index`, or (before operator set 11) the attribute `name`.
Result<Limit> read_limit(const KernelContext& context, const Tensor& x, size_t index,
                         const char* name) {
  Limit limit;
  if (context.opset < 11) {
    limit.given = context.attributes.has(name);
    limit.f = context.attributes.get_float(name, 0);
    limit.d = limit.f;
    // No operator set of then has integers, which become a limit's type where they are known.
    limit.i = to_integer<int64_t>(limit.d);
    limit.u = to_integer<uint64_t>(limit.d);
    return limit;
  }
  TRY(const Tensor* tensor, context.optional_input(index));
  if (tensor == nullptr) return limit;
  if (tensor->size() != 1 || tensor->dtype() != x.dtype())
    return context.error(std::string(name) + " must be one number of type " +
                         std::string(name_of(x.dtype())) + ", is " + to_string(*tensor));
  limit.given = true;
  switch (compute_type(x.dtype())) {
    case Compute::kFloat:
      widen(*tensor, 0, 1, &limit.f);
      break;
    case Compute::kDouble:
      widen(*tensor, 0, 1, &limit.d);
      break;
    case Compute::kInt64:
      widen(*tensor, 0, 1, &limit.i);
      break;
    case Compute::kUInt64:
      widen(*tensor, 0, 1, &limit.u);
      break;
    case Compute::kNone:
      break;
  }
  return limit;
}

Status run_clip(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Limit low, read_limit(context, *x, 1, "min"));
  TRY(const Limit high, read_limit(context, *x, 2, "max"));
  // NaN passes; where min > max, max wins.
  return map<kFamilyNumbers>(context, [&](auto value) {
    using T = decltype(value);
    if (low.given && value < low.as<T>()) value = low.as<T>();
    if (high.given && value > high.as<T>()) value = high.as<T>();
    return value;
  });
}

}  // namespace

static Status body_of_clip(FunctionContext& context) {
  const bool low = context.has_input(1), high = context.has_input(2);
  if (low) context.line(high ? "raised = Max (input, min)" : "output = Max (input, min)");
  if (high) context.line(low ? "output = Min (raised, max)" : "output = Min (input, max)");
  if (!low && !high) context.line("output = Identity (input)");
  return ok();
}

namespace {

Status step_limits_to_inputs(StepContext& step) {
  const DType dtype = step.dtype(0);
  if ((step.has("min") || step.has("max")) && dtype == DType::kUndefined)
    return step.cannot("the type of the input is not known");
  uint32_t index = 1;
  for (const char* name : {"min", "max"}) {
    if (step.has(name)) {
      const float limit = step.get_float(name, 0.0f);
      TRY(Value * input, step.scalar(dtype, static_cast<double>(limit), name));
      step.node.remove_attribute(name);
      step.node.set_input(index, input);
    }
    ++index;
  }
  return ok();
}

}  // namespace

namespace {

Status step_limits_to_attributes(StepContext& step) {
  Node& node = step.node;
  constexpr const char* kNames[] = {"min", "max"};
  std::optional<float> limits[2];
  for (uint32_t i = 0; i < 2; ++i) {
    if (!step.has_input(i + 1)) continue;
    const auto limit = step.constant_value(i + 1);
    if (!limit || limit->size() != 1) return step.cannot("the limits must be constant there");
    limits[i] = static_cast<float>(limit->get_double(0));
  }
  while (node.inputs().size() > 1)
    node.remove_input(static_cast<uint32_t>(node.inputs().size() - 1));
  for (size_t i = 0; i < 2; ++i)
    if (limits[i]) node.set_float(kNames[i], *limits[i]);
  return ok();
}

}  // namespace

OPERATOR(Clip) = {
    .name = "Clip",
    .doc = "x limited to the interval [min, max]",
    .versions = {1, 6, 11, 12, 13},
    .inputs =
        {
            {"input", "T"},
            {"min", "T", kOptional, {.since = 11}},
            {"max", "T", kOptional, {.since = 11}},
        },
    .outputs = {{"output", "T"}},
    .attributes =
        {
            {"consumed_inputs", Attr::kInts, {.until = 5}},
            {"max", Attr::kFloat, {.until = 5}},
            {"max", 3.4028235e+38f, {.since = 6, .until = 10}},
            {"min", Attr::kFloat, {.until = 5}},
            {"min", -3.4028235e+38f, {.since = 6, .until = 10}},
        },
    .types = {{"T", {{1, kFloats}, {12, kInts}, {13, kBf16}}}},
    .functions = {{.versions = {.since = 13}, .opset = 13, .builder = body_of_clip}},
    .infer = infer_clip,
    .reference = run_clip,
    .up = {{6, 11, step_limits_to_inputs}},
    .down = {{11, 6, step_limits_to_attributes}},
};

}  // namespace tombolo::ops
