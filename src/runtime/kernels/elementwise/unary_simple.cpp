#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/elementwise/unary_simple.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/elementwise/unary-inl.h"
#include "runtime/kernels/elementwise/unary.h"
#include "runtime/kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {

// Min(limit, value) and Max(limit, value) in this order give the value when it is NaN.
TOMBOLO_UNARY(row_abs, hn::Abs(x))
TOMBOLO_UNARY(row_neg, hn::Neg(x))
TOMBOLO_UNARY(row_relu, hn::IfThenElse(hn::Lt(x, zero), zero, x))
TOMBOLO_UNARY(row_clip, min_of(b, max_of(a, x)))
TOMBOLO_UNARY(row_floor, hn::Floor(x))
TOMBOLO_UNARY(row_ceil, hn::Ceil(x))
TOMBOLO_UNARY(row_round, hn::Round(x))
TOMBOLO_UNARY(row_sqrt, hn::Sqrt(x))
TOMBOLO_UNARY(row_reciprocal, hn::Div(one, x))
TOMBOLO_UNARY(row_leaky_relu, hn::IfThenElse(hn::Lt(x, zero), hn::Mul(a, x), x))
TOMBOLO_UNARY(row_hard_sigmoid, min_of(one, max_of(zero, hn::MulAdd(a, x, b))))
TOMBOLO_UNARY(row_hard_swish,
              hn::Mul(x, min_of(one, max_of(zero, hn::MulAdd(x, hn::Set(d, 1.0f / 6.0f),
                                                             hn::Set(d, 0.5f))))))
TOMBOLO_UNARY(row_thresholded_relu, hn::IfThenElseZero(hn::Gt(x, a), x))
TOMBOLO_UNARY(row_softsign, hn::Div(x, hn::Add(one, hn::Abs(x))))
TOMBOLO_UNARY(row_shrink, hn::IfThenElse(hn::Lt(x, hn::Neg(a)), hn::Add(x, b),
                                         hn::IfThenElseZero(hn::Gt(x, a), hn::Sub(x, b))))
TOMBOLO_UNARY(row_square, hn::Mul(x, x))
TOMBOLO_UNARY(row_affine, hn::MulAdd(x, a, b))
TOMBOLO_UNARY(row_identity, x)
TOMBOLO_UNARY(row_sign, hn::IfThenElse(hn::Gt(x, zero), one,
                                       hn::IfThenElse(hn::Lt(x, zero), hn::Neg(one),
                                                      hn::IfThenElse(hn::IsNaN(x), x, zero))))

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {

UnaryFn* simple_fn(Unary op) {
  switch (op) {
#define ROW(id, name) \
  case Unary::id:     \
    return TOMBOLO_TARGET(UnaryFn, name).get();
    ROW(kAbs, row_abs)
    ROW(kNeg, row_neg)
    ROW(kRelu, row_relu)
    ROW(kClip, row_clip)
    ROW(kFloor, row_floor)
    ROW(kCeil, row_ceil)
    ROW(kRound, row_round)
    ROW(kSqrt, row_sqrt)
    ROW(kReciprocal, row_reciprocal)
    ROW(kLeakyRelu, row_leaky_relu)
    ROW(kHardSigmoid, row_hard_sigmoid)
    ROW(kHardSwish, row_hard_swish)
    ROW(kThresholdedRelu, row_thresholded_relu)
    ROW(kSoftsign, row_softsign)
    ROW(kShrink, row_shrink)
    ROW(kSquare, row_square)
    ROW(kAffine, row_affine)
    ROW(kIdentity, row_identity)
    ROW(kSign, row_sign)
#undef ROW
    default:
      return nullptr;
  }
}

UnaryFn* unary_fn(Unary op) {
  if (UnaryFn* fn = simple_fn(op)) return fn;
  if (UnaryFn* fn = exp_fn(op)) return fn;
  return log_fn(op);
}

}  // namespace tombolo
#endif
