#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_is_nan(KernelContext& context) {
  return map_to_bool(context, [](auto x) { return x != x; });
}

}  // namespace

OPERATOR(IsNaN) = {
    .name = "IsNaN",
    .doc = "which elements are NaN",
    .versions = {9, 13, 20},
    .inputs = {{"X", "T1"}},
    .outputs = {{"Y", "T2"}},
    .types =
        {
            {"T1", {{9, kFloats}, {13, kBf16}, {20, kFp8}}},
            {"T2", {{9, kBool}}},
        },
    .infer = infer_unary,
    .reference = run_is_nan,
};

}  // namespace tombolo::ops
