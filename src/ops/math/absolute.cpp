#include <cmath>

#include "ops/infer_helpers.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_abs(InferContext& context) {
  CHECK_OK(infer_unary(context));
  map_elements(context, [](const SymDim& x) { return max(x, SymDim(0) - x); });
  return ok();
}
Status infer_neg(InferContext& context) {
  CHECK_OK(infer_unary(context));
  map_elements(context, [](const SymDim& x) { return SymDim(0) - x; });
  return ok();
}
Status infer_sign(InferContext& context) {
  CHECK_OK(infer_unary(context));
  map_elements(context, [](const SymDim& x) { return max(min(x, SymDim(1)), SymDim(-1)); });
  return ok();
}
}  // namespace

namespace {

Status run_abs(KernelContext& context) {
  return map<kFamilyNumbers>(context, [](auto x) {
    using T = decltype(x);
    if constexpr (std::is_floating_point_v<T>) return std::fabs(x);
    return x < T{0} || x == T{0} ? wrap_sub(T{0}, x) : x;
  });
}

}  // namespace

OPERATOR(Abs) = {
    .name = "Abs",
    .doc = "y = |x|, element by element",
    .versions = {1, 6, 13},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {6, kInts}, {13, kBf16}}}},
    .infer = infer_abs,
    .reference = run_abs,
};

namespace {

Status run_neg(KernelContext& context) {
  return map<kFamilyFloats | kFamilySigned>(context, [](auto x) {
    using T = decltype(x);
    if constexpr (std::is_floating_point_v<T>) return -x;
    return wrap_sub(T{0}, x);
  });
}

}  // namespace

OPERATOR(Neg) = {
    .name = "Neg",
    .doc = "y = -x",
    .versions = {1, 6, 13},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .attributes = {{"consumed_inputs", Attr::kInts, {.until = 5}}},
    .types = {{"T", {{1, kFloats}, {6, kSigned}, {13, kBf16}}}},
    .infer = infer_neg,
    .reference = run_neg,
};

namespace {

Status run_sign(KernelContext& context) {
  return map<kFamilyNumbers>(context, [](auto x) {
    using T = decltype(x);
    if (x != x) return x;  // NaN stays
    return static_cast<T>(static_cast<T>(x > T{0}) - static_cast<T>(x < T{0}));
  });
}

}  // namespace

OPERATOR(Sign) = {
    .name = "Sign",
    .doc = "-1, 0 or 1 by the sign of x",
    .versions = {9, 13},
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", {{9, kNumbers}, {13, kBf16}}}},
    .infer = infer_sign,
    .reference = run_sign,
};

}  // namespace tombolo::ops
