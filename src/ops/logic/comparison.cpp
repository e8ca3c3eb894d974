#include "ops/infer_helpers.h"
#include "ops/kernels/broadcast.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {
Status infer_equal(InferContext& context) {
  CHECK_OK(infer_broadcast(context));
  map_elements(context, element_equal);
  return ok();
}
Status infer_less(InferContext& context) {
  CHECK_OK(infer_broadcast(context));
  map_elements(context, element_less);
  return ok();
}
Status infer_greater(InferContext& context) {
  CHECK_OK(infer_broadcast(context));
  map_elements(context, [](const SymDim& a, const SymDim& b) { return element_less(b, a); });
  return ok();
}
Status infer_greater_or_equal(InferContext& context) {
  CHECK_OK(infer_broadcast(context));
  map_elements(context,
               [](const SymDim& a, const SymDim& b) { return SymDim(1) - element_less(a, b); });
  return ok();
}
Status infer_less_or_equal(InferContext& context) {
  CHECK_OK(infer_broadcast(context));
  map_elements(context,
               [](const SymDim& a, const SymDim& b) { return SymDim(1) - element_less(b, a); });
  return ok();
}
}  // namespace

namespace {

Status run_equal_strings(KernelContext& context, const Tensor& a, const Tensor& b) {
  const Tensor* const inputs[] = {&a, &b};
  if (!b.is_string()) return context.error("a string is compared with " + to_string(b));
  TRY(const Broadcast broadcast, Broadcast::of(inputs));
  TRY(Tensor * out, context.output(0, DType::kBool, broadcast.output));
  for (BroadcastCursor cursor(broadcast, 0, broadcast.count); !cursor.done(); cursor.advance(1))
    out->data<bool>()[cursor.at()] = a.strings()[static_cast<size_t>(cursor.offset(0))] ==
                                     b.strings()[static_cast<size_t>(cursor.offset(1))];
  return ok();
}

Status run_equal(KernelContext& context) {
  TRY(const Tensor* a, context.input(0));
  TRY(const Tensor* b, context.input(1));
  if (a->is_string()) return run_equal_strings(context, *a, *b);
  return zip_to_bool(
      context, [](auto x, auto y) { return x == y; }, Bools::kTake);
}

}  // namespace

OPERATOR(Equal) = {
    .name = "Equal",
    .doc = "a == b with broadcasting",
    .versions = {1, 7, 11, 13, 19},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T1"}},
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 6}},
            {"broadcast", 0, {.until = 6}},
        },
    .types =
        {
            {"T",
             {{1, kIndices | kBool},
              {11, kUnsigned | kFloats | kI8 | kI16},
              {13, kBf16},
              {19, kStr}}},
            {"T1", {{1, kBool}}},
        },
    .infer = infer_equal,
    .reference = run_equal,
    .up = {{1, 7, step_numpy_broadcast}},
};

namespace {

Status run_greater(KernelContext& context) {
  return zip_to_bool(context, [](auto a, auto b) { return a > b; });
}

}  // namespace

OPERATOR(Greater) = {
    .name = "Greater",
    .doc = "a > b with broadcasting",
    .versions = {1, 7, 9, 13},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T1"}},
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 6}},
            {"broadcast", 0, {.until = 6}},
        },
    .types =
        {
            {"T", {{1, kFloats}, {9, kInts}, {13, kBf16}}},
            {"T1", {{1, kBool}}},
        },
    .infer = infer_greater,
    .reference = run_greater,
    .up = {{1, 7, step_numpy_broadcast}},
};

namespace {

Status run_less(KernelContext& context) {
  return zip_to_bool(context, [](auto a, auto b) { return a < b; });
}

}  // namespace

OPERATOR(Less) = {
    .name = "Less",
    .doc = "a < b with broadcasting",
    .versions = {1, 7, 9, 13},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T1"}},
    .attributes =
        {
            {"axis", Attr::kInt, {.until = 6}},
            {"broadcast", 0, {.until = 6}},
        },
    .types =
        {
            {"T", {{1, kFloats}, {9, kInts}, {13, kBf16}}},
            {"T1", {{1, kBool}}},
        },
    .infer = infer_less,
    .reference = run_less,
    .up = {{1, 7, step_numpy_broadcast}},
};

constexpr Literal kGreaterOrEqual = R"(
strict = Greater (A, B)
equal = Equal (A, B)
C = Or (strict, equal)
)";

namespace {

Status run_greater_or_equal(KernelContext& context) {
  return zip_to_bool(context, [](auto a, auto b) { return a >= b; });
}

}  // namespace

OPERATOR(GreaterOrEqual) = {
    .name = "GreaterOrEqual",
    .doc = "a >= b with broadcasting",
    .versions = {12, 16},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T1"}},
    .types =
        {
            {"T", {{12, kNumbers}, {16, kBf16}}},
            {"T1", {{12, kBool}}},
        },
    .functions =
        {
            {.versions = {.until = 15}, .opset = 12, .text = kGreaterOrEqual},
            {.versions = {.since = 16}, .opset = 16, .text = kGreaterOrEqual},
        },
    .infer = infer_greater_or_equal,
    .reference = run_greater_or_equal,
};

constexpr Literal kLessOrEqual = R"(
strict = Less (A, B)
equal = Equal (A, B)
C = Or (strict, equal)
)";

namespace {

Status run_less_or_equal(KernelContext& context) {
  return zip_to_bool(context, [](auto a, auto b) { return a <= b; });
}

}  // namespace

OPERATOR(LessOrEqual) = {
    .name = "LessOrEqual",
    .doc = "a <= b with broadcasting",
    .versions = {12, 16},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T1"}},
    .types =
        {
            {"T", {{12, kNumbers}, {16, kBf16}}},
            {"T1", {{12, kBool}}},
        },
    .functions =
        {
            {.versions = {.until = 15}, .opset = 12, .text = kLessOrEqual},
            {.versions = {.since = 16}, .opset = 16, .text = kLessOrEqual},
        },
    .infer = infer_less_or_equal,
    .reference = run_less_or_equal,
};

}  // namespace tombolo::ops
