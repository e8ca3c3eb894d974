#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/unary_exp.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/kernels/activation.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/math-inl.h"
#include "runtime/kernels/unary-inl.h"
#include "runtime/kernels/unary.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {

TOMBOLO_UNARY(row_exp, v_exp(d, x))
TOMBOLO_UNARY(row_sigmoid, v_sigmoid(d, x))
TOMBOLO_UNARY(row_tanh, v_tanh(d, x))
TOMBOLO_UNARY(row_erf, v_erf(d, x))
TOMBOLO_UNARY(row_gelu, v_gelu(d, x))
TOMBOLO_UNARY(row_gelu_tanh, v_gelu_tanh(d, x))
TOMBOLO_UNARY(row_swish, hn::Mul(x, v_sigmoid(d, hn::Mul(a, x))))
TOMBOLO_UNARY(row_softplus, v_softplus(d, x))
TOMBOLO_UNARY(row_mish, hn::Mul(x, v_tanh(d, v_softplus(d, x))))
TOMBOLO_UNARY(row_elu,
              hn::IfThenElse(hn::Lt(x, zero), hn::Mul(a, v_expm1_negative(d, hn::Min(zero, x))), x))
TOMBOLO_UNARY(row_selu,
              hn::Mul(b, hn::IfThenElse(hn::Gt(x, zero), x,
                                        hn::Mul(a, v_expm1_negative(d, hn::Min(zero, x))))))
TOMBOLO_UNARY(row_celu,
              hn::IfThenElse(hn::Gt(x, zero), x,
                             hn::Mul(a, v_expm1_negative(d, hn::Min(zero, hn::Div(x, a))))))

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

UnaryFn* exp_fn(Unary op) {
  switch (op) {
#define ROW(id, name) \
  case Unary::id:     \
    return TOMBOLO_TARGET(UnaryFn, name).get();
    ROW(kExp, row_exp)
    ROW(kSigmoid, row_sigmoid)
    ROW(kTanh, row_tanh)
    ROW(kErf, row_erf)
    ROW(kGelu, row_gelu)
    ROW(kGeluTanh, row_gelu_tanh)
    ROW(kSwish, row_swish)
    ROW(kSoftplus, row_softplus)
    ROW(kMish, row_mish)
    ROW(kElu, row_elu)
    ROW(kSelu, row_selu)
    ROW(kCelu, row_celu)
#undef ROW
    default:
      return nullptr;
  }
}

void apply_activation(const Activation& activation, float* x, int64_t n) {
  apply_activation(activation, x, n, 1, n);
}

void apply_activation(const Activation& activation, float* x, int64_t step, int64_t rows,
                      int64_t n) {
  using Kind = Activation::Kind;
  constexpr Unary kOps[] = {
      Unary::kIdentity,    Unary::kClip,      Unary::kLeakyRelu, Unary::kSigmoid, Unary::kTanh,
      Unary::kHardSigmoid, Unary::kHardSwish, Unary::kSwish,     Unary::kGelu,    Unary::kGeluTanh,
      Unary::kElu,         Unary::kSoftplus,  Unary::kMish};
  if (activation.kind == Kind::kNone) return;
  UnaryFn* const fn = unary_fn(kOps[static_cast<size_t>(activation.kind)]);
  for (int64_t r = 0; r < rows; ++r, x += step) fn(x, x, n, activation.alpha, activation.beta);
}

}  // namespace tombolo
#endif
