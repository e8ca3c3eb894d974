#include "ops/infer_helpers.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {
Status infer_add(InferContext& context) {
  CHECK_OK(infer_broadcast(context));
  map_elements(context, [](const SymDim& a, const SymDim& b) { return a + b; });
  return ok();
}
Status infer_sub(InferContext& context) {
  CHECK_OK(infer_broadcast(context));
  map_elements(context, [](const SymDim& a, const SymDim& b) { return a - b; });
  return ok();
}
Status infer_mul(InferContext& context) {
  CHECK_OK(infer_broadcast(context));
  map_elements(context, [](const SymDim& a, const SymDim& b) { return a * b; });
  return ok();
}
SymDim truncating_division(const SymDim& a, const SymDim& b) {
  if (b.constant() == 0) return {};
  if (a.is_value() && b.is_value()) {
    if (a.value() == INT64_MIN) return {};
    return a.value() / b.value();
  }
  return non_negative(a) && non_negative(b) ? floor_div(a, b) : SymDim();
}
SymDim exact_division(const SymDim& a, const SymDim& b) {
  if (b.constant() == 0) return {};
  const SymDim quotient = floor_div(a, b);
  return (quotient * b).equals(a) ? quotient : SymDim();
}
Status infer_div(InferContext& context) {
  CHECK_OK(infer_broadcast(context));
  // Of a float tensor only the elements that are whole numbers are followed.
  map_elements(context, is_integer(context.elem(0)) ? truncating_division : exact_division);
  return ok();
}
}  // namespace

namespace {

Status run_add(KernelContext& context) {
  return zip(context, [](auto a, auto b) { return wrap_add(a, b); });
}

}  // namespace

OPERATOR(Add) = {
    .name = "Add",
    .doc = "a + b with broadcasting",
    .versions = {1, 6, 7, 13, 14},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T"}},
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 6}},
            {"broadcast", 0, {.until = 6}},
            {"consumed_inputs", Attr::kInts, {.until = 5}},
        },
    .types = {{"T", {{1, kFloats}, {6, kInt32s}, {13, kBf16}, {14, kInt8s | kInt16s}}}},
    .infer = infer_add,
    .reference = run_add,
    .up = {{6, 7, step_numpy_broadcast}},
};

namespace {

Status run_sub(KernelContext& context) {
  return zip(context, [](auto a, auto b) { return wrap_sub(a, b); });
}

}  // namespace

OPERATOR(Sub) = {
    .name = "Sub",
    .doc = "a - b with broadcasting",
    .versions = {1, 6, 7, 13, 14},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T"}},
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 6}},
            {"broadcast", 0, {.until = 6}},
            {"consumed_inputs", Attr::kInts, {.until = 5}},
        },
    .types = {{"T", {{1, kFloats}, {6, kInt32s}, {13, kBf16}, {14, kInt8s | kInt16s}}}},
    .infer = infer_sub,
    .reference = run_sub,
    .up = {{6, 7, step_numpy_broadcast}},
};

namespace {

Status run_mul(KernelContext& context) {
  return zip(context, [](auto a, auto b) { return wrap_mul(a, b); });
}

}  // namespace

OPERATOR(Mul) = {
    .name = "Mul",
    .doc = "a * b with broadcasting",
    .versions = {1, 6, 7, 13, 14},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T"}},
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 6}},
            {"broadcast", 0, {.until = 6}},
            {"consumed_inputs", Attr::kInts, {.until = 5}},
        },
    .types = {{"T", {{1, kFloats}, {6, kInt32s}, {13, kBf16}, {14, kInt8s | kInt16s}}}},
    .infer = infer_mul,
    .reference = run_mul,
    .up = {{6, 7, step_numpy_broadcast}},
};

namespace {

Status run_div(KernelContext& context) {
  CHECK_OK(refuse_zero_divisor(context, 1));
  return zip(context, [](auto a, auto b) {
    using T = decltype(a);
    if constexpr (std::is_same_v<T, int64_t>) {
      if (b == -1) return wrap_sub(T{0}, a);  // the least number by -1 would trap
    }
    return a / b;
  });
}

}  // namespace

OPERATOR(Div) = {
    .name = "Div",
    .doc = "a / b with broadcasting; integers truncate towards zero",
    .versions = {1, 6, 7, 13, 14},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T"}},
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 6}},
            {"broadcast", 0, {.until = 6}},
            {"consumed_inputs", Attr::kInts, {.until = 5}},
        },
    .types = {{"T", {{1, kFloats}, {6, kInt32s}, {13, kBf16}, {14, kInt8s | kInt16s}}}},
    .infer = infer_div,
    .reference = run_div,
    .up = {{6, 7, step_numpy_broadcast}},
};

}  // namespace tombolo::ops
