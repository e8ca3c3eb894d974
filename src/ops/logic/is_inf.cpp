#include <cmath>

#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_is_inf(KernelContext& context) {
  const bool negative = context.attributes.get_int("detect_negative", 1) != 0;
  const bool positive = context.attributes.get_int("detect_positive", 1) != 0;
  return map_to_bool(context, [negative, positive](auto x) {
    return std::isinf(x) && (x < 0 ? negative : positive);
  });
}

}  // namespace

OPERATOR(IsInf) = {
    .name = "IsInf",
    .doc = "which elements are infinite, by sign on request",
    .versions = {10, 20},
    .inputs = {{"X", "T1"}},
    .outputs = {{"Y", "T2"}},
    .attributes =
        {
            {"detect_negative", 1},
            {"detect_positive", 1},
        },
    .types =
        {
            {"T1", {{10, kFloats32}, {20, kFp8 | kF16 | kBf16}}},
            {"T2", {{10, kBool}}},
        },
    .infer = infer_unary,
    .reference = run_is_inf,
};

}  // namespace tombolo::ops
