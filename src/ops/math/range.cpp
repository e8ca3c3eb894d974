#include <cmath>
#include <type_traits>

#include "ops/infer_helpers.h"
#include "ops/kernel_context.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {
/// The number of a scalar constant of any type.
std::optional<double> number_of(const InferContext& context, size_t index) {
  const Tensor* tensor = context.constant(index);
  if (tensor == nullptr || tensor->size() != 1 || tensor->is_string()) return std::nullopt;
  return tensor->get_double(0);
}

Status infer_range(InferContext& context) {
  const auto start = scalar_of(context, 0), limit = scalar_of(context, 1),
             delta = scalar_of(context, 2);
  SymDim length;
  if (start && limit && delta) {
    if (delta->constant() == 0) return context.error("delta is 0");
    if (delta->is_value() && delta->value() != INT64_MIN)
      length = delta->value() > 0
                   ? max(ceil_div(*limit - *start, *delta), SymDim(0))
                   : max(ceil_div(*start - *limit, SymDim(-delta->value())), SymDim(0));
    if (length.is_value() && length.value() <= kMaxElements) {
      SymShape elements;
      for (int64_t i = 0; i < length.value(); ++i) elements.push_back(*start + *delta * i);
      context.set_value(0, std::move(elements));
    }
  } else {
    const auto a = number_of(context, 0), b = number_of(context, 1), d = number_of(context, 2);
    if (a && b && d) {
      if (*d == 0) return context.error("delta is 0");
      const double exact = (*b - *a) / *d;
      if (exact < 9e15) {
        auto count = static_cast<int64_t>(exact);
        if (static_cast<double>(count) < exact) ++count;
        length = std::max<int64_t>(count, 0);
      }
    }
  }
  set_shape(context, 0, {length.is_unknown() ? context.host.fresh_symbol("range") : length});
  return ok();
}
}  // namespace

constexpr Literal kRange = R"(
distance = Sub (limit, start)
distance_f = Cast <to = 11> (distance)
delta_f = Cast <to = 11> (delta)
steps_f = Div (distance_f, delta_f)
steps_up = Ceil (steps_f)
none = Constant <value = double {0}> ()
steps_kept = Max (steps_up, none)
steps = Cast <to = 7> (steps_kept)
always = Constant <value = bool {1}> ()
last, output = Loop (steps, always, start) <body = step (int64 i, bool go_on, at) => (again, next, here) {
  again = Identity (go_on)
  here = Identity (at)
  next = Add (at, delta)
}>
)";

namespace {

Status run_range(KernelContext& context) {
  const Tensor* given[3];
  for (size_t k = 0; k < 3; ++k) {
    TRY(given[k], context.input(k));
    if (given[k]->size() != 1 || given[k]->dtype() != given[0]->dtype())
      return context.error("start, limit and delta must be one number each of one type; input " +
                           std::to_string(k) + " is " + to_string(*given[k]));
  }
  const DType dtype = given[0]->dtype();
  if (is_float(dtype)) {
    const double start = given[0]->get_double(0), limit = given[1]->get_double(0);
    const double delta = given[2]->get_double(0);
    const double steps = std::ceil((limit - start) / delta);
    if (delta == 0 || steps != steps)
      return context.error("delta is 0, or a bound is not a number");
    if (steps > 1e18) return resource_error("the range is endless");
    const int64_t count[] = {steps > 0 ? static_cast<int64_t>(steps) : 0};
    TRY(Tensor * out, context.output(0, dtype, count));
    const auto fill = [&](auto* to) {
      for (int64_t i = 0; i < count[0]; ++i)
        to[i] = static_cast<std::remove_pointer_t<decltype(to)>>(start +
                                                                 static_cast<double>(i) * delta);
    };
    if (dtype == DType::kFloat32)
      fill(out->data<float>());
    else if (dtype == DType::kFloat64)
      fill(out->data<double>());
    else
      for (int64_t i = 0; i < count[0]; ++i)
        out->set_double(i, start + static_cast<double>(i) * delta);
    return ok();
  }
  if (!is_integer(dtype)) return unsupported("a range of type " + std::string(name_of(dtype)));
  const int64_t start = given[0]->get_int64(0), limit = given[1]->get_int64(0);
  const int64_t delta = given[2]->get_int64(0);
  if (delta == 0) return context.error("delta is 0");
  // The distance may not fit an int64, but fits a uint64.
  uint64_t steps = 0;
  if (delta > 0 && limit > start)
    steps = (static_cast<uint64_t>(limit) - static_cast<uint64_t>(start) - 1) /
                static_cast<uint64_t>(delta) +
            1;
  if (delta < 0 && limit < start)
    steps = (static_cast<uint64_t>(start) - static_cast<uint64_t>(limit) - 1) /
                (0 - static_cast<uint64_t>(delta)) +
            1;
  const int64_t count[] = {static_cast<int64_t>(steps)};
  TRY(Tensor * out, context.output(0, dtype, count));
  const auto fill = [&](auto* to) {
    for (int64_t i = 0; i < count[0]; ++i)
      to[i] = static_cast<std::remove_pointer_t<decltype(to)>>(
          static_cast<uint64_t>(start) + static_cast<uint64_t>(i) * static_cast<uint64_t>(delta));
  };
  if (dtype == DType::kInt64)
    fill(out->data<int64_t>());
  else if (dtype == DType::kInt32)
    fill(out->data<int32_t>());
  else
    for (int64_t i = 0; i < count[0]; ++i)
      out->set_int64(i,
                     static_cast<int64_t>(static_cast<uint64_t>(start) +
                                          static_cast<uint64_t>(i) * static_cast<uint64_t>(delta)));
  return ok();
}

}  // namespace

OPERATOR(Range) = {
    .name = "Range",
    .doc = "start, start + delta, ... up to but without limit",
    .versions = {11, 27},
    .inputs =
        {
            {"start", "T"},
            {"limit", "T"},
            {"delta", "T"},
        },
    .outputs = {{"output", "T"}},
    .attributes = {{"stash_type", 1, {.since = 27}}},
    .types = {{"T", {{11, kFloats32 | kIndices | kI16}, {27, kF16 | kBf16}}}},
    .functions =
        {
            {.versions = {.until = 26}, .opset = 11, .text = kRange},
            {.versions = {.since = 27}, .opset = 27, .text = kRange},
        },
    .infer = infer_range,
    .reference = run_range,
    .down = {{27, 11, step_as_it_is}},
};

}  // namespace tombolo::ops
