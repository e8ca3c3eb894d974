#include "formats/pytorch/aten/complex.h"

#include <cmath>

namespace tombolo::pytorch {

Value* sign_bit_proxy(AtenContext& c, Value* x) {
  // 1/-0 is -inf: the only place where the sign of zero shows.
  Value* zero = c.op("Equal", {x, c.like(0, x)});
  return c.where(zero, c.op("Reciprocal", {x}), x);
}

Value* atan2_values(AtenContext& c, Value* y, Value* x) {
  Value* zero = c.like(0, y);
  Value* x_is_zero = c.op("Equal", {x, zero});
  Value* both_infinite = c.op("And", {c.op("IsInf", {x}), c.op("IsInf", {y})});
  Value* ratio = c.div(y, c.where(x_is_zero, c.like(1, y), x));
  Value* unit = c.mul(c.op("Sign", {y}), c.op("Sign", {x}));
  Value* base = c.op("Atan", {c.where(both_infinite, unit, ratio)});
  Value* x_negative = c.op("Less", {sign_bit_proxy(c, x), zero});
  Value* y_negative = c.op("Less", {sign_bit_proxy(c, y), zero});
  Value* pi = c.like(M_PI, y);
  Value* half = c.like(M_PI / 2, y);
  Value* turned = c.add(base, c.where(y_negative, c.op("Neg", {pi}), pi));
  Value* plain = c.where(x_negative, turned, base);
  // On the axis x = 0: a quarter turn, or 0 and pi for y = 0 by the signs of the zeros.
  Value* signed_half = c.where(y_negative, c.op("Neg", {half}), half);
  Value* signed_pi = c.where(y_negative, c.op("Neg", {pi}), pi);
  Value* origin = c.where(x_negative, signed_pi, y);
  Value* on_axis = c.where(c.op("Equal", {y, zero}), origin, signed_half);
  Value* y_zero_x_negative =
      c.op("And", {c.op("Equal", {y, zero}), c.op("And", {x_negative, c.op("Not", {x_is_zero})})});
  Value* result = c.where(x_is_zero, on_axis, plain);
  result = c.where(y_zero_x_negative, signed_pi, result);
  return c.where(c.op("IsNaN", {c.add(x, y)}), c.where(both_infinite, result, c.add(x, y)), result);
}

namespace {

Value* complex_sqrt(AtenContext& c, Value* z) {
  Value *x = c.re(z), *y = c.im(z), *r = complex_abs(c, z);
  Value* half = c.like(0.5, x);
  Value* zero = c.like(0, x);
  // The larger component first; the other by division, so that nothing cancels.
  Value* big = c.op("Sqrt", {c.mul(half, c.add(r, c.op("Abs", {x})))});
  Value* none = c.op("Equal", {big, zero});
  Value* small = c.div(c.mul(half, c.op("Abs", {y})), c.where(none, c.like(1, x), big));
  Value* right = c.op("GreaterOrEqual", {x, zero});
  Value* re = c.where(right, big, small);
  Value* im = c.where(right, small, big);
  Value* negative = c.op("Less", {sign_bit_proxy(c, y), zero});
  return c.pair(re, c.where(negative, c.op("Neg", {im}), im));
}

Value* times_i(AtenContext& c, Value* z) { return c.pair(c.op("Neg", {c.im(z)}), c.re(z)); }
Value* times_minus_i(AtenContext& c, Value* z) { return c.pair(c.im(z), c.op("Neg", {c.re(z)})); }

Value* plus_real(AtenContext& c, Value* z, double number) {
  return c.pair(c.add(c.re(z), c.like(number, z)), c.im(z));
}

Value* sinh_z(AtenContext& c, Value* z) {
  Value *x = c.re(z), *y = c.im(z);
  return c.pair(c.mul(c.op("Sinh", {x}), c.op("Cos", {y})),
                c.mul(c.op("Cosh", {x}), c.op("Sin", {y})));
}
Value* cosh_z(AtenContext& c, Value* z) {
  Value *x = c.re(z), *y = c.im(z);
  return c.pair(c.mul(c.op("Cosh", {x}), c.op("Cos", {y})),
                c.mul(c.op("Sinh", {x}), c.op("Sin", {y})));
}
Value* tanh_z(AtenContext& c, Value* z) {
  // tanh(x+iy) = (tanh x (1 + tan^2 y) + i tan y (1 - tanh^2 x)) / (1 + tanh^2 x tan^2 y)
  Value *t = c.op("Tanh", {c.re(z)}), *u = c.op("Tan", {c.im(z)});
  Value* one = c.like(1, t);
  Value *tt = c.mul(t, t), *uu = c.mul(u, u);
  Value* below = c.add(one, c.mul(tt, uu));
  return c.pair(c.div(c.mul(t, c.add(one, uu)), below), c.div(c.mul(u, c.sub(one, tt)), below));
}
Value* asinh_z(AtenContext& c, Value* z) {
  // For negative real parts by symmetry: the formula cancels there.
  Value* negative = c.unsqueeze(c.op("Less", {c.re(z), c.like(0, z)}), {-1});
  Value* w = c.where(negative, c.op("Neg", {z}), z);
  Value* root = complex_sqrt(c, plus_real(c, complex_mul(c, w, w), 1));
  Value* plain = complex_log(c, c.add(w, root));
  return c.where(negative, c.op("Neg", {plain}), plain);
}
Value* atanh_z(AtenContext& c, Value* z) {
  Value* above = complex_log(c, plus_real(c, z, 1));
  Value* below = complex_log(c, plus_real(c, c.op("Neg", {z}), 1));
  return c.mul(c.sub(above, below), c.like(0.5, z));
}
Value* acosh_z(AtenContext& c, Value* z) {
  Value* root =
      complex_mul(c, complex_sqrt(c, plus_real(c, z, 1)), complex_sqrt(c, plus_real(c, z, -1)));
  return complex_log(c, c.add(z, root));
}
Value* acos_z(AtenContext& c, Value* z) {
  // pi/2 - asin(z), with asin(z) = -i asinh(iz)
  Value* asin = times_minus_i(c, asinh_z(c, times_i(c, z)));
  return plus_real(c, c.op("Neg", {asin}), M_PI / 2);
}

Value* unary(AtenContext& c, std::string_view name, Value* z) {
  if (name == "Exp") return complex_exp(c, z);
  if (name == "Log") return complex_log(c, z);
  if (name == "Sqrt") return complex_sqrt(c, z);
  if (name == "Reciprocal" || name == "Rsqrt") {
    Value* w = name == "Rsqrt" ? complex_sqrt(c, z) : z;
    return complex_div(c, c.to_complex(c.like(1, w), c.dtype(w)), w);
  }
  if (name == "Sinh") return sinh_z(c, z);
  if (name == "Cosh") return cosh_z(c, z);
  if (name == "Tanh") return tanh_z(c, z);
  if (name == "Sin") return times_minus_i(c, sinh_z(c, times_i(c, z)));
  if (name == "Cos") return cosh_z(c, times_i(c, z));
  if (name == "Tan") return times_minus_i(c, tanh_z(c, times_i(c, z)));
  if (name == "Asinh") return asinh_z(c, z);
  if (name == "Acosh") return acosh_z(c, z);
  if (name == "Atanh") return atanh_z(c, z);
  if (name == "Asin") return times_minus_i(c, asinh_z(c, times_i(c, z)));
  if (name == "Acos") return acos_z(c, z);
  if (name == "Atan") return times_minus_i(c, atanh_z(c, times_i(c, z)));
  if (name == "Exp2") return complex_exp(c, c.mul(z, c.like(M_LN2, z)));
  if (name == "Expm1") {
    // exp(x)cos(y) - 1 = expm1(x)cos(y) - 2 sin(y/2)^2
    Value *x = c.re(z), *y = c.im(z), *half = c.mul(x, c.like(0.5, x));
    Value* em1 = c.mul(c.mul(c.like(2, x), c.op("Exp", {half})), c.op("Sinh", {half}));
    Value* s = c.op("Sin", {c.mul(y, c.like(0.5, y))});
    Value* re = c.sub(c.mul(em1, c.op("Cos", {y})), c.mul(c.like(2, x), c.mul(s, s)));
    return c.pair(re, c.mul(c.op("Exp", {x}), c.op("Sin", {y})));
  }
  if (name == "Log2") return c.mul(complex_log(c, z), c.like(1.4426950408889634, z));
  if (name == "Log10") return c.mul(complex_log(c, z), c.like(0.43429448190325182, z));
  if (name == "Log1p") return complex_log(c, plus_real(c, z, 1));
  if (name == "Sigmoid") {
    Value* below = plus_real(c, complex_exp(c, c.op("Neg", {z})), 1);
    return complex_div(c, c.to_complex(c.like(1, z), c.dtype(z)), below);
  }
  if (name == "Sgn" || name == "Sign") {
    Value* r = complex_abs(c, z);
    Value* none = c.op("Equal", {r, c.like(0, r)});
    return c.div(z, c.unsqueeze(c.where(none, c.like(1, r), r), {-1}));
  }
  if (name == "Sinc") {
    Value* zero = c.op("Equal", {complex_abs(c, z), c.like(0, z)});
    Value* t = c.mul(z, c.like(M_PI, z));
    Value* s = times_minus_i(c, sinh_z(c, times_i(c, t)));
    Value* one = c.to_complex(c.like(1, z), c.dtype(z));
    zero = c.unsqueeze(zero, {-1});
    return c.where(zero, one, complex_div(c, s, c.where(zero, one, t)));
  }
  return nullptr;
}

}  // namespace

void complex_unary(AtenContext& c) {
  Value* result = unary(c, c.detail(), c.x("self"));
  if (!result) return c.refuse("complex numbers in " + std::string(c.name()));
  c.out(result, c.type("self"));
}

Value* complex_abs(AtenContext& c, Value* z) {
  // Scaled, so that squares neither overflow nor vanish.
  Value *x = c.op("Abs", {c.re(z)}), *y = c.op("Abs", {c.im(z)});
  Value *high = c.op("Max", {x, y}), *low = c.op("Min", {x, y});
  Value* none = c.op("Equal", {high, c.like(0, high)});
  Value* ratio = c.div(low, c.where(none, c.like(1, high), high));
  return c.mul(high, c.op("Sqrt", {c.add(c.like(1, ratio), c.mul(ratio, ratio))}));
}

Value* complex_conj(AtenContext& c, Value* z) {
  const DType type = c.dtype(z);
  const int64_t two[] = {2};
  auto signs = Tensor::allocate(type, two);
  if (!signs) return z;
  signs->set_double(0, 1);
  signs->set_double(1, -1);
  return c.mul(z, c.b.constant(*signs, "conj"));
}

Value* complex_mul(AtenContext& c, Value* a, Value* y) {
  Value *ar = c.re(a), *ai = c.im(a), *br = c.re(y), *bi = c.im(y);
  return c.pair(c.sub(c.mul(ar, br), c.mul(ai, bi)), c.add(c.mul(ar, bi), c.mul(ai, br)));
}

Value* complex_div(AtenContext& c, Value* a, Value* y) {
  Value *br = c.re(y), *bi = c.im(y);
  Value* below = c.add(c.mul(br, br), c.mul(bi, bi));
  return c.div(complex_mul(c, a, complex_conj(c, y)), c.unsqueeze(below, {-1}));
}

Value* complex_exp(AtenContext& c, Value* z) {
  Value *scale = c.op("Exp", {c.re(z)}), *y = c.im(z);
  return c.pair(c.mul(scale, c.op("Cos", {y})), c.mul(scale, c.op("Sin", {y})));
}

Value* complex_log(AtenContext& c, Value* z) {
  return c.pair(c.op("Log", {complex_abs(c, z)}), atan2_values(c, c.im(z), c.re(z)));
}

Value* complex_broadcast(AtenContext& c, Text type, Value* a, Value* y) {
  return c.op(type, {a, y});
}

void complex_power(AtenContext& c, DType type) {
  Value *a = c.operand("self", type), *e = c.operand("exponent", type);
  const Arg& exponent = c.arg("exponent");
  if (exponent.kind == Arg::Kind::kInt && exponent.integer.is_number()) {
    // Whole powers by multiplying: exact where the logarithm is not.
    int64_t n = exponent.integer.dim.value();
    if (n >= -8 && n <= 8 && n != 0) {
      Value* result = a;
      for (int64_t i = 1; i < std::abs(n); ++i) result = complex_mul(c, result, a);
      if (n < 0) result = complex_div(c, c.to_complex(c.like(1, a), c.dtype(a)), result);
      return c.out(result, type);
    }
  }
  Value* result = complex_exp(c, complex_mul(c, e, complex_log(c, a)));
  // 0 ** 0 is 1, 0 ** e is 0: the logarithm knows neither.
  Value* a_zero = c.unsqueeze(c.op("Equal", {complex_abs(c, a), c.like(0, a)}), {-1});
  Value* e_zero = c.unsqueeze(c.op("Equal", {complex_abs(c, e), c.like(0, e)}), {-1});
  Value* one = c.to_complex(c.like(1, a), c.dtype(a));
  result = c.where(a_zero, c.mul(one, c.like(0, a)), result);
  c.out(c.where(e_zero, one, result), type);
}

}  // namespace tombolo::pytorch
