#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/elementwise/unary_exp.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <utility>

#include "runtime/kernels/conv/activation.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/elementwise/pieces.h"
#include "runtime/kernels/elementwise/unary-inl.h"
#include "runtime/kernels/elementwise/unary.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3
/// Pieces in registers.
class VPieces {
 public:
  HWY_INLINE explicit VPieces(const Pieces& p)
      : most_(hn::Set(F(), p.most)),
        width_(hn::Set(F(), p.width)),
        scale_(hn::Set(F(), 1 / p.width)) {
#pragma GCC unroll 8
    for (int k = 0; k <= Pieces::kDegree; ++k) {
      low_[k] = hn::Load(F(), p.coefficients[k]);
      high_[k] = hn::Load(F(), p.coefficients[k] + 16);
    }
  }

  /// |x|, or the last number there are pieces for.
  template <class X>
  HWY_INLINE X inside(X x) const {
    return gn::Min(most_, gn::Abs(x));  // NaN stays
  }
  template <class X>
  HWY_INLINE X operator()(X t) const {
    const V magic = hn::Set(F(), kExpMagic);
    const X at = gn::MulAdd(t, scale_, magic);
    const X r = gn::NegMulAdd(gn::Sub(at, magic), width_, t);
    X y = gn::LookUp(low_[Pieces::kDegree], high_[Pieces::kDegree], at);
#pragma GCC unroll 8
    for (int k = Pieces::kDegree - 1; k >= 0; --k)
      y = gn::MulAdd(y, r, gn::LookUp(low_[k], high_[k], at));
    return y;
  }

 private:
  V low_[Pieces::kDegree + 1], high_[Pieces::kDegree + 1];
  V most_, width_, scale_;
};

/// As v_gelu: x less |x| q where x is positive, with q = (1 - erf(|x| / sqrt 2)) / 2. Where x is
/// negative that is no difference.
HWY_INLINE auto gelu_of() {
  const Pieces& p = normal_tail_pieces();
  return [ pieces = VPieces(p), least = -p.most ](auto x) HWY_ATTR __attribute__((always_inline)) {
    const F d;
    using X = decltype(x);
    const X t = pieces.inside(x);
    const X y = gn::NegMulAdd(t, pieces(t), gn::Max(hn::Zero(d), x));
    if (HWY_LIKELY(!any_below(d, x, least))) return y;
    return X(gn::IfThenElse(gn::Lt(x, X(hn::Set(d, least))), v_gelu(d, x), y));
  };
}

/// As v_erf.
HWY_INLINE auto erf_of() {
  return [pieces = VPieces(erf_pieces())](auto x) HWY_ATTR __attribute__((always_inline)) {
    using X = decltype(x);
    return X(gn::CopySign(pieces(pieces.inside(x)), x));
  };
}
#else
HWY_INLINE auto gelu_of() {
  return [](auto x) HWY_ATTR __attribute__((always_inline)) { return v_gelu(F(), x); };
}
HWY_INLINE auto erf_of() {
  return [](auto x) HWY_ATTR __attribute__((always_inline)) { return v_erf(F(), x); };
}
#endif

void row_erf(const float* in, float* out, int64_t n, float, float) {
  map_row(in, out, n, erf_of());
}
void row_gelu(const float* in, float* out, int64_t n, float, float) {
  map_row(in, out, n, gelu_of());
}
void tile_gelu(float* rows, int64_t step, int64_t count, int64_t n, float, float) {
  const auto gelu = gelu_of();
  for (; count > 0; --count, rows += step) map_row(rows, rows, n, gelu);
}

TOMBOLO_GROUP_UNARY(row_exp, v_exp(d, x))
TOMBOLO_GROUP_ACTIVATION(sigmoid, v_sigmoid(d, x))
TOMBOLO_GROUP_ACTIVATION(sigmoid_divided, v_sigmoid<true>(d, x))
TOMBOLO_GROUP_ACTIVATION(tanh, v_tanh(d, x))
TOMBOLO_GROUP_ACTIVATION(tanh_divided, v_tanh<true>(d, x))
TOMBOLO_GROUP_ACTIVATION(gelu_tanh, v_gelu_tanh(d, x))
TOMBOLO_GROUP_ACTIVATION(gelu_tanh_divided, v_gelu_tanh<true>(d, x))
TOMBOLO_GROUP_ACTIVATION(swish, v_swish(d, x, decltype(x)(a)))
TOMBOLO_GROUP_ACTIVATION(swish_divided, v_swish<true>(d, x, decltype(x)(a)))
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
#define QUOTIENT(id, name)                                           \
  case Unary::id:                                                    \
    return (divides_fast() ? TOMBOLO_TARGET(UnaryFn, name##_divided) \
                           : TOMBOLO_TARGET(UnaryFn, name))          \
        .get();
    QUOTIENT(kSigmoid, row_sigmoid)
    QUOTIENT(kTanh, row_tanh)
    QUOTIENT(kGeluTanh, row_gelu_tanh)
    QUOTIENT(kSwish, row_swish)
    ROW(kExp, row_exp)
    ROW(kErf, row_erf)
    ROW(kGelu, row_gelu)
    ROW(kSoftplus, row_softplus)
    ROW(kMish, row_mish)
    ROW(kElu, row_elu)
    ROW(kSelu, row_selu)
    ROW(kCelu, row_celu)
#undef QUOTIENT
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
#define QUOTIENT(id, name)                                                                       \
  case Kind::id:                                                                                 \
    return tile(                                                                                 \
        (divides_fast() ? TOMBOLO_TARGET(TileFn, name##_divided) : TOMBOLO_TARGET(TileFn, name)) \
            .get());
      QUOTIENT(kSigmoid, tile_sigmoid)
      QUOTIENT(kTanh, tile_tanh)
      QUOTIENT(kSwish, tile_swish)
      QUOTIENT(kGeluTanh, tile_gelu_tanh)
      TILE(kGelu, tile_gelu)
      TILE(kElu, tile_elu)
      TILE(kSoftplus, tile_softplus)
      TILE(kMish, tile_mish)
#undef QUOTIENT
#undef TILE
  }
}

}  // namespace tombolo
#endif
