// Special functions, in double: series, asymptotic series, and trapezoids where those converge
// exponentially.

#include <cmath>

#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;
constexpr DType kWide = DType::kFloat64;

Value* number(C& c, double v) { return c.scalar(v, kWide); }
Value* constants(C& c, const std::vector<double>& values) {
  const int64_t dims[] = {static_cast<int64_t>(values.size())};
  return c.b.constant(Tensor::of<double>(kWide, dims, values), "table");
}
Value* sum_last(C& c, Value* x) {
  return c.op("ReduceSum", {x, c.b.ints({-1})}, {{"keepdims", 0}});
}
Value* log_of(C& c, Value* x) { return c.op("Log", {x}); }
Value* exp_of(C& c, Value* x) { return c.op("Exp", {x}); }
Value* less(C& c, Value* x, double v) { return c.op("Less", {x, number(c, v)}); }

/// Lanczos; left of one half by reflection.
Value* lgamma(C& c, Value* x) {
  static const double kG[] = {0.99999999999980993,  676.5203681218851,     -1259.1392167224028,
                              771.32342877765313,   -176.61502916214059,   12.507343278686905,
                              -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7};
  Value* left = less(c, x, 0.5);
  Value* t = c.where(left, c.sub(number(c, 1), x), x);
  Value* z = c.sub(t, number(c, 1));
  Value* series = number(c, kG[0]);
  for (int i = 1; i < 9; ++i)
    series = c.add(series, c.div(number(c, kG[i]), c.add(z, number(c, i))));
  Value* w = c.add(z, number(c, 7.5));
  Value* right = c.add(c.sub(c.mul(c.add(z, number(c, 0.5)), log_of(c, w)), w),
                       c.add(number(c, 0.5 * std::log(2 * M_PI)), log_of(c, series)));
  // Large arguments overflow in between only at infinity.
  right = c.where(c.op("IsInf", {t}), number(c, INFINITY), right);
  Value* frac = c.sub(x, c.op("Floor", {x}));
  Value* sine = c.op("Abs", {c.op("Sin", {c.mul(number(c, M_PI), frac)})});
  Value* whole = c.op("Equal", {frac, number(c, 0)});
  Value* reflected = c.sub(c.sub(number(c, std::log(M_PI)), log_of(c, sine)), right);
  return c.where(left, c.where(whole, number(c, INFINITY), reflected), right);
}

Value* digamma(C& c, Value* x) {
  Value* left = less(c, x, 0.5);
  Value* t = c.where(left, c.sub(number(c, 1), x), x);
  std::vector<double> steps;
  for (int i = 0; i < 10; ++i) steps.push_back(i);
  Value* lifted =
      sum_last(c, c.op("Reciprocal", {c.add(c.unsqueeze(t, {-1}), constants(c, steps))}));
  Value* a = c.add(t, number(c, 10));
  Value* r = c.op("Reciprocal", {c.mul(a, a)});
  Value* tail = number(c, 0);
  for (const double k : {-691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12})
    tail = c.mul(r, c.add(number(c, k), tail));
  Value* right = c.sub(c.sub(c.sub(log_of(c, a), c.div(number(c, 0.5), a)), tail), lifted);
  Value* frac = c.sub(x, c.op("Floor", {x}));
  Value* reflected =
      c.sub(right, c.div(number(c, M_PI), c.op("Tan", {c.mul(number(c, M_PI), frac)})));
  Value* whole = c.op("Equal", {frac, number(c, 0)});
  Value* at_pole = c.where(c.op("Equal", {x, number(c, 0)}), c.op("Neg", {c.op("Reciprocal", {x})}),
                           number(c, NAN));
  return c.where(left, c.where(whole, at_pole, reflected), right);
}

/// Hurwitz zeta(s, q) by Euler and Maclaurin.
Value* hurwitz(C& c, Value* s, Value* q) {
  std::vector<double> steps;
  for (int i = 0; i < 24; ++i) steps.push_back(i);
  Value* terms = c.op("Pow", {c.add(c.unsqueeze(q, {-1}), constants(c, steps)),
                              c.op("Neg", {c.unsqueeze(s, {-1})})});
  Value* total = sum_last(c, terms);
  Value* a = c.add(q, number(c, 24));
  Value* one = number(c, 1);
  Value* power = c.op("Pow", {a, c.op("Neg", {s})});
  total = c.add(total, c.add(c.div(c.mul(power, a), c.sub(s, one)), c.mul(power, number(c, 0.5))));
  Value* factor = c.div(c.mul(power, s), a);
  static const double kB[] = {1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160};
  for (int k = 0; k < 5; ++k) {
    total = c.add(total, c.mul(factor, number(c, kB[k])));
    factor =
        c.div(c.mul(factor, c.mul(c.add(s, number(c, 2 * k + 1)), c.add(s, number(c, 2 * k + 2)))),
              c.mul(a, a));
  }
  Value* pole =
      c.op("And", {c.op("LessOrEqual", {q, number(c, 0)}), c.op("Equal", {q, c.op("Floor", {q})})});
  total = c.where(pole, number(c, INFINITY), total);
  Value* fractional =
      c.op("And", {less(c, q, 0), c.op("Not", {c.op("Equal", {s, c.op("Floor", {s})})})});
  total = c.where(fractional, number(c, NAN), total);
  total = c.where(c.op("Equal", {s, one}), number(c, INFINITY), total);
  return c.where(less(c, s, 1), number(c, NAN), total);
}

Value* polygamma(C& c, int64_t n, Value* x) {
  if (n == 0) return digamma(c, x);
  double factorial = 1;
  for (int64_t i = 2; i <= n; ++i) factorial *= static_cast<double>(i);
  Value* z = hurwitz(c, number(c, static_cast<double>(n + 1)), x);
  return c.mul(z, number(c, n % 2 ? factorial : -factorial));
}

Value* erfinv(C& c, Value* y) {
  // Winitzki's start, then Newton with Halley's correction.
  Value* one = number(c, 1);
  Value* inside = c.op("Less", {c.op("Abs", {y}), one});
  Value* safe = c.where(inside, y, number(c, 0));
  Value* l = log_of(c, c.mul(c.sub(one, safe), c.add(one, safe)));
  Value* t = c.add(number(c, 2 / (M_PI * 0.147)), c.mul(l, number(c, 0.5)));
  Value* root =
      c.op("Sqrt", {c.sub(c.op("Sqrt", {c.sub(c.mul(t, t), c.div(l, number(c, 0.147)))}), t)});
  Value* x = c.mul(c.op("Sign", {safe}), root);
  for (int i = 0; i < 3; ++i) {
    Value* error = c.sub(c.op("Erf", {x}), safe);
    Value* slope = c.mul(number(c, 2 / std::sqrt(M_PI)), exp_of(c, c.op("Neg", {c.mul(x, x)})));
    Value* step = c.div(error, slope);
    x = c.sub(x, c.div(step, c.add(one, c.mul(x, step))));
  }
  Value* edge = c.where(c.op("Equal", {c.op("Abs", {y}), one}), c.mul(y, number(c, INFINITY)),
                        number(c, NAN));
  return c.where(inside, x, edge);
}

/// exp(x^2) erfc(x) for x >= 0, by the continued fraction further out.
Value* erfcx_positive(C& c, Value* x) {
  Value* small = less(c, x, 2);
  Value* near_x = c.where(small, x, number(c, 0));
  Value* near = c.mul(exp_of(c, c.mul(near_x, near_x)), c.sub(number(c, 1), c.op("Erf", {near_x})));
  Value* far_x = c.where(small, number(c, 2), x);
  Value* f = far_x;
  for (int k = 60; k >= 1; --k) f = c.add(far_x, c.div(number(c, 0.5 * k), f));
  return c.where(small, near, c.div(number(c, 1 / std::sqrt(M_PI)), f));
}
Value* erfcx(C& c, Value* x) {
  Value* a = erfcx_positive(c, c.op("Abs", {x}));
  Value* mirrored = c.sub(c.mul(number(c, 2), exp_of(c, c.mul(x, x))), a);
  return c.where(less(c, x, 0), mirrored, a);
}
Value* log_ndtr(C& c, Value* x) {
  Value* t = c.mul(x, number(c, M_SQRT1_2));
  Value* left = less(c, x, -1);
  Value* below =
      c.sub(log_of(c, c.mul(number(c, 0.5), erfcx_positive(c, c.op("Abs", {t})))), c.mul(t, t));
  Value* above = log_of(c, c.mul(number(c, 0.5), c.add(number(c, 1), c.op("Erf", {t}))));
  return c.where(left, below, above);
}
Value* ndtri(C& c, Value* p) {
  Value* t = c.sub(c.mul(number(c, 2), p), number(c, 1));
  return c.mul(number(c, M_SQRT2), erfinv(c, t));
}

// ---- Bessel functions ----

constexpr int kPoints = 128;

/// Angles over the whole circle, for trapezoids of periodic integrands.
std::vector<double> angles(double (*f)(double)) {
  std::vector<double> values;
  for (int j = 0; j < kPoints; ++j) values.push_back(f(2 * M_PI * (j + 0.5) / kPoints));
  return values;
}
double sine(double t) { return std::sin(t); }

Value* mean_last(C& c, Value* x) {
  return c.op("ReduceMean", {x, c.b.ints({-1})}, {{"keepdims", 0}});
}

/// J_n(x): the mean of cos(n t - x sin t).
Value* bessel_j(C& c, int n, Value* x) {
  std::vector<double> phase;
  for (int j = 0; j < kPoints; ++j) phase.push_back(n * 2 * M_PI * (j + 0.5) / kPoints);
  Value* arg = c.sub(constants(c, phase), c.mul(c.unsqueeze(x, {-1}), constants(c, angles(sine))));
  return mean_last(c, c.op("Cos", {arg}));
}
Value* bessel_j0(C& c, Value* x) { return bessel_j(c, 0, x); }
Value* bessel_j1(C& c, Value* x) { return bessel_j(c, 1, x); }

/// Neumann's series in J_2k, summed under the integral.
Value* bessel_y(C& c, int n, Value* x) {
  std::vector<double> weight;
  for (int j = 0; j < kPoints; ++j) {
    const double t = 2 * M_PI * (j + 0.5) / kPoints;
    double sum = 0;
    for (int k = 1; 2 * k + n < kPoints / 2; ++k) {
      const double sign = k % 2 ? -1 : 1;
      sum += n == 0 ? sign * std::cos(2 * k * t) / k
                    : sign * (2.0 * k + 1) / (k * (k + 1.0)) * std::sin((2 * k + 1) * t);
    }
    weight.push_back(sum);
  }
  Value* wave = c.mul(c.unsqueeze(x, {-1}), constants(c, angles(sine)));
  Value* series =
      mean_last(c, c.mul(n == 0 ? c.op("Cos", {wave}) : c.op("Sin", {wave}), constants(c, weight)));
  const double gamma = 0.57721566490153286;
  Value* log = c.add(log_of(c, c.mul(x, number(c, 0.5))), number(c, n == 0 ? gamma : gamma - 1));
  Value* y = c.sub(c.mul(c.mul(number(c, 2 / M_PI), log), bessel_j(c, n, x)),
                   c.mul(number(c, (n == 0 ? 4 : 2) / M_PI), series));
  if (n == 1) y = c.sub(y, c.mul(c.div(number(c, 2 / M_PI), x), bessel_j(c, 0, x)));
  y = c.where(c.op("Equal", {x, number(c, 0)}), number(c, -INFINITY), y);
  return c.where(less(c, x, 0), number(c, NAN), y);
}
Value* bessel_y0(C& c, Value* x) { return bessel_y(c, 0, x); }
Value* bessel_y1(C& c, Value* x) { return bessel_y(c, 1, x); }

/// exp(-|x|) I_n(x): the mean of exp(|x| (cos t - 1)) cos(n t).
Value* bessel_ie(C& c, int n, Value* x) {
  std::vector<double> weight, less_one;
  for (int j = 0; j < kPoints; ++j) {
    const double t = 2 * M_PI * (j + 0.5) / kPoints;
    weight.push_back(std::cos(n * t));
    less_one.push_back(std::cos(t) - 1);
  }
  Value* a = c.op("Abs", {x});
  Value* y = mean_last(c, c.mul(exp_of(c, c.mul(c.unsqueeze(a, {-1}), constants(c, less_one))),
                                constants(c, weight)));
  return n == 1 ? c.mul(c.op("Sign", {x}), y) : y;
}
Value* i0e(C& c, Value* x) { return bessel_ie(c, 0, x); }
Value* i1e(C& c, Value* x) { return bessel_ie(c, 1, x); }
Value* i0(C& c, Value* x) { return c.mul(i0e(c, x), exp_of(c, c.op("Abs", {x}))); }
Value* i1(C& c, Value* x) { return c.mul(i1e(c, x), exp_of(c, c.op("Abs", {x}))); }

/// exp(x) K_n(x): the integral of exp(-x (cosh t - 1)) cosh(n t).
Value* bessel_ke(C& c, int n, Value* x) {
  std::vector<double> weight, less_one;
  const double step = 1.0 / 24;
  for (int j = 0; j < 200; ++j) {
    const double t = j * step;
    weight.push_back((j == 0 ? 0.5 : 1) * step * std::cosh(n * t));
    less_one.push_back(1 - std::cosh(t));
  }
  Value* y = sum_last(c, c.mul(exp_of(c, c.mul(c.unsqueeze(x, {-1}), constants(c, less_one))),
                               constants(c, weight)));
  y = c.where(c.op("Equal", {x, number(c, 0)}), number(c, INFINITY), y);
  return c.where(less(c, x, 0), number(c, NAN), y);
}
Value* k0e(C& c, Value* x) { return bessel_ke(c, 0, x); }
Value* k1e(C& c, Value* x) { return bessel_ke(c, 1, x); }
Value* k0(C& c, Value* x) { return c.mul(k0e(c, x), exp_of(c, c.op("Neg", {x}))); }
Value* k1(C& c, Value* x) { return c.mul(k1e(c, x), exp_of(c, c.op("Neg", {x}))); }

Value* spherical_j0(C& c, Value* x) {
  Value* zero = c.op("Equal", {x, number(c, 0)});
  Value* safe = c.where(zero, number(c, 1), x);
  return c.where(zero, number(c, 1), c.div(c.op("Sin", {safe}), safe));
}

template <Value* (*kFormula)(C&, Value*)>
void unary(C& c) {
  const char* name = c.has_arg("x") ? "x" : "self";
  const DType type = c.promote({name}, Promotion::kIntToFloat);
  if (is_complex(type)) return c.refuse("complex numbers");
  c.out(c.cast(kFormula(c, c.operand(name, kWide)), type));
}

void polygamma_row(C& c) {
  const DType type = c.promote({"self"}, Promotion::kIntToFloat);
  c.out(c.cast(polygamma(c, c.integer("n"), c.operand("self", kWide)), type));
}

void zeta(C& c) {
  const DType type = c.promote({"self", "other"}, Promotion::kIntToFloat);
  c.out(c.cast(hurwitz(c, c.operand("self", kWide), c.operand("other", kWide)), type));
}

void mvlgamma(C& c) {
  const DType type = c.promote({"self"}, Promotion::kIntToFloat);
  const int64_t p = c.integer("p");
  Value* x = c.operand("self", kWide);
  Value* sum = number(c, static_cast<double>(p * (p - 1)) / 4 * std::log(M_PI));
  for (int64_t j = 0; j < p; ++j)
    sum = c.add(sum, lgamma(c, c.sub(x, number(c, 0.5 * static_cast<double>(j)))));
  c.out(c.cast(sum, type));
}

/// The regularised incomplete gamma functions: the series for P, the fraction for Q.
void igamma(C& c) {
  const DType type = c.promote({"self", "other"}, Promotion::kIntToFloat);
  Value *a = c.operand("self", kWide), *x = c.operand("other", kWide);
  Value* one = number(c, 1);
  Value* front = exp_of(c, c.sub(c.sub(c.mul(a, log_of(c, x)), x), lgamma(c, a)));
  Value* low = c.op("Less", {x, c.add(a, one)});
  // P = front * sum x^k / (a (a+1) ... (a+k))
  Value* term = c.op("Reciprocal", {a});
  Value* series = term;
  for (int k = 1; k < 80; ++k) {
    term = c.mul(term, c.div(x, c.add(a, number(c, k))));
    series = c.add(series, term);
  }
  Value* p = c.mul(front, series);
  // Q by the continued fraction, from its end.
  Value* safe = c.where(low, c.add(a, number(c, 2)), x);
  Value* f = c.add(c.sub(safe, a), number(c, 2 * 80 + 1));
  for (int k = 80; k >= 1; --k) {
    Value* above = c.mul(number(c, k), c.sub(number(c, k), a));
    f = c.sub(c.add(c.sub(safe, a), number(c, 2 * k - 1)), c.div(above, f));
  }
  Value* q = c.div(front, f);
  const bool upper = std::string_view(c.detail()) == "upper";
  Value* result = upper ? c.where(low, c.sub(one, p), q) : c.where(low, p, c.sub(one, q));
  Value* x_zero = c.op("Equal", {x, number(c, 0)});
  Value* a_zero = c.op("Equal", {a, number(c, 0)});
  result = c.where(x_zero, number(c, upper ? 1 : 0), result);
  result = c.where(a_zero, c.where(x_zero, number(c, NAN), number(c, upper ? 0 : 1)), result);
  Value* bad = c.op("Or", {less(c, x, 0), less(c, a, 0)});
  result = c.where(c.op("IsInf", {x}), number(c, upper ? 0 : 1), result);
  c.out(c.cast(c.where(bad, number(c, NAN), result), type));
}

/// Orthogonal polynomials by their recurrence; the degree is a tensor, too.
void polynomial(C& c) {
  const std::string_view kind = c.detail();
  const DType type = c.promote({"x", "n"}, Promotion::kIntToFloat);
  Value *x = c.operand("x", kWide), *n = c.operand("n", kWide);
  n = c.where(less(c, n, 0), c.op("Ceil", {n}), c.op("Floor", {n}));
  const bool shifted = kind.starts_with("shifted");
  if (shifted) x = c.sub(c.mul(number(c, 2), x), number(c, 1));
  Value* zero = c.mul(c.add(x, n), number(c, 0));
  x = c.add(x, zero);
  n = c.add(n, zero);
  Value* p0 = c.add(zero, number(c, 1));
  const char letter = kind.back();  // t u v w; h e(he) l(aguerre) g(legendre)
  Value* two_x = c.mul(number(c, 2), x);
  Value* p1 = letter == 't'   ? x
              : letter == 'u' ? two_x
              : letter == 'v' ? c.sub(two_x, number(c, 1))
              : letter == 'w' ? c.add(two_x, number(c, 1))
              : letter == 'h' ? two_x
              : letter == 'l' ? c.sub(number(c, 1), x)
                              : x;
  // The largest of no degrees is minus infinity, which must not become an integer.
  Value* highest = c.op("ReduceMax", {n}, {{"keepdims", 0}});
  Value* trips = c.cast(c.op("Max", {c.sub(highest, number(c, 1)), number(c, 0)}), DType::kInt64);
  Node* node = c.b.begin("Loop", std::vector<Value*>{trips, nullptr, p0, p1, p1});
  Graph& graph = node->set_graph("body");
  graph.name = "step";
  c.enter(graph);
  Value* i = c.b.input("i", DType::kInt64, {});
  Value* go_on = c.b.input("go_on", DType::kBool, {});
  Values state;
  for (int k = 0; k < 3; ++k) state.push_back(c.b.input("p", kWide, SymShape(c.b.shape(zero))));
  Value* k = c.add(c.cast(i, kWide), number(c, 1));  // p_{k+1} from p_k and p_{k-1}
  Value *older = state[0], *old = state[1], *next = nullptr;
  if (letter == 'h') {
    next = c.sub(c.mul(two_x, old), c.mul(c.mul(number(c, 2), k), older));
  } else if (letter == 'e') {
    next = c.sub(c.mul(x, old), c.mul(k, older));
  } else if (letter == 'l') {
    next = c.div(
        c.sub(c.mul(c.sub(c.add(c.mul(number(c, 2), k), number(c, 1)), x), old), c.mul(k, older)),
        c.add(k, number(c, 1)));
  } else if (letter == 'g') {
    next = c.div(
        c.sub(c.mul(c.mul(c.add(c.mul(number(c, 2), k), number(c, 1)), x), old), c.mul(k, older)),
        c.add(k, number(c, 1)));
  } else {
    next = c.sub(c.mul(two_x, old), older);
  }
  Value* wanted = c.op("Equal", {n, c.add(k, number(c, 1))});
  graph.add_output(c.op("Identity", {go_on}));
  graph.add_output(c.op("Identity", {old}));
  graph.add_output(next);
  graph.add_output(c.where(wanted, next, state[2]));
  c.leave();
  const Values results = c.b.finish(node, 3);
  for (Value* one : results) c.b.set_type(one, kWide, SymShape(c.b.shape(zero)));
  Value* y = c.where(c.op("Equal", {n, number(c, 0)}), p0, results[2]);
  c.out(c.cast(c.where(less(c, n, 0), number(c, 0), y), type));
}

#define UNARY(name, f) \
  { name "(Tensor self) -> Tensor", unary<f> }
#define UNARY_X(name, f) \
  { name "(Tensor x) -> Tensor", unary<f> }
#define POLYNOMIAL(name, detail)                                                         \
  {"special_" name "(Tensor x, Tensor n) -> Tensor", polynomial, detail},                \
      {"special_" name ".x_scalar(Scalar x, Tensor n) -> Tensor", polynomial, detail}, { \
    "special_" name ".n_scalar(Tensor x, Scalar n) -> Tensor", polynomial, detail        \
  }

constexpr Row kSpecialRows[] = {
    UNARY("lgamma", lgamma),
    UNARY("special_gammaln", lgamma),
    UNARY("digamma", digamma),
    UNARY("special_digamma", digamma),
    UNARY("special_psi", digamma),
    {"polygamma(int n, Tensor self) -> Tensor", polygamma_row},
    {"special_polygamma(int n, Tensor self) -> Tensor", polygamma_row},
    {"mvlgamma(Tensor self, int p) -> Tensor", mvlgamma},
    {"special_multigammaln(Tensor self, int p) -> Tensor", mvlgamma},
    {"special_zeta(Tensor self, Tensor other) -> Tensor", zeta},
    {"special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor", zeta},
    {"special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor", zeta},
    UNARY("erfinv", erfinv),
    UNARY("special_erfinv", erfinv),
    UNARY("special_erfcx", erfcx),
    UNARY("special_ndtri", ndtri),
    UNARY("special_log_ndtr", log_ndtr),
    UNARY("i0", i0),
    UNARY("special_i0", i0),
    UNARY("special_i0e", i0e),
    UNARY("special_i1", i1),
    UNARY("special_i1e", i1e),
    UNARY("special_bessel_j0", bessel_j0),
    UNARY("special_bessel_j1", bessel_j1),
    UNARY("special_bessel_y0", bessel_y0),
    UNARY("special_bessel_y1", bessel_y1),
    UNARY("special_modified_bessel_i0", i0),
    UNARY("special_modified_bessel_i1", i1),
    UNARY("special_modified_bessel_k0", k0),
    UNARY("special_modified_bessel_k1", k1),
    UNARY_X("special_scaled_modified_bessel_k0", k0e),
    UNARY_X("special_scaled_modified_bessel_k1", k1e),
    UNARY_X("special_spherical_bessel_j0", spherical_j0),
    {"igamma(Tensor self, Tensor other) -> Tensor", igamma, "lower"},
    {"special_gammainc(Tensor self, Tensor other) -> Tensor", igamma, "lower"},
    {"igammac(Tensor self, Tensor other) -> Tensor", igamma, "upper"},
    {"special_gammaincc(Tensor self, Tensor other) -> Tensor", igamma, "upper"},
    POLYNOMIAL("chebyshev_polynomial_t", "t"),
    POLYNOMIAL("chebyshev_polynomial_u", "u"),
    POLYNOMIAL("chebyshev_polynomial_v", "v"),
    POLYNOMIAL("chebyshev_polynomial_w", "w"),
    POLYNOMIAL("shifted_chebyshev_polynomial_t", "shifted_t"),
    POLYNOMIAL("shifted_chebyshev_polynomial_u", "shifted_u"),
    POLYNOMIAL("shifted_chebyshev_polynomial_v", "shifted_v"),
    POLYNOMIAL("shifted_chebyshev_polynomial_w", "shifted_w"),
    POLYNOMIAL("hermite_polynomial_h", "h"),
    POLYNOMIAL("hermite_polynomial_he", "he"),
    POLYNOMIAL("laguerre_polynomial_l", "l"),
    POLYNOMIAL("legendre_polynomial_p", "g"),
};

}  // namespace

std::span<const Row> special_rows() { return kSpecialRows; }

}  // namespace tombolo::pytorch
