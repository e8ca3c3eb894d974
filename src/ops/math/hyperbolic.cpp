#include <cmath>

#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_sinh(KernelContext& context) {
  return map(context, [](auto x) { return std::sinh(x); });
}

}  // namespace

OPERATOR(Sinh) = {
    .name = "Sinh",
    .doc = "hyperbolic sine",
    .versions = {9, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{9, kFloats}, {22, kBf16}}}},
    .infer = infer_unary,
    .reference = run_sinh,
};

namespace {

Status run_cosh(KernelContext& context) {
  return map(context, [](auto x) { return std::cosh(x); });
}

}  // namespace

OPERATOR(Cosh) = {
    .name = "Cosh",
    .doc = "hyperbolic cosine",
    .versions = {9, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{9, kFloats}, {22, kBf16}}}},
    .infer = infer_unary,
    .reference = run_cosh,
};

namespace {

Status run_tanh(KernelContext& context) {
  return map(context, [](auto x) { return std::tanh(x); });
}

}  // namespace

OPERATOR(Tanh) = {
    .name = "Tanh",
    .doc = "hyperbolic tangent",
    .versions = {1, 6, 13},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
    .infer = infer_unary,
    .reference = run_tanh,
};

namespace {

Status run_asinh(KernelContext& context) {
  return map(context, [](auto x) { return std::asinh(x); });
}

}  // namespace

OPERATOR(Asinh) = {
    .name = "Asinh",
    .doc = "inverse hyperbolic sine",
    .versions = {9, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{9, kFloats}, {22, kBf16}}}},
    .infer = infer_unary,
    .reference = run_asinh,
};

namespace {

Status run_acosh(KernelContext& context) {
  return map(context, [](auto x) { return std::acosh(x); });
}

}  // namespace

OPERATOR(Acosh) = {
    .name = "Acosh",
    .doc = "inverse hyperbolic cosine",
    .versions = {9, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{9, kFloats}, {22, kBf16}}}},
    .infer = infer_unary,
    .reference = run_acosh,
};

namespace {

Status run_atanh(KernelContext& context) {
  return map(context, [](auto x) { return std::atanh(x); });
}

}  // namespace

OPERATOR(Atanh) = {
    .name = "Atanh",
    .doc = "inverse hyperbolic tangent",
    .versions = {9, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{9, kFloats}, {22, kBf16}}}},
    .infer = infer_unary,
    .reference = run_atanh,
};

}  // namespace tombolo::ops
