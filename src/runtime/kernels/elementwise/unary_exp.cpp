#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/elementwise/unary_exp.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <utility>

#include "runtime/kernels/conv/activation.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/elementwise/unary-inl.h"
#include "runtime/kernels/elementwise/unary.h"
#include "runtime/kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {

TOMBOLO_GROUP_UNARY(row_exp, v_exp(d, x))
TOMBOLO_GROUP_ACTIVATION(sigmoid, v_sigmoid(d, x))
TOMBOLO_GROUP_ACTIVATION(tanh, v_tanh(d, x))
TOMBOLO_GROUP_UNARY(row_erf, v_erf(d, x))
TOMBOLO_GROUP_ACTIVATION(gelu, v_gelu(d, x))
TOMBOLO_GROUP_ACTIVATION(gelu_tanh, v_gelu_tanh(d, x))
TOMBOLO_GROUP_ACTIVATION(swish, v_swish(d, x, decltype(x)(a)))
TOMBOLO_ACTIVATION(softplus, v_softplus(d, x))
TOMBOLO_ACTIVATION(mish, v_mish(d, x))
TOMBOLO_ACTIVATION(elu, hn::IfThenElse(hn::Lt(x, zero),
                                       hn::Mul(a, v_expm1_negative(d, min_of(zero, x))), x))
TOMBOLO_UNARY(row_selu,
              hn::Mul(b, hn::IfThenElse(hn::Gt(x, zero), x,
                                        hn::Mul(a, v_expm1_negative(d, min_of(zero, x))))))
TOMBOLO_UNARY(row_celu,
              hn::IfThenElse(hn::Gt(x, zero), x,
                             hn::Mul(a, v_expm1_negative(d, min_of(zero, hn::Div(x, a))))))

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
  if (step == n) n *= std::exchange(rows, 1);  // rows without a gap are one
  using Kind = Activation::Kind;
  using TileFn = void(float*, int64_t, int64_t, int64_t, float, float);
  const auto tile = [&](TileFn* fn) { fn(x, step, rows, n, activation.alpha, activation.beta); };
  const auto each_row = [&](Unary op) {
    UnaryFn* const fn = unary_fn(op);
    for (int64_t r = 0; r < rows; ++r, x += step) fn(x, x, n, activation.alpha, activation.beta);
  };
  switch (activation.kind) {
    case Kind::kNone:
      return;
    case Kind::kClamp:
      return each_row(Unary::kClip);
    case Kind::kLeakyRelu:
      return each_row(Unary::kLeakyRelu);
    case Kind::kHardSigmoid:
      return each_row(Unary::kHardSigmoid);
    case Kind::kHardSwish:
      return each_row(Unary::kHardSwish);
#define TILE(id, name) \
  case Kind::id:       \
    return tile(TOMBOLO_TARGET(TileFn, name).get());
      TILE(kSigmoid, tile_sigmoid)
      TILE(kTanh, tile_tanh)
      TILE(kSwish, tile_swish)
      TILE(kGelu, tile_gelu)
      TILE(kGeluTanh, tile_gelu_tanh)
      TILE(kElu, tile_elu)
      TILE(kSoftplus, tile_softplus)
      TILE(kMish, tile_mish)
#undef TILE
  }
}

}  // namespace tombolo
#endif
