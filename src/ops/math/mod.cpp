#include <cmath>

#include "ops/infer_helpers.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
SymDim python_modulo(const SymDim& a, const SymDim& b) {
  return b.constant() == 0 ? SymDim() : modulo(a, b);
}
SymDim c_modulo(const SymDim& a, const SymDim& b) {
  return b.constant() != 0 && non_negative(a) && non_negative(b) ? modulo(a, b) : SymDim();
}
Status infer_mod(InferContext& context) {
  CHECK_OK(infer_broadcast(context));
  map_elements(context, context.attributes.get_int("fmod", 0) != 0 ? c_modulo : python_modulo);
  return ok();
}
}  // namespace

namespace {

/// The remainder with the sign of the divisor, as Python's `%`; a zero result takes it too.
template <typename T>
T floored(T x, T y) {
  const T rest = std::fmod(x, y);
  if (rest == 0) return std::copysign(rest, y);
  return (rest < 0) != (y < 0) ? rest + y : rest;
}

Status run_mod(KernelContext& context) {
  CHECK_OK(refuse_zero_divisor(context, 1));
  const bool truncated = context.attributes.get_int("fmod", 0) != 0;
  return zip(context, [truncated](auto x, auto y) {
    using T = decltype(x);
    if constexpr (std::is_floating_point_v<T>) {
      return truncated ? std::fmod(x, y) : floored(x, y);
    } else if constexpr (std::is_same_v<T, int64_t>) {
      if (y == -1) return T{0};  // the least number by -1 would trap
      const T rest = x % y;
      return !truncated && rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
    } else {
      return x % y;
    }
  });
}

}  // namespace

OPERATOR(Mod) = {
    .name = "Mod",
    .doc = "remainder of a / b: sign of b (integers), or of a with fmod=1",
    .versions = {10, 13, 28},
    .inputs =
        {
            {"A", "T"},
            {"B", "T"},
        },
    .outputs = {{"C", "T"}},
    .attributes = {{"fmod", 0}},
    .types = {{"T", {{10, kNumbers}, {13, kBf16}}}},
    .infer = infer_mod,
    .reference = run_mod,
};

}  // namespace tombolo::ops
