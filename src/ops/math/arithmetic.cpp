#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

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
    .reference = run_add,
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
    .reference = run_sub,
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
    .reference = run_mul,
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
    .reference = run_div,
};

}  // namespace tombolo::ops
