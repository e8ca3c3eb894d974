#include <cmath>

#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {

Status run_exp(KernelContext& context) {
  return map(context, [](auto x) { return std::exp(x); });
}

}  // namespace

OPERATOR(Exp) = {
    .name = "Exp",
    .doc = "e to the power of x",
    .versions = {1, 6, 13},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
    .infer = infer_unary,
    .reference = run_exp,
};

namespace {

Status run_log(KernelContext& context) {
  return map(context, [](auto x) { return std::log(x); });
}

}  // namespace

OPERATOR(Log) = {
    .name = "Log",
    .doc = "natural logarithm",
    .versions = {1, 6, 13},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
    .infer = infer_unary,
    .reference = run_log,
};

namespace {

Status run_sqrt(KernelContext& context) {
  return map(context, [](auto x) { return std::sqrt(x); });
}

}  // namespace

OPERATOR(Sqrt) = {
    .name = "Sqrt",
    .doc = "square root; NaN below zero",
    .versions = {1, 6, 13},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
    .infer = infer_unary,
    .reference = run_sqrt,
};

namespace {

Status run_reciprocal(KernelContext& context) {
  return map(context, [](auto x) { return 1 / x; });
}

}  // namespace

OPERATOR(Reciprocal) = {
    .name = "Reciprocal",
    .doc = "1 / x",
    .versions = {1, 6, 13},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
    .infer = infer_unary,
    .reference = run_reciprocal,
};

namespace {

// Integers are allowed until operator set 12: truncated, as a cast of the real result would be.
Status run_erf(KernelContext& context) {
  return map<kFamilyNumbers>(context, [](auto x) {
    using T = decltype(x);
    if constexpr (std::is_floating_point_v<T>) return std::erf(x);
    return static_cast<T>(std::erf(static_cast<double>(x)));
  });
}

}  // namespace

OPERATOR(Erf) = {
    .name = "Erf",
    .doc = "Gauss error function",
    .versions = {9, 13},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types =
        {
            {"T", {{9, kNumbers}}, {.until = 12}},
            {"T", {{13, kFloats | kBf16}}, {.since = 13}},
        },
    .infer = infer_unary,
    .reference = run_erf,
    .up = {{9, 13, step_no_integers}},
    .down = {{13, 9, step_as_it_is}},
};

}  // namespace tombolo::ops
