#include <cmath>

#include "ops/infer_helpers.h"
#include "ops/kernels/broadcast.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {
SymDim small_power(const SymDim& base, const SymDim& exponent) {
  if (!exponent.is_value() || exponent.value() < 0 || exponent.value() > 8) return {};
  SymDim out = 1;
  for (int64_t i = 0; i < exponent.value(); ++i) out = out * base;
  return out;
}
Status infer_pow(InferContext& context) {
  CHECK_OK(infer_broadcast(context));
  map_elements(context, small_power);
  return ok();
}
}  // namespace

namespace {

/// a^n in integers, wrapping. A negative n gives the truncated real result; 0^-n was refused.
uint64_t integer_power(int64_t a, int64_t n) {
  if (n < 0) return a == 1 || (a == -1 && n % 2 == 0) ? 1u : a == -1 ? ~uint64_t{0} : 0u;
  uint64_t result = 1;
  for (uint64_t base = static_cast<uint64_t>(a); n != 0; n >>= 1, base *= base)
    if (n & 1) result *= base;
  return result;
}

/// Base and exponent of different types, or integers: element by element.
Status run_mixed_pow(KernelContext& context, const Tensor& x, const Tensor& y) {
  if (!is_integer(x.dtype()) && !is_float(x.dtype()))
    return context.error("a base of type " + to_string(x) + " is not allowed");
  if (!is_integer(y.dtype()) && !is_float(y.dtype()))
    return context.error("an exponent of type " + to_string(y) + " is not allowed");
  const Tensor* const inputs[] = {&x, &y};
  TRY(const Broadcast broadcast, Broadcast::of(inputs));
  TRY(Tensor * out, context.output(0, x.dtype(), broadcast.output));
  const bool integers = is_integer(x.dtype()) && is_integer(y.dtype());
  for (BroadcastCursor cursor(broadcast, 0, broadcast.count); !cursor.done(); cursor.advance(1)) {
    const int64_t i = cursor.offset(0), j = cursor.offset(1);
    if (integers) {
      const int64_t base = x.get_int64(i), exponent = y.get_int64(j);
      if (base == 0 && exponent < 0)
        return context.error("0 to the power of " + std::to_string(exponent) + " divides by zero");
      out->set_int64(cursor.at(), static_cast<int64_t>(integer_power(base, exponent)));
    } else if (is_integer(x.dtype())) {
      out->set_int64(cursor.at(), to_integer<int64_t>(std::pow(static_cast<double>(x.get_int64(i)),
                                                               y.get_double(j))));
    } else {
      out->set_double(cursor.at(), std::pow(x.get_double(i), y.get_double(j)));
    }
  }
  return ok();
}

Status run_pow(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  TRY(const Tensor* y, context.input(1));
  if (context.opset >= 7 && (x->dtype() != y->dtype() || !is_float(x->dtype())))
    return run_mixed_pow(context, *x, *y);
  if (y->size() == 1 && y->dtype() == x->dtype() && y->get_double(0) == 2 && y->rank() <= x->rank())
    return map(context, [](auto a) { return a * a; });
  return zip<kFamilyFloats>(context, [](auto a, auto b) { return std::pow(a, b); });
}

}  // namespace

OPERATOR(Pow) = {
    .name = "Pow",
    .doc = "x to the power of y with broadcasting, in the type of x",
    .versions = {1, 7, 12, 13, 15},
    .inputs =
        {
            {"X", "T"},
            {"Y", "T", kSingle, {.until = 11}},
            {"Y", "T1", kSingle, {.since = 12}},
        },
    .outputs = {{"Z", "T"}},
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 6}},
            {"broadcast", 0, {.until = 6}},
        },
    .types =
        {
            {"T", {{1, kFloats}, {12, kIndices}, {13, kBf16}}},
            {"T1", {{12, kNumbers}, {15, kBf16}}, {.since = 12}},
        },
    .infer = infer_pow,
    .reference = run_pow,
    .up = {{1, 7, step_numpy_broadcast}},
};

}  // namespace tombolo::ops
