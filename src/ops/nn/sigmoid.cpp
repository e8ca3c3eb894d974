#include <cmath>

#include "ops/infer_generic.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

Status run_sigmoid(KernelContext& context) {
  // Of both forms the one whose exponential cannot overflow.
  return map(context, [](auto x) {
    const auto e = std::exp(-std::fabs(x));
    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
  });
}

}  // namespace

OPERATOR(Sigmoid) = {
    .name = "Sigmoid",
    .doc = "1 / (1 + e^-x)",
    .versions = {1, 6, 13},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
    .infer = infer_unary,
    .reference = run_sigmoid,
};

}  // namespace tombolo::ops
