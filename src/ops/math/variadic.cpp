#include "ops/infer_helpers.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"
#include "ops/version_steps.h"

namespace tombolo::ops {

namespace {
Status infer_max(InferContext& context) {
  CHECK_OK(infer_broadcast(context));
  fold_elements(context, [](const SymDim& a, const SymDim& b) { return max(a, b); });
  return ok();
}
Status infer_min(InferContext& context) {
  CHECK_OK(infer_broadcast(context));
  fold_elements(context, [](const SymDim& a, const SymDim& b) { return min(a, b); });
  return ok();
}
Status infer_sum(InferContext& context) {
  CHECK_OK(infer_broadcast(context));
  fold_elements(context, [](const SymDim& a, const SymDim& b) { return a + b; });
  return ok();
}
}  // namespace

namespace {

// NaN wins, whichever side it stands on.
Status run_max(KernelContext& context) {
  auto larger = [](auto a, auto b) { return a > b || a != a ? a : b; };
  return run_fold(context, binary_rows<kFamilyNumbers, false, decltype(larger)>(Bools::kRefuse),
                  &larger);
}

}  // namespace

OPERATOR(Max) = {
    .name = "Max",
    .doc = "element-wise maximum of any number of tensors",
    .versions = {1, 6, 8, 12, 13},
    .inputs = {{"data_0", "T", kVariadic}},
    .outputs = {{"max", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {12, kInts}, {13, kBf16}}}},
    .infer = infer_max,
    .reference = run_max,
    .down = {{8, 6, step_equal_shapes}},
};

namespace {

Status run_min(KernelContext& context) {
  auto smaller = [](auto a, auto b) { return a < b || a != a ? a : b; };
  return run_fold(context, binary_rows<kFamilyNumbers, false, decltype(smaller)>(Bools::kRefuse),
                  &smaller);
}

}  // namespace

OPERATOR(Min) = {
    .name = "Min",
    .doc = "element-wise minimum of any number of tensors",
    .versions = {1, 6, 8, 12, 13},
    .inputs = {{"data_0", "T", kVariadic}},
    .outputs = {{"min", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {12, kInts}, {13, kBf16}}}},
    .infer = infer_min,
    .reference = run_min,
    .down = {{8, 6, step_equal_shapes}},
};

namespace {

constexpr auto kSum = [](auto a, auto b) { return a + b; };
constexpr RowFns kSumRows = binary_rows<kFamilyFloats, false, decltype(kSum)>(Bools::kRefuse);

Status run_sum(KernelContext& context) { return run_fold(context, kSumRows, &kSum); }

}  // namespace

OPERATOR(Sum) = {
    .name = "Sum",
    .doc = "element-wise sum of any number of tensors",
    .versions = {1, 6, 8, 13},
    .inputs = {{"data_0", "T", kVariadic}},
    .outputs = {{"sum", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
    .infer = infer_sum,
    .reference = run_sum,
    .down = {{8, 6, step_equal_shapes}},
};

namespace {

Status run_mean(KernelContext& context) {
  const double count = static_cast<double>(context.input_count());
  return run_fold(context, kSumRows, &kSum, count > 0 ? 1 / count : 1);
}

}  // namespace

OPERATOR(Mean) = {
    .name = "Mean",
    .doc = "element-wise mean of any number of tensors",
    .versions = {1, 6, 8, 13},
    .inputs = {{"data_0", "T", kVariadic}},
    .outputs = {{"mean", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {13, kBf16}}}},
    .infer = infer_broadcast,
    .reference = run_mean,
    .down = {{8, 6, step_equal_shapes}},
};

}  // namespace tombolo::ops
