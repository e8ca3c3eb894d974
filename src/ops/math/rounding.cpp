#include <cmath>

#include "ops/infer_helpers.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
/// Whole numbers are their own rounding.
Status infer_whole(InferContext& context) { return infer_identity(context); }
}  // namespace

namespace {

Status run_ceil(KernelContext& context) {
  return map(context, [](auto x) { return std::ceil(x); });
}

}  // namespace

OPERATOR(Ceil) = {
    .name = "Ceil",
    .doc = "smallest integer not below x",
    .versions = {1, 6, 13},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
    .infer = infer_whole,
    .reference = run_ceil,
};

namespace {

Status run_floor(KernelContext& context) {
  return map(context, [](auto x) { return std::floor(x); });
}

}  // namespace

OPERATOR(Floor) = {
    .name = "Floor",
    .doc = "largest integer not above x",
    .versions = {1, 6, 13},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
    .infer = infer_whole,
    .reference = run_floor,
};

namespace {

Status run_round(KernelContext& context) {
  return map(context, [](auto x) { return std::nearbyint(x); });
}

}  // namespace

OPERATOR(Round) = {
    .name = "Round",
    .doc = "nearest integer, halves to even",
    .versions = {11, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .types = {{"T", {{11, kFloats}, {22, kBf16}}}},
    .infer = infer_whole,
    .reference = run_round,
};

}  // namespace tombolo::ops
