// Arithmetic and elementwise functions.

#include <cmath>

#include "formats/pytorch/aten/complex.h"
#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

/// sin, exp, ...: integers become floats.
void unary_float(C& c) {
  if (c.is_complex("self")) return complex_unary(c);
  c.out(c.op(c.detail(), {c.operand("self", c.promote({"self"}, Promotion::kIntToFloat))}));
}

/// floor, relu, ...: integers stay what they are.
void unary_same(C& c) {
  if (c.is_complex("self")) return complex_unary(c);
  Value* x = c.x("self");
  if (is_integer(c.dtype(x)) || c.dtype(x) == DType::kBool) {
    const std::string_view op = c.detail();
    if (op == "Floor" || op == "Ceil" || op == "Round") return c.out(x);
    // ONNX has Neg, Sign and Abs of signed integers of every width.
  }
  c.out(c.op(c.detail(), {x}));
}

void negative(C& c) {
  Value* x = c.x("self");
  if (is_unsigned_integer(c.dtype(x))) return c.out(c.sub(c.like(0, x), x));
  c.out(c.op("Neg", {x}), c.type("self"));
}

void absolute(C& c) {
  if (c.is_complex("self")) return c.out(complex_abs(c, c.x("self")));
  c.out(c.dtype(c.x("self")) == DType::kBool ? c.x("self") : c.op("Abs", {c.x("self")}));
}

void sign(C& c) {
  if (c.is_complex("self")) return complex_unary(c);
  Value* x = c.x("self");
  c.out(c.dtype(x) == DType::kBool ? x : c.op("Sign", {x}));
}

void rsqrt(C& c) {
  if (c.is_complex("self")) return complex_unary(c);
  c.out(c.op("Reciprocal",
             {c.op("Sqrt", {c.operand("self", c.promote({"self"}, Promotion::kIntToFloat))})}));
}

/// A function that is said by a formula in f(x).
template <Value* (*kFormula)(C&, Value*)>
void formula(C& c) {
  if (c.is_complex("self")) return complex_unary(c);
  const DType type = c.promote({"self"}, Promotion::kIntToFloat);
  // Rounded once: each step in few bits would add its own error.
  const bool narrow = bits_of(type) < 32;
  c.out(c.cast(kFormula(c, c.operand("self", narrow ? DType::kFloat32 : type)), type));
}
Value* f_exp2(C& c, Value* x) { return c.op("Pow", {c.like(2, x), x}); }
Value* f_expm1(C& c, Value* x) {
  // 2 * exp(x/2) * sinh(x/2) keeps the digits that exp(x) - 1 loses near zero. It is -1 long before
  // the one factor is nothing and the other one infinite.
  Value* least = c.like(c.dtype(x) == DType::kFloat16 ? -16 : -50, x);
  Value* half = c.mul(c.op("Max", {x, least}), c.like(0.5, x));
  return c.mul(c.mul(c.like(2, x), c.op("Exp", {half})), c.op("Sinh", {half}));
}
Value* f_log2(C& c, Value* x) { return c.mul(c.op("Log", {x}), c.like(1.4426950408889634, x)); }
Value* f_log10(C& c, Value* x) { return c.mul(c.op("Log", {x}), c.like(0.43429448190325182, x)); }
Value* f_log1p(C& c, Value* x) {
  // x * log(u) / (u - 1) with u = 1 + x, and x where u is 1.
  Value* one = c.like(1, x);
  Value* u = c.add(x, one);
  Value* d = c.sub(u, one);
  Value* flat = c.op("Equal", {d, c.like(0, x)});
  Value* inf = c.op("IsInf", {u});
  Value* log = c.op("Log", {u});
  Value* q = c.mul(log, c.div(x, c.where(flat, one, d)));
  return c.where(inf, log, c.where(flat, x, q));
}
Value* f_erfc(C& c, Value* x) { return c.sub(c.like(1, x), c.op("Erf", {x})); }
Value* f_frac(C& c, Value* x) {
  return c.sub(x, c.mul(c.op("Sign", {x}), c.op("Floor", {c.op("Abs", {x})})));
}
Value* f_deg2rad(C& c, Value* x) { return c.mul(x, c.like(M_PI / 180, x)); }
Value* f_rad2deg(C& c, Value* x) { return c.mul(x, c.like(180 / M_PI, x)); }
Value* f_sinc(C& c, Value* x) {
  Value* zero = c.op("Equal", {x, c.like(0, x)});
  Value* t = c.mul(x, c.like(M_PI, x));
  Value* q = c.div(c.op("Sin", {t}), c.where(zero, c.like(1, x), t));
  return c.where(zero, c.like(1, x), q);
}
Value* f_logit_plain(C& c, Value* x) { return c.op("Log", {c.div(x, c.sub(c.like(1, x), x))}); }
Value* f_entr(C& c, Value* x) {
  Value* zero = c.like(0, x);
  Value* positive = c.op("Greater", {x, zero});
  Value* safe = c.where(positive, x, c.like(1, x));
  Value* plain = c.op("Neg", {c.mul(x, c.op("Log", {safe}))});
  Value* below = c.where(c.op("Equal", {x, zero}), zero, c.like(-INFINITY, x));
  Value* result = c.where(positive, plain, below);
  return c.where(c.op("IsNaN", {x}), x, result);
}
Value* f_ndtr(C& c, Value* x) {
  Value* t = c.mul(x, c.like(M_SQRT1_2, x));
  return c.mul(c.like(0.5, x), c.add(c.like(1, x), c.op("Erf", {t})));
}

void trunc(C& c) {
  Value* x = c.x("self");
  if (!is_float(c.dtype(x))) return c.out(x);
  c.out(c.where(c.op("Less", {x, c.like(0, x)}), c.op("Ceil", {x}), c.op("Floor", {x})));
}

void square(C& c) {
  if (c.is_complex("self")) return c.out(complex_mul(c, c.x("self"), c.x("self")), c.type("self"));
  Value* x = c.x("self");
  if (c.dtype(x) == DType::kBool) x = c.cast(x, DType::kInt64);
  c.out(c.mul(x, x));
}

void round_decimals(C& c) {
  Value* x = c.x("self");
  const double scale = std::pow(10.0, std::abs(static_cast<double>(c.integer("decimals"))));
  if (!is_float(c.dtype(x))) return c.out(x);
  Value* by = c.like(scale, x);
  if (c.integer("decimals") >= 0) return c.out(c.div(c.op("Round", {c.mul(x, by)}), by));
  c.out(c.mul(c.op("Round", {c.div(x, by)}), by));
}

void logit(C& c) {
  Value* x = c.operand("self", c.promote({"self"}, Promotion::kIntToFloat));
  if (c.given("eps")) {
    const double eps = c.real("eps");
    Value *low = c.like(eps, x), *high = c.like(1 - eps, x);
    if (eps <= 0.5) {
      x = c.op("Clip", {x, low, high});
    } else {
      // The limits cross: the lower one is asked first.
      Value* below = c.where(c.op("Greater", {x, high}), high, x);
      x = c.where(c.op("Less", {x, low}), low, below);
    }
  }
  c.out(f_logit_plain(c, x));
}

// ---- binary ----

/// add and sub: self + alpha * other.
void add_sub(C& c) {
  const DType type = c.promote({"self", "other"});
  const bool complex = is_complex(type), subtract = std::string_view(c.detail()) == "Sub";
  std::string_view first = "self", second = "other";
  if (c.name().starts_with("rsub")) std::swap(first, second);
  Value *a = c.operand(first, type), *y = c.operand(second, type);
  if (type == DType::kBool) return c.out(c.op("Or", {a, y}));
  const Arg& alpha = c.arg("alpha");
  const bool unit = (alpha.kind == Arg::Kind::kInt && alpha.integer.is(1)) || alpha.is_none() ||
                    (alpha.kind == Arg::Kind::kFloat && !alpha.computed && alpha.real == 1) ||
                    (alpha.kind == Arg::Kind::kBool && alpha.integer.is(1));
  if (!unit) {
    y = complex ? complex_mul(c, y, c.operand_of(alpha, type))
                : c.mul(y, c.operand_of(alpha, type));
  }
  c.out(complex ? complex_broadcast(c, subtract ? "Sub" : "Add", a, y)
                : c.op(subtract ? "Sub" : "Add", {a, y}),
        type);
}

void multiply(C& c) {
  const DType type = c.promote({"self", "other"});
  Value *a = c.operand("self", type), *y = c.operand("other", type);
  if (is_complex(type)) return c.out(complex_mul(c, a, y), type);
  c.out(c.op(type == DType::kBool ? "And" : "Mul", {a, y}));
}

Value* floor_divide_values(C& c, Value* a, Value* y) {
  if (is_float(c.dtype(a))) {
    // Python's floor division of floats: from the remainder, so that it stays exact.
    Value* quotient = c.op("Floor", {c.div(a, y)});
    Value* remainder = c.op("Mod", {a, y}, {{"fmod", 1}});
    Value* zero = c.like(0, a);
    Value* exact = c.div(c.sub(a, remainder), y);
    Value* off =
        c.op("And", {c.op("Not", {c.op("Equal", {remainder, zero})}),
                     c.op("Xor", {c.op("Less", {y, zero}), c.op("Less", {remainder, zero})})});
    Value* lowered = c.where(off, c.sub(exact, c.like(1, a)), exact);
    Value* floored = c.op("Floor", {lowered});
    Value* gap = c.op("Greater", {c.sub(lowered, floored), c.like(0.5, a)});
    Value* rounded = c.where(gap, c.add(floored, c.like(1, a)), floored);
    return c.where(c.op("Equal", {y, zero}), quotient, rounded);
  }
  if (is_unsigned_integer(c.dtype(a))) return c.div(a, y);
  // ONNX's integer Div truncates; step down where signs differ and a remainder is left.
  Value* quotient = c.div(a, y);
  Value* left = c.sub(a, c.mul(quotient, y));
  Value* zero = c.like(0, a);
  Value* off = c.op("And", {c.op("Not", {c.op("Equal", {left, zero})}),
                            c.op("Xor", {c.op("Less", {left, zero}), c.op("Less", {y, zero})})});
  return c.where(off, c.sub(quotient, c.like(1, a)), quotient);
}

Value* trunc_divide_values(C& c, Value* a, Value* y) {
  if (!is_float(c.dtype(a))) return c.div(a, y);
  Value* q = c.div(a, y);
  return c.where(c.op("Less", {q, c.like(0, q)}), c.op("Ceil", {q}), c.op("Floor", {q}));
}

void true_divide(C& c) {
  const DType type = c.promote({"self", "other"}, Promotion::kIntToFloat);
  Value *a = c.operand("self", type), *y = c.operand("other", type);
  if (is_complex(type)) return c.out(complex_div(c, a, y), type);
  c.out(c.div(a, y));
}

void divide_mode(C& c) {
  if (!c.given("rounding_mode")) return true_divide(c);
  const DType type = c.promote({"self", "other"});
  Value *a = c.operand("self", type), *y = c.operand("other", type);
  c.out(c.text("rounding_mode") == "floor" ? floor_divide_values(c, a, y)
                                           : trunc_divide_values(c, a, y));
}

void floor_divide(C& c) {
  const DType type = c.promote({"self", "other"});
  c.out(floor_divide_values(c, c.operand("self", type), c.operand("other", type)));
}

void remainder(C& c) {
  const DType type = c.promote({"self", "other"});
  Value *a = c.operand("self", type), *y = c.operand("other", type);
  if (!is_float(type)) return c.out(c.op("Mod", {a, y}));
  // The sign is the divisor's.
  Value* m = c.op("Mod", {a, y}, {{"fmod", 1}});
  Value* zero = c.like(0, m);
  Value* off = c.op("And", {c.op("Not", {c.op("Equal", {m, zero})}),
                            c.op("Xor", {c.op("Less", {m, zero}), c.op("Less", {y, zero})})});
  c.out(c.where(off, c.add(m, y), m));
}

void fmod(C& c) {
  const DType type = c.promote({"self", "other"});
  c.out(c.op("Mod", {c.operand("self", type), c.operand("other", type)}, {{"fmod", 1}}));
}

void power(C& c) {
  const DType type = c.promote({"self", "exponent"});
  if (is_complex(type)) return complex_power(c, type);
  const Arg& exponent = c.arg("exponent");
  Value* a = c.operand("self", type);
  if (exponent.is_number() && !exponent.computed) {
    const double e = exponent.kind == Arg::Kind::kFloat
                         ? exponent.real
                         : static_cast<double>(exponent.integer.dim.constant().value_or(-99));
    if (e == 1) return c.out(a);
    if (e == 2) return c.out(c.mul(a, a));
    if (is_float(type)) {
      if (e == 0.5) return c.out(c.op("Sqrt", {a}));
      if (e == -1) return c.out(c.op("Reciprocal", {a}));
      if (e == -0.5) return c.out(c.op("Reciprocal", {c.op("Sqrt", {a})}));
    }
  }
  if (type == DType::kBool || is_unsigned_integer(type) || type == DType::kInt8 ||
      type == DType::kInt16) {
    const DType wide = DType::kInt64;
    return c.out(c.cast(c.op("Pow", {c.cast(a, wide), c.operand("exponent", wide)}), type));
  }
  c.out(c.op("Pow", {a, c.operand("exponent", type)}));
}

void float_power(C& c) {
  if (is_complex(c.promote({"self", "exponent"}))) return complex_power(c, DType::kComplex128);
  c.out(c.op("Pow", {c.operand("self", DType::kFloat64), c.operand("exponent", DType::kFloat64)}));
}

/// maximum, minimum: NaN wins, as in ONNX's Max and Min.
void max_min(C& c) {
  const DType type = c.promote({"self", "other"});
  Value *a = c.operand("self", type), *y = c.operand("other", type);
  if (type == DType::kBool)
    return c.out(c.op(std::string_view(c.detail()) == "Max" ? "Or" : "And", {a, y}));
  c.out(c.op(c.detail(), {a, y}));
}

/// fmax, fmin: NaN loses.
void fmax_fmin(C& c) {
  const DType type = c.promote({"self", "other"});
  Value *a = c.operand("self", type), *y = c.operand("other", type);
  if (!is_float(type)) return c.out(c.op(c.detail(), {a, y}));
  Value* plain = c.op(c.detail(), {a, y});
  Value* without = c.where(c.op("IsNaN", {y}), a, plain);
  c.out(c.where(c.op("IsNaN", {a}), y, without));
}

void clamp(C& c) {
  Args all = {c.arg("self")};
  for (const char* bound : {"min", "max"})
    if (c.given(bound)) all.push_back(c.arg(bound));
  const DType type = c.promote(all);
  Value* x = c.operand("self", type);
  const auto bound = [&](const char* name) -> Value* {
    return c.has_arg(name) && c.given(name) ? c.operand(name, type) : nullptr;
  };
  Value *low = bound("min"), *high = bound("max");
  const auto is_scalar = [&](Value* v) { return v == nullptr || c.rank(v) == 0; };
  if (type != DType::kBool && is_scalar(low) && is_scalar(high) && (low || high))
    return c.out(c.op("Clip", {x, low, high}));
  if (low) x = c.op("Max", {x, low});
  if (high) x = c.op("Min", {x, high});
  c.out(x);
}

void atan2(C& c) {
  const DType type = c.promote({"self", "other"}, Promotion::kIntToFloat);
  c.out(atan2_values(c, c.operand("self", type), c.operand("other", type)));
}

void hypot(C& c) {
  const DType type = c.promote({"self", "other"}, Promotion::kIntToFloat);
  Value *a = c.op("Abs", {c.operand("self", type)}), *y = c.op("Abs", {c.operand("other", type)});
  // Scaled by the larger one, so that squares do not overflow.
  Value *high = c.op("Max", {a, y}), *low = c.op("Min", {a, y});
  Value* zero = c.op("Equal", {high, c.like(0, high)});
  Value* ratio = c.div(low, c.where(zero, c.like(1, high), high));
  Value* root = c.op("Sqrt", {c.add(c.like(1, ratio), c.mul(ratio, ratio))});
  // An infinite side outweighs NaN too.
  Value* infinite = c.op("Or", {c.op("IsInf", {a}), c.op("IsInf", {y})});
  c.out(c.where(infinite, c.like(INFINITY, high), c.mul(high, root)));
}

/// The next number towards the other: one step of the bits, which are ordered by magnitude.
void nextafter(C& c) {
  const DType type = c.promote({"self", "other"});
  Value *x = c.operand("self", type), *y = c.operand("other", type);
  const size_t size = bytes_of(type);
  const DType whole = size == 8 ? DType::kInt64 : size == 2 ? DType::kInt16 : DType::kInt32;
  const auto bits = [&](Value* v, DType to) {
    return c.op("BitCast", {v}, {{"to", static_cast<int64_t>(to)}});
  };
  Value *zero = c.like(0, x), *one = c.scalar(1, whole);
  Value* outwards = c.op("Equal", {c.op("Greater", {y, x}), c.op("Greater", {x, zero})});
  Value* stepped = bits(c.add(bits(x, whole), c.where(outwards, one, c.scalar(-1, whole))), type);
  // From 0 to the smallest number of the other's sign.
  Value* least = bits(one, type);
  Value* from_zero = c.where(c.op("Greater", {y, zero}), least, c.op("Neg", {least}));
  Value* moved = c.where(c.op("Equal", {x, zero}), from_zero, stepped);
  Value* unknown = c.op("Or", {c.op("IsNaN", {x}), c.op("IsNaN", {y})});
  c.out(c.where(unknown, c.add(x, y), c.where(c.op("Equal", {x, y}), y, moved)));
}

void copysign(C& c) {
  const DType type = c.promote({"self", "other"}, Promotion::kIntToFloat);
  Value *a = c.op("Abs", {c.operand("self", type)}), *y = c.operand("other", type);
  Value* negative_one = c.op("Less", {sign_bit_proxy(c, y), c.like(0, y)});
  c.out(c.where(negative_one, c.op("Neg", {a}), a));
}

void logaddexp(C& c) {
  const bool base2 = c.name() == "logaddexp2";
  const DType type = c.promote({"self", "other"}, Promotion::kIntToFloat);
  Value *a = c.operand("self", type), *y = c.operand("other", type);
  if (is_complex(type)) {
    if (base2) return c.refuse("complex logaddexp2");
    // large + log(1 + exp(small - large)), by their real parts: the angle is not brought back to
    // one turn.
    Value* first = c.op("GreaterOrEqual", {c.re(a), c.re(y)});
    Value *large = c.where(first, c.re(a), c.re(y)), *angle = c.where(first, c.im(a), c.im(y));
    Value* less = c.sub(c.where(first, c.re(y), c.re(a)), large);
    Value* turn = c.sub(c.where(first, c.im(y), c.im(a)), angle);
    Value* power = c.lower("exp", {Arg(c.cell(c.pair(less, turn), type))});
    Value* sum = c.pair(c.add(c.re(power), c.like(1, less)), c.im(power));
    Value* log = c.lower("log", {Arg(c.cell(sum, type))});
    return c.out(c.pair(c.add(c.re(log), large), c.add(c.im(log), angle)), type);
  }
  Value* high = c.op("Max", {a, y});
  Value* gap = c.op("Neg", {c.op("Abs", {c.sub(a, y)})});
  if (base2) gap = c.mul(gap, c.like(M_LN2, gap));
  Value* tail = c.op("Log", {c.add(c.like(1, gap), c.op("Exp", {gap}))});
  if (base2) tail = c.mul(tail, c.like(1.4426950408889634, gap));
  // Two equal infinities: their difference is NaN, the answer is the infinity.
  Value* infinite = c.op("And", {c.op("Equal", {a, y}), c.op("IsInf", {a})});
  c.out(c.where(infinite, a, c.add(high, tail)));
}

/// xlogy and xlog1py: 0 where x is 0, whatever y is, except NaN.
void xlogy(C& c) {
  const DType type = c.promote({"self", "other"}, Promotion::kIntToFloat);
  Value *a = c.operand("self", type), *y = c.operand("other", type);
  Value* log = std::string_view(c.detail()) == "log1p" ? f_log1p(c, y) : c.op("Log", {y});
  Value* zero = c.op("And", {c.op("Equal", {a, c.like(0, a)}), c.op("Not", {c.op("IsNaN", {y})})});
  c.out(c.where(zero, c.like(0, a), c.mul(a, log)));
}

void ldexp(C& c) {
  const DType type = c.promote({"self", "other"}, Promotion::kIntToFloat);
  if (is_complex(type)) return c.refuse("complex ldexp");
  Value* x = c.operand("self", type);
  c.out(c.mul(x, c.op("Pow", {c.like(2, x), c.operand("other", type)})));
}

void lerp(C& c) {
  const DType type = c.promote({"self", "end"});
  Value *a = c.operand("self", type), *y = c.operand("end", type), *w = c.operand("weight", type);
  if (is_complex(type))
    return c.out(
        complex_broadcast(c, "Add", a, complex_mul(c, complex_broadcast(c, "Sub", y, a), w)), type);
  c.out(c.add(a, c.mul(w, c.sub(y, a))));
}

void addcmul(C& c) {
  const DType type = c.promote({"self", "tensor1", "tensor2"});
  Value *a = c.operand("self", type), *t1 = c.operand("tensor1", type),
        *t2 = c.operand("tensor2", type), *scale = c.operand("value", type);
  const bool divide = std::string_view(c.detail()) == "Div";
  if (is_complex(type)) {
    Value* product = divide ? complex_div(c, t1, t2) : complex_mul(c, t1, t2);
    return c.out(complex_broadcast(c, "Add", a, complex_mul(c, product, scale)), type);
  }
  const Arg& value = c.arg("value");
  const bool unit = value.kind == Arg::Kind::kInt && value.integer.is(1);
  Value* product =
      divide ? c.div(unit ? t1 : c.mul(scale, t1), t2) : c.mul(unit ? t1 : c.mul(scale, t1), t2);
  c.out(c.add(a, product));
}

void gcd_lcm(C& c) {
  // Euclid, as many steps as the widest type can need.
  const DType type = c.promote({"self", "other"});
  Value *a = c.op("Abs", {c.operand("self", type)}), *y = c.op("Abs", {c.operand("other", type)});
  const SymInts shape = c.sizes(c.add(a, y));
  Value *u = c.expand(a, shape), *v = c.expand(y, shape);
  Value* zero = c.like(0, u);
  Node* loop = c.b.begin("Loop", Values{nullptr, c.scalar(1, DType::kBool), u, v});
  Graph& body = loop->set_graph("body");
  c.enter(body);
  (void)c.b.input("iteration", DType::kInt64, {});
  (void)c.b.input("condition", DType::kBool, {});
  Value* first = c.b.input("larger", type, c.b.shape(u));
  Value* second = c.b.input("smaller", type, c.b.shape(v));
  Value* done = c.op("Equal", {second, zero});
  Value* rest = c.op("Mod", {first, c.where(done, c.like(1, u), second)});
  Value* next_first = c.where(done, first, second);
  Value* next_second = c.where(done, second, rest);
  Value* active = c.op("Not", {c.op("Equal", {next_second, zero})});
  // A sum, which is 0 of no elements.
  Value* any =
      c.cast(c.op("ReduceSum", {c.cast(active, DType::kInt64)}, {{"keepdims", 0}}), DType::kBool);
  for (Value* result : {any, next_first, next_second}) body.add_output(result);
  c.leave();
  const Values results = c.b.finish(loop, 2);
  Value* gcd = results[0];
  c.b.set_type(gcd, type, c.b.shape(u));
  if (c.name() == "gcd") return c.out(gcd);
  Value* none = c.op("Equal", {gcd, zero});
  c.out(c.mul(c.div(u, c.where(none, c.like(1, u), gcd)), v));
}

void heaviside(C& c) {
  const DType type = c.promote({"self", "values"});
  Value *x = c.operand("self", type), *values = c.operand("values", type);
  Value* zero = c.like(0, x);
  Value* step = c.cast(c.op("Greater", {x, zero}), type);
  c.out(c.where(c.op("Equal", {x, zero}), values, step));
}

void nan_to_num(C& c) {
  Value* x = c.x("self");
  if (!is_float(c.dtype(x))) return c.out(x);
  const DType type = c.dtype(x);
  const double highest = type == DType::kFloat64    ? 1.7976931348623157e308
                         : type == DType::kFloat16  ? 65504.0
                         : type == DType::kBFloat16 ? 3.3895313892515355e38
                                                    : 3.4028234663852886e38;
  Value* nan = c.like(c.given("nan") ? c.real("nan") : 0, x);
  Value* positive = c.like(c.given("posinf") ? c.real("posinf") : highest, x);
  Value* negative_value = c.like(c.given("neginf") ? c.real("neginf") : -highest, x);
  Value* result = c.where(c.op("IsNaN", {x}), nan, x);
  result = c.where(c.op("IsInf", {x}, {{"detect_negative", 0}}), positive, result);
  c.out(c.where(c.op("IsInf", {x}, {{"detect_positive", 0}}), negative_value, result));
}

void sgn(C& c) {
  if (!c.is_complex("self")) return sign(c);
  complex_unary(c);
}

void bitwise(C& c) {
  const DType type = c.promote({"self", "other"});
  Value *a = c.operand("self", type), *y = c.operand("other", type);
  const std::string_view op = c.detail();
  if (type == DType::kBool)
    return c.out(c.op(op == "BitwiseAnd" ? "And" : op == "BitwiseOr" ? "Or" : "Xor", {a, y}));
  c.out(c.op(c.detail(), {a, y}));
}

void bitwise_not(C& c) {
  Value* x = c.x("self");
  c.out(c.op(c.dtype(x) == DType::kBool ? "Not" : "BitwiseNot", {x}));
}

void shift(C& c) {
  const DType type = c.promote({"self", "other"});
  Value *a = c.operand("self", type), *y = c.operand("other", type);
  const bool left = std::string_view(c.detail()) == "LEFT";
  if (is_unsigned_integer(type))
    return c.out(c.op("BitShift", {a, y}, {{"direction", c.detail()}}));
  // Signed: times or floor-divided by a power of two. By as many bits as there are, or by a
  // negative count, nothing is left but the sign.
  const int64_t most = static_cast<int64_t>(bits_of(type)) - (left ? 1 : 2);
  const Arg& by = c.arg("other");
  const auto fixed = by.kind == Arg::Kind::kInt ? by.integer.dim.constant() : std::nullopt;
  const bool known = fixed && *fixed >= 0 && *fixed <= most;
  Value *count = c.cast(y, DType::kInt64), *none = c.scalar(0, DType::kInt64);
  Value* inside = nullptr;
  if (!known) {
    inside = c.op("And", {c.op("GreaterOrEqual", {count, none}),
                          c.op("LessOrEqual", {count, c.scalar(double(most), DType::kInt64)})});
    count = c.where(inside, count, none);
  }
  Value* power = c.cast(c.op("Pow", {c.scalar(2, DType::kInt64), count}), type);
  Value* moved = left ? c.mul(a, power) : floor_divide_values(c, a, power);
  if (known) return c.out(moved);
  Value* rest = c.like(0, a);
  if (!left) rest = c.where(c.op("Less", {a, rest}), c.like(-1, a), rest);
  c.out(c.where(inside, moved, rest));
}

void identity(C& c) { c.out_arg(c.arg("self")); }  // the tensor itself

void reciprocal(C& c) {
  if (c.is_complex("self")) return complex_unary(c);
  c.out(c.op("Reciprocal", {c.operand("self", c.promote({"self"}, Promotion::kIntToFloat))}));
}

constexpr Row kElementwiseRows[] = {
    {"sin(Tensor self) -> Tensor", unary_float, "Sin"},
    {"cos(Tensor self) -> Tensor", unary_float, "Cos"},
    {"tan(Tensor self) -> Tensor", unary_float, "Tan"},
    {"asin(Tensor self) -> Tensor", unary_float, "Asin"},
    {"arcsin(Tensor self) -> Tensor", unary_float, "Asin"},
    {"acos(Tensor self) -> Tensor", unary_float, "Acos"},
    {"arccos(Tensor self) -> Tensor", unary_float, "Acos"},
    {"atan(Tensor self) -> Tensor", unary_float, "Atan"},
    {"arctan(Tensor self) -> Tensor", unary_float, "Atan"},
    {"sinh(Tensor self) -> Tensor", unary_float, "Sinh"},
    {"cosh(Tensor self) -> Tensor", unary_float, "Cosh"},
    {"tanh(Tensor self) -> Tensor", unary_float, "Tanh"},
    {"asinh(Tensor self) -> Tensor", unary_float, "Asinh"},
    {"arcsinh(Tensor self) -> Tensor", unary_float, "Asinh"},
    {"acosh(Tensor self) -> Tensor", unary_float, "Acosh"},
    {"arccosh(Tensor self) -> Tensor", unary_float, "Acosh"},
    {"atanh(Tensor self) -> Tensor", unary_float, "Atanh"},
    {"arctanh(Tensor self) -> Tensor", unary_float, "Atanh"},
    {"exp(Tensor self) -> Tensor", unary_float, "Exp"},
    {"log(Tensor self) -> Tensor", unary_float, "Log"},
    {"sqrt(Tensor self) -> Tensor", unary_float, "Sqrt"},
    {"erf(Tensor self) -> Tensor", unary_float, "Erf"},
    {"special_erf(Tensor self) -> Tensor", unary_float, "Erf"},
    {"sigmoid(Tensor self) -> Tensor", unary_float, "Sigmoid"},
    {"special_expit(Tensor self) -> Tensor", unary_float, "Sigmoid"},
    {"reciprocal(Tensor self) -> Tensor", reciprocal, "Reciprocal"},
    {"rsqrt(Tensor self) -> Tensor", rsqrt, "Rsqrt"},
    {"exp2(Tensor self) -> Tensor", formula<f_exp2>, "Exp2"},
    {"special_exp2(Tensor self) -> Tensor", formula<f_exp2>, "Exp2"},
    {"expm1(Tensor self) -> Tensor", formula<f_expm1>, "Expm1"},
    {"special_expm1(Tensor self) -> Tensor", formula<f_expm1>, "Expm1"},
    {"log2(Tensor self) -> Tensor", formula<f_log2>, "Log2"},
    {"log10(Tensor self) -> Tensor", formula<f_log10>, "Log10"},
    {"log1p(Tensor self) -> Tensor", formula<f_log1p>, "Log1p"},
    {"special_log1p(Tensor self) -> Tensor", formula<f_log1p>, "Log1p"},
    {"erfc(Tensor self) -> Tensor", formula<f_erfc>},
    {"special_erfc(Tensor self) -> Tensor", formula<f_erfc>},
    {"frac(Tensor self) -> Tensor", formula<f_frac>},
    {"deg2rad(Tensor self) -> Tensor", formula<f_deg2rad>},
    {"rad2deg(Tensor self) -> Tensor", formula<f_rad2deg>},
    {"sinc(Tensor self) -> Tensor", formula<f_sinc>, "Sinc"},
    {"special_sinc(Tensor self) -> Tensor", formula<f_sinc>, "Sinc"},
    {"special_entr(Tensor self) -> Tensor", formula<f_entr>},
    {"special_ndtr(Tensor self) -> Tensor", formula<f_ndtr>},
    {"logit(Tensor self, float? eps=None) -> Tensor", logit},
    {"special_logit(Tensor self, float? eps=None) -> Tensor", logit},
    {"floor(Tensor self) -> Tensor", unary_same, "Floor"},
    {"ceil(Tensor self) -> Tensor", unary_same, "Ceil"},
    {"round(Tensor self) -> Tensor", unary_same, "Round"},
    {"round.decimals(Tensor self, *, int decimals) -> Tensor", round_decimals},
    {"special_round(Tensor self, *, int decimals=0) -> Tensor", round_decimals},
    {"trunc(Tensor self) -> Tensor", trunc},
    {"fix(Tensor self) -> Tensor", trunc},
    {"neg(Tensor self) -> Tensor", negative},
    {"negative(Tensor self) -> Tensor", negative},
    {"positive(Tensor self) -> Tensor", identity},
    {"abs(Tensor self) -> Tensor", absolute},
    {"absolute(Tensor self) -> Tensor", absolute},
    {"sign(Tensor self) -> Tensor", sign, "Sign"},
    {"sgn(Tensor self) -> Tensor", sgn, "Sgn"},
    {"square(Tensor self) -> Tensor", square},
    {"nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
     nan_to_num},
    {"add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", add_sub, "Add"},
    {"add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", add_sub, "Add"},
    {"sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", add_sub, "Sub"},
    {"sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", add_sub, "Sub"},
    {"subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", add_sub, "Sub"},
    {"subtract.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", add_sub, "Sub"},
    {"rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", add_sub, "Sub"},
    {"rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", add_sub, "Sub"},
    {"mul.Tensor(Tensor self, Tensor other) -> Tensor", multiply},
    {"mul.Scalar(Tensor self, Scalar other) -> Tensor", multiply},
    {"multiply.Tensor(Tensor self, Tensor other) -> Tensor", multiply},
    {"multiply.Scalar(Tensor self, Scalar other) -> Tensor", multiply},
    {"div.Tensor(Tensor self, Tensor other) -> Tensor", true_divide},
    {"div.Scalar(Tensor self, Scalar other) -> Tensor", true_divide},
    {"div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor", divide_mode},
    {"div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor", divide_mode},
    {"divide.Tensor(Tensor self, Tensor other) -> Tensor", true_divide},
    {"divide.Scalar(Tensor self, Scalar other) -> Tensor", true_divide},
    {"divide.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor", divide_mode},
    {"divide.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor", divide_mode},
    {"true_divide.Tensor(Tensor self, Tensor other) -> Tensor", true_divide},
    {"true_divide.Scalar(Tensor self, Scalar other) -> Tensor", true_divide},
    {"floor_divide(Tensor self, Tensor other) -> Tensor", floor_divide},
    {"floor_divide.Scalar(Tensor self, Scalar other) -> Tensor", floor_divide},
    {"remainder.Tensor(Tensor self, Tensor other) -> Tensor", remainder},
    {"remainder.Scalar(Tensor self, Scalar other) -> Tensor", remainder},
    {"remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", remainder},
    {"fmod.Tensor(Tensor self, Tensor other) -> Tensor", fmod},
    {"fmod.Scalar(Tensor self, Scalar other) -> Tensor", fmod},
    {"pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", power},
    {"pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", power},
    {"pow.Scalar(Scalar self, Tensor exponent) -> Tensor", power},
    {"float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", float_power},
    {"float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", float_power},
    {"float_power.Scalar(Scalar self, Tensor exponent) -> Tensor", float_power},
    {"maximum(Tensor self, Tensor other) -> Tensor", max_min, "Max"},
    {"minimum(Tensor self, Tensor other) -> Tensor", max_min, "Min"},
    {"max.other(Tensor self, Tensor other) -> Tensor", max_min, "Max"},
    {"min.other(Tensor self, Tensor other) -> Tensor", max_min, "Min"},
    {"fmax(Tensor self, Tensor other) -> Tensor", fmax_fmin, "Max"},
    {"fmin(Tensor self, Tensor other) -> Tensor", fmax_fmin, "Min"},
    {"clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", clamp},
    {"clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", clamp},
    {"clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", clamp},
    {"clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", clamp},
    {"clamp_min(Tensor self, Scalar min) -> Tensor", clamp},
    {"clamp_min.Tensor(Tensor self, Tensor min) -> Tensor", clamp},
    {"clamp_max(Tensor self, Scalar max) -> Tensor", clamp},
    {"clamp_max.Tensor(Tensor self, Tensor max) -> Tensor", clamp},
    {"atan2(Tensor self, Tensor other) -> Tensor", atan2},
    {"arctan2(Tensor self, Tensor other) -> Tensor", atan2},
    {"hypot(Tensor self, Tensor other) -> Tensor", hypot},
    {"nextafter(Tensor self, Tensor other) -> Tensor", nextafter},
    {"copysign.Tensor(Tensor self, Tensor other) -> Tensor", copysign},
    {"copysign.Scalar(Tensor self, Scalar other) -> Tensor", copysign},
    {"logaddexp(Tensor self, Tensor other) -> Tensor", logaddexp},
    {"logaddexp2(Tensor self, Tensor other) -> Tensor", logaddexp},
    {"xlogy.Tensor(Tensor self, Tensor other) -> Tensor", xlogy},
    {"xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor", xlogy},
    {"xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor", xlogy},
    {"special_xlogy(Tensor self, Tensor other) -> Tensor", xlogy},
    {"special_xlogy.self_scalar(Scalar self, Tensor other) -> Tensor", xlogy},
    {"special_xlogy.other_scalar(Tensor self, Scalar other) -> Tensor", xlogy},
    {"special_xlog1py(Tensor self, Tensor other) -> Tensor", xlogy, "log1p"},
    {"special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor", xlogy, "log1p"},
    {"special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor", xlogy, "log1p"},
    {"ldexp.Tensor(Tensor self, Tensor other) -> Tensor", ldexp},
    {"lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor", lerp},
    {"lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor", lerp},
    {"addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", addcmul,
     "Mul"},
    {"addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", addcmul,
     "Div"},
    {"gcd(Tensor self, Tensor other) -> Tensor", gcd_lcm},
    {"lcm(Tensor self, Tensor other) -> Tensor", gcd_lcm},
    {"heaviside(Tensor self, Tensor values) -> Tensor", heaviside},
    {"bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor", bitwise, "BitwiseAnd"},
    {"bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor", bitwise, "BitwiseAnd"},
    {"bitwise_and.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", bitwise, "BitwiseAnd"},
    {"bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor", bitwise, "BitwiseOr"},
    {"bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor", bitwise, "BitwiseOr"},
    {"bitwise_or.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", bitwise, "BitwiseOr"},
    {"bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor", bitwise, "BitwiseXor"},
    {"bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor", bitwise, "BitwiseXor"},
    {"bitwise_xor.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", bitwise, "BitwiseXor"},
    {"__and__.Tensor(Tensor self, Tensor other) -> Tensor", bitwise, "BitwiseAnd"},
    {"__and__.Scalar(Tensor self, Scalar other) -> Tensor", bitwise, "BitwiseAnd"},
    {"__or__.Tensor(Tensor self, Tensor other) -> Tensor", bitwise, "BitwiseOr"},
    {"__or__.Scalar(Tensor self, Scalar other) -> Tensor", bitwise, "BitwiseOr"},
    {"__xor__.Tensor(Tensor self, Tensor other) -> Tensor", bitwise, "BitwiseXor"},
    {"__xor__.Scalar(Tensor self, Scalar other) -> Tensor", bitwise, "BitwiseXor"},
    {"bitwise_not(Tensor self) -> Tensor", bitwise_not},
    {"bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor", shift, "LEFT"},
    {"bitwise_left_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", shift, "LEFT"},
    {"bitwise_right_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", shift, "RIGHT"},
    {"bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor", shift, "LEFT"},
    {"bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor", shift, "RIGHT"},
    {"bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor", shift, "RIGHT"},
    {"__lshift__.Tensor(Tensor self, Tensor other) -> Tensor", shift, "LEFT"},
    {"__lshift__.Scalar(Tensor self, Scalar other) -> Tensor", shift, "LEFT"},
    {"__rshift__.Tensor(Tensor self, Tensor other) -> Tensor", shift, "RIGHT"},
    {"__rshift__.Scalar(Tensor self, Scalar other) -> Tensor", shift, "RIGHT"},
};

}  // namespace

std::span<const Row> elementwise_rows() { return kElementwiseRows; }

}  // namespace tombolo::pytorch
