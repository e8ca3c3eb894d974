#include <cmath>

#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_sin(KernelContext& context) {
  return map(context, [](auto x) { return std::sin(x); });
}

}  // namespace

OPERATOR(Sin) = {
    .name = "Sin",
    .doc = "sine of x in radians",
    .versions = {7, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{7, kFloats}, {22, kBf16}}}},
    .infer = infer_unary,
    .reference = run_sin,
};

namespace {

Status run_cos(KernelContext& context) {
  return map(context, [](auto x) { return std::cos(x); });
}

}  // namespace

OPERATOR(Cos) = {
    .name = "Cos",
    .doc = "cosine of x in radians",
    .versions = {7, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{7, kFloats}, {22, kBf16}}}},
    .infer = infer_unary,
    .reference = run_cos,
};

namespace {

Status run_tan(KernelContext& context) {
  return map(context, [](auto x) { return std::tan(x); });
}

}  // namespace

OPERATOR(Tan) = {
    .name = "Tan",
    .doc = "tangent of x in radians",
    .versions = {7, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{7, kFloats}, {22, kBf16}}}},
    .infer = infer_unary,
    .reference = run_tan,
};

namespace {

Status run_asin(KernelContext& context) {
  return map(context, [](auto x) { return std::asin(x); });
}

}  // namespace

OPERATOR(Asin) = {
    .name = "Asin",
    .doc = "inverse sine, in radians",
    .versions = {7, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{7, kFloats}, {22, kBf16}}}},
    .infer = infer_unary,
    .reference = run_asin,
};

namespace {

Status run_acos(KernelContext& context) {
  return map(context, [](auto x) { return std::acos(x); });
}

}  // namespace

OPERATOR(Acos) = {
    .name = "Acos",
    .doc = "inverse cosine, in radians",
    .versions = {7, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{7, kFloats}, {22, kBf16}}}},
    .infer = infer_unary,
    .reference = run_acos,
};

namespace {

Status run_atan(KernelContext& context) {
  return map(context, [](auto x) { return std::atan(x); });
}

}  // namespace

OPERATOR(Atan) = {
    .name = "Atan",
    .doc = "inverse tangent, in radians",
    .versions = {7, 22},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{7, kFloats}, {22, kBf16}}}},
    .infer = infer_unary,
    .reference = run_atan,
};

}  // namespace tombolo::ops
