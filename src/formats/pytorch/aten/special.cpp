// Special functions, in double: series, asymptotic series, and trapezoids where those converge
// exponentially.

#include <cmath>
#include <utility>

#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;
constexpr DType kWide = DType::kFloat64;

Value* number(C& c, double v) { return c.scalar(v, kWide); }
Value* constants(C& c, const Reals& values) {
  const int64_t dims[] = {static_cast<int64_t>(values.size())};
  return c.b.constant(Tensor::of<double>(kWide, dims, values), "table");
}
Value* sum_last(C& c, Value* x) {
  return c.op("ReduceSum", {x, c.b.ints({-1})}, {{"keepdims", 0}});
}
Value* log_of(C& c, Value* x) { return c.op("Log", {x}); }
Value* exp_of(C& c, Value* x) { return c.op("Exp", {x}); }
Value* less(C& c, Value* x, double v) { return c.op("Less", {x, number(c, v)}); }

/// What lies between x and the nearest whole number: no digit of a small x is lost.
Value* from_whole(C& c, Value* x) { return c.sub(x, c.op("Round", {x})); }

/// a_0 + a_1 x + a_2 x^2 + ..
Value* power_series(C& c, Value* x, const Reals& a) {
  Value* sum = number(c, a.back());
  for (size_t i = a.size() - 1; i-- > 0;) sum = c.add(c.mul(sum, x), number(c, a[i]));
  return sum;
}

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
  Value* rest = from_whole(c, x);
  Value* sine = c.op("Abs", {c.op("Sin", {c.mul(number(c, M_PI), rest)})});
  Value* pole = c.op("Or", {c.op("Equal", {rest, number(c, 0)}), c.op("IsInf", {x})});
  Value* reflected = c.sub(c.sub(number(c, std::log(M_PI)), log_of(c, sine)), right);
  return c.where(left, c.where(pole, number(c, INFINITY), reflected), right);
}

Value* digamma(C& c, Value* x) {
  Value* left = less(c, x, 0.5);
  Value* t = c.where(left, c.sub(number(c, 1), x), x);
  Reals steps;
  for (int i = 0; i < 10; ++i) steps.push_back(i);
  Value* lifted =
      sum_last(c, c.op("Reciprocal", {c.add(c.unsqueeze(t, {-1}), constants(c, steps))}));
  Value* a = c.add(t, number(c, 10));
  Value* r = c.op("Reciprocal", {c.mul(a, a)});
  Value* tail = number(c, 0);
  for (const double k : {-691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12})
    tail = c.mul(r, c.add(number(c, k), tail));
  Value* right = c.sub(c.sub(c.sub(log_of(c, a), c.div(number(c, 0.5), a)), tail), lifted);
  Value* rest = from_whole(c, x);
  Value* reflected =
      c.sub(right, c.div(number(c, M_PI), c.op("Tan", {c.mul(number(c, M_PI), rest)})));
  Value* whole = c.op("Equal", {rest, number(c, 0)});
  Value* at_pole = c.where(c.op("Equal", {x, number(c, 0)}), c.op("Neg", {c.op("Reciprocal", {x})}),
                           number(c, NAN));
  return c.where(left, c.where(whole, at_pole, reflected), right);
}

/// Hurwitz zeta(s, q) for q > 0, by Euler and Maclaurin.
Value* hurwitz_positive(C& c, Value* s, Value* q) {
  Reals steps;
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
  return total;
}

/// Hurwitz zeta(s, q). Left of zero s is whole, and the terms on that side are those of two others,
/// turned around: with p = -q counted from where the side ends, zeta(s, q) is
/// zeta(s, 1 - p') + (-1)^s (zeta(s, p') - zeta(s, p)), p' the part of p behind the point.
Value* hurwitz(C& c, Value* s, Value* q) {
  Value *zero = number(c, 0), *one = number(c, 1);
  Value* left = less(c, q, 0);
  Value* below = less(c, s, 1);
  Value* endless = c.op("IsInf", {s});  // only the first term counts, and only where q is 1
  s = c.where(endless, number(c, 2), s);
  Value* p = c.where(left, c.op("Neg", {q}), number(c, 1.5));
  Value* fraction = c.sub(p, c.op("Floor", {p}));
  Value* safe = c.where(c.op("Equal", {fraction, zero}), number(c, 0.5), fraction);
  Value* odd = c.op("Equal", {c.op("Mod", {s, number(c, 2)}, {{"fmod", 1}}), one});
  Value* mirrored = c.sub(hurwitz_positive(c, s, safe), hurwitz_positive(c, s, c.add(p, one)));
  mirrored = c.where(odd, c.op("Neg", {mirrored}), mirrored);
  Value* right = hurwitz_positive(c, s, c.where(left, c.sub(one, safe), q));
  Value* total = c.where(left, c.add(right, mirrored), right);
  Value* apart = c.op("Not", {c.op("Equal", {s, c.op("Floor", {s})})});
  total = c.where(c.op("And", {left, apart}), number(c, NAN), total);
  Value* whole = c.op("Equal", {q, c.op("Floor", {q})});
  Value* limit = c.where(c.op("Greater", {q, one}), zero,
                         c.where(c.op("Equal", {q, one}), one, number(c, INFINITY)));
  total = c.where(endless, limit, total);
  total = c.where(c.op("And", {c.op("LessOrEqual", {q, zero}), whole}), number(c, INFINITY), total);
  total = c.where(c.op("Equal", {s, one}), number(c, INFINITY), total);
  return c.where(below, number(c, NAN), total);
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
  Value* middle = c.mul(number(c, M_SQRT2), erfinv(c, t));
  // Far out by Newton's method on the logarithm, from the side on which it never oversteps.
  Value* upper = c.op("Greater", {p, number(c, 0.5)});
  Value* tail = c.where(upper, c.sub(number(c, 1), p), p);
  Value* outside = c.op("And", {c.op("Greater", {tail, number(c, 0)}), less(c, tail, 0.01)});
  Value* target = log_of(c, c.where(outside, tail, number(c, 0.005)));
  Value* x = c.op("Neg", {c.op("Sqrt", {c.mul(number(c, -2), target)})});
  for (int i = 0; i < 6; ++i) {
    Value* value = log_ndtr(c, x);
    Value* density =
        c.sub(c.mul(number(c, -0.5), c.mul(x, x)), number(c, 0.5 * std::log(2 * M_PI)));
    Value* slope = exp_of(c, c.sub(density, value));
    x = c.sub(x, c.div(c.sub(value, target), slope));
  }
  x = c.where(upper, c.op("Neg", {x}), x);
  return c.where(less(c, p, 0), number(c, NAN), c.where(outside, x, middle));
}

// ---- Bessel functions ----

constexpr int kPoints = 128;
constexpr double kFar = 25;  ///< from here on the asymptotic series has all digits

/// Coefficients of Hankel's asymptotic series: of 1, 1/x, 1/x^2, ..
Reals hankel(double order) {
  Reals a = {1};
  for (int k = 1; k <= 24; ++k)
    a.push_back(a.back() * (4 * order * order - (2 * k - 1) * (2 * k - 1)) / (8 * k));
  return a;
}
/// x itself where it is far, and a far number elsewhere.
Value* far_part(C& c, Value* near, Value* x) { return c.where(near, number(c, kFar), x); }

/// sqrt(pi x / 2) times J or Y of far x: waves whose amplitudes are series.
Value* far_wave(C& c, double order, Value* x, bool second, double phase) {
  const Reals a = hankel(order);
  Reals even, odd;
  for (size_t k = 0; k < a.size(); ++k) (k % 2 ? odd : even).push_back(k / 2 % 2 ? -a[k] : a[k]);
  Value* r = c.op("Reciprocal", {x});
  Value* square = c.mul(r, r);
  Value *p = power_series(c, square, even), *q = c.mul(r, power_series(c, square, odd));
  Value* turn = c.sub(x, number(c, phase));
  Value *cosine = c.op("Cos", {turn}), *sine = c.op("Sin", {turn});
  return second ? c.add(c.mul(sine, p), c.mul(cosine, q)) : c.sub(c.mul(cosine, p), c.mul(sine, q));
}
Value* far_bessel(C& c, int n, Value* x, bool second) {
  Value* size = c.op("Sqrt", {c.div(number(c, 2 / M_PI), x)});
  return c.mul(size, far_wave(c, n, x, second, (n + 0.5) * M_PI / 2));
}

/// Angles over the whole circle, for trapezoids of periodic integrands.
Reals angles(double (*f)(double)) {
  Reals values;
  for (int j = 0; j < kPoints; ++j) values.push_back(f(2 * M_PI * (j + 0.5) / kPoints));
  return values;
}
double sine(double t) { return std::sin(t); }

Value* mean_last(C& c, Value* x) {
  return c.op("ReduceMean", {x, c.b.ints({-1})}, {{"keepdims", 0}});
}

/// J_n(x): the mean of cos(n t - x sin t).
Value* bessel_j(C& c, int n, Value* x) {
  Reals phase;
  for (int j = 0; j < kPoints; ++j) phase.push_back(n * 2 * M_PI * (j + 0.5) / kPoints);
  Value* arg = c.sub(constants(c, phase), c.mul(c.unsqueeze(x, {-1}), constants(c, angles(sine))));
  Value* mean = mean_last(c, c.op("Cos", {arg}));
  Value* size = c.op("Abs", {x});
  Value* near = less(c, size, kFar);
  Value* far = far_bessel(c, n, far_part(c, near, size), false);
  return c.where(near, mean, n == 1 ? c.mul(c.op("Sign", {x}), far) : far);
}
Value* bessel_j0(C& c, Value* x) { return bessel_j(c, 0, x); }
Value* bessel_j1(C& c, Value* x) { return bessel_j(c, 1, x); }

/// Neumann's series in J_2k, summed under the integral.
Value* bessel_y(C& c, int n, Value* x) {
  Reals weight;
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
  Value* near = less(c, x, kFar);
  y = c.where(near, y, far_bessel(c, n, far_part(c, near, x), true));
  y = c.where(c.op("Equal", {x, number(c, 0)}), number(c, -INFINITY), y);
  return c.where(less(c, x, 0), number(c, NAN), y);
}
Value* bessel_y0(C& c, Value* x) { return bessel_y(c, 0, x); }
Value* bessel_y1(C& c, Value* x) { return bessel_y(c, 1, x); }

/// exp(-|x|) I_n(x): the mean of exp(|x| (cos t - 1)) cos(n t).
Value* bessel_ie(C& c, int n, Value* x) {
  Reals weight, less_one;
  for (int j = 0; j < kPoints; ++j) {
    const double t = 2 * M_PI * (j + 0.5) / kPoints;
    weight.push_back(std::cos(n * t));
    less_one.push_back(std::cos(t) - 1);
  }
  Value* a = c.op("Abs", {x});
  Value* y = mean_last(c, c.mul(exp_of(c, c.mul(c.unsqueeze(a, {-1}), constants(c, less_one))),
                                constants(c, weight)));
  Reals series = hankel(n);
  for (size_t k = 1; k < series.size(); k += 2) series[k] = -series[k];
  Value* near = less(c, a, kFar);
  Value* r = c.op("Reciprocal", {far_part(c, near, a)});
  Value* size = c.op("Sqrt", {c.mul(r, number(c, 0.5 / M_PI))});
  y = c.where(near, y, c.mul(size, power_series(c, r, series)));
  return n == 1 ? c.mul(c.op("Sign", {x}), y) : y;
}
Value* i0e(C& c, Value* x) { return bessel_ie(c, 0, x); }
Value* i1e(C& c, Value* x) { return bessel_ie(c, 1, x); }
/// exp(x) y; where that is infinite and y nothing, it is the former that counts.
Value* grown(C& c, Value* x, Value* y) {
  Value* size = exp_of(c, x);
  Value* overflow = c.op("And", {c.op("IsInf", {size}), c.op("Not", {c.op("IsInf", {x})})});
  return c.where(overflow, c.mul(c.op("Sign", {y}), size), c.mul(y, size));
}
Value* i0(C& c, Value* x) { return grown(c, c.op("Abs", {x}), i0e(c, x)); }
Value* i1(C& c, Value* x) { return grown(c, c.op("Abs", {x}), i1e(c, x)); }

/// exp(x) K_n(x) from 1 on: the integral of exp(-x (cosh t - 1)) cosh(n t), then its series.
Value* far_ke(C& c, double order, Value* x) {
  Reals weight, less_one;
  const double step = 1.0 / 24;
  for (int j = 0; j < 120; ++j) {
    const double t = j * step;
    weight.push_back((j == 0 ? 0.5 : 1) * step * std::cosh(order * t));
    less_one.push_back(1 - std::cosh(t));
  }
  Value* y = sum_last(c, c.mul(exp_of(c, c.mul(c.unsqueeze(x, {-1}), constants(c, less_one))),
                               constants(c, weight)));
  Value* near = less(c, x, kFar);
  Value* r = c.op("Reciprocal", {far_part(c, near, x)});
  Value* size = c.op("Sqrt", {c.mul(r, number(c, M_PI / 2))});
  return c.where(near, y, c.mul(size, power_series(c, r, hankel(order))));
}

/// K_n(x) up to 1: its series, whose logarithm stands beside that of I_n.
Value* near_k(C& c, int n, Value* x) {
  Reals of_i, of_psi;
  double factor = 1, psi = -0.57721566490153286;  // of k + 1
  for (int k = 0; k < 12; ++k) {
    const double next = psi + 1.0 / (k + 1);
    of_i.push_back(factor);
    of_psi.push_back(factor * (n == 0 ? psi : psi + next));
    factor /= n == 0 ? (k + 1.0) * (k + 1) : (k + 1.0) * (k + 2);
    psi = next;
  }
  Value* half = c.mul(x, number(c, 0.5));
  Value* square = c.mul(half, half);
  Value *i = power_series(c, square, of_i), *rest = power_series(c, square, of_psi);
  Value* log = log_of(c, half);
  if (n == 0) return c.sub(rest, c.mul(log, i));
  rest = c.sub(c.mul(log, i), c.mul(number(c, 0.5), rest));
  return c.add(c.op("Reciprocal", {x}), c.mul(half, rest));
}

Value* bessel_k(C& c, int n, Value* x, bool scaled) {
  Value* near = less(c, x, 1);
  Value* close = near_k(c, n, c.where(near, x, number(c, 1)));
  Value* out = c.where(near, number(c, 1), x);
  Value* far = far_ke(c, n, out);
  if (scaled)
    close = c.mul(close, exp_of(c, x));
  else
    far = c.mul(far, exp_of(c, c.op("Neg", {out})));
  Value* y = c.where(near, close, far);
  y = c.where(c.op("Equal", {x, number(c, 0)}), number(c, INFINITY), y);
  return c.where(less(c, x, 0), number(c, NAN), y);
}
Value* k0e(C& c, Value* x) { return bessel_k(c, 0, x, true); }
Value* k1e(C& c, Value* x) { return bessel_k(c, 1, x, true); }
Value* k0(C& c, Value* x) { return bessel_k(c, 0, x, false); }
Value* k1(C& c, Value* x) { return bessel_k(c, 1, x, false); }

/// Ai(x): its series; right of it by K_1/3, left of it as a wave.
Value* airy_ai(C& c, Value* x) {
  constexpr double kLeft = -8, kRight = 2;
  Value *left = less(c, x, kLeft), *right = c.op("Greater", {x, number(c, kRight)});
  Value* inside = c.where(c.op("Or", {left, right}), number(c, 0), x);
  // Ai(0) f(x) + Ai'(0) g(x), each a series in x^3.
  Reals f = {0.35502805388781723926}, g = {-0.25881940379280679840};
  for (int k = 1; k < 44; ++k) {
    f.push_back(f.back() / ((3.0 * k - 1) * (3 * k)));
    g.push_back(g.back() / ((3.0 * k) * (3 * k + 1)));
  }
  Value* cube = c.mul(c.mul(inside, inside), inside);
  Value* near = c.add(power_series(c, cube, f), c.mul(inside, power_series(c, cube, g)));
  Value* size = c.where(c.op("Or", {left, right}), c.op("Abs", {x}), number(c, 9));
  Value* root = c.op("Sqrt", {size});
  Value* z = c.mul(number(c, 2.0 / 3), c.mul(size, root));
  Value* decay = c.mul(c.mul(number(c, 1 / (M_PI * std::sqrt(3.0))), root),
                       c.mul(far_ke(c, 1.0 / 3, z), exp_of(c, c.op("Neg", {z}))));
  Value* wave = c.div(far_wave(c, 1.0 / 3, z, false, M_PI / 4),
                      c.mul(number(c, std::sqrt(M_PI)), c.op("Sqrt", {root})));
  Value* y = c.where(right, decay, c.where(left, wave, near));
  return c.where(c.op("IsInf", {x}), number(c, NAN), y);
}

Value* spherical_j0(C& c, Value* x) {
  Value* zero = c.op("Equal", {x, number(c, 0)});
  Value* endless = c.op("IsInf", {x});
  Value* safe = c.where(c.op("Or", {zero, endless}), number(c, 1), x);
  Value* y = c.where(zero, number(c, 1), c.div(c.op("Sin", {safe}), safe));
  return c.where(endless, number(c, 0), y);
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
  c.out(c.cast(polygamma(c, c.count(c.integer("n"), 1 << 10), c.operand("self", kWide)), type));
}

void zeta(C& c) {
  const DType type = c.promote({"self", "other"}, Promotion::kIntToFloat);
  c.out(c.cast(hurwitz(c, c.operand("self", kWide), c.operand("other", kWide)), type));
}

void mvlgamma(C& c) {
  const DType type = c.promote({"self"}, Promotion::kIntToFloat);
  const int64_t p = c.count(c.integer("p"), 256);
  Value* x = c.operand("self", kWide);
  Value* sum = number(c, static_cast<double>(p * (p - 1)) / 4 * std::log(M_PI));
  for (int64_t j = 0; j < p; ++j)
    sum = c.add(sum, lgamma(c, c.sub(x, number(c, 0.5 * static_cast<double>(j)))));
  c.out(c.cast(sum, type));
}

/// Points and weights of Gauss and Legendre's quadrature between 0 and 1.
std::pair<Reals, Reals> legendre(int count) {
  std::pair<Reals, Reals> result;
  for (int i = 0; i < count; ++i) {
    double x = std::cos(M_PI * (i + 0.75) / (count + 0.5)), slope = 1;
    for (int round = 0; round < 8; ++round) {
      double old = 1, now = x;
      for (int k = 2; k <= count; ++k) {
        const double next = ((2 * k - 1) * x * now - (k - 1) * old) / k;
        old = std::exchange(now, next);
      }
      slope = count * (x * now - old) / (x * x - 1);
      x -= now / slope;
    }
    result.first.push_back((1 - x) / 2);
    result.second.push_back(1 / ((1 - x * x) * slope * slope));
  }
  return result;
}

/// The smaller of P and Q for large a: with t = x exp(-u) or x exp(u) what lies beyond x is
/// x^a exp(-x) / Gamma(a) times the integral of exp(-|a - x| u - x (exp(-u) - 1 + u)), of which
/// nothing is left where the exponent reaches 40.
Value* gamma_beyond(C& c, Value* a, Value* x, Value* low) {
  const auto [points, weights] = legendre(64);
  Value* distance = c.op("Abs", {c.sub(a, x)});
  // exp(-u) - 1 + u is more than u^2 / (u + 2).
  Value* b = c.sub(c.mul(number(c, 2), distance), number(c, 40));
  Value* square = c.add(c.mul(b, b), c.mul(number(c, 320), c.add(distance, x)));
  Value* length = c.div(number(c, 160), c.add(b, c.op("Sqrt", {square})));
  Value* u = c.mul(c.unsqueeze(length, {-1}), constants(c, points));
  Value* v = c.where(c.unsqueeze(low, {-1}), c.op("Neg", {u}), u);
  // exp(v) - 1 - v, by its series where little is left of it.
  Value* small = c.op("Less", {u, number(c, 0.5)});
  Value* w = c.where(small, v, number(c, 0));
  Reals terms;
  double factor = 0.5;
  for (int k = 3; k < 18; ++k) {
    terms.push_back(factor);
    factor /= k;
  }
  Value* bend = c.where(small, c.mul(c.mul(w, w), power_series(c, w, terms)),
                        c.sub(c.sub(exp_of(c, v), number(c, 1)), v));
  Value* exponent = c.add(c.mul(c.unsqueeze(distance, {-1}), u), c.mul(c.unsqueeze(x, {-1}), bend));
  Value* integral =
      c.mul(length, sum_last(c, c.mul(exp_of(c, c.op("Neg", {exponent})), constants(c, weights))));
  // x^a exp(-x) / Gamma(a) with m = (x - a) / a: a (log(1 + m) - m), and Stirling's series.
  Value* m = c.div(c.sub(x, a), a);
  Value* near = c.op("Less", {c.op("Abs", {m}), number(c, 0.1)});
  Value* t = c.where(near, m, number(c, 0));
  Reals log_terms;
  for (int k = 2; k < 20; ++k) log_terms.push_back((k % 2 ? 1.0 : -1.0) / k);
  Value* gap = c.where(near, c.mul(c.mul(t, t), power_series(c, t, log_terms)),
                       c.sub(log_of(c, c.div(x, a)), m));
  Value* r = c.op("Reciprocal", {a});
  Value* stirling =
      c.mul(r, power_series(c, c.mul(r, r), {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680}));
  Value* front = c.mul(exp_of(c, c.sub(c.mul(a, gap), stirling)),
                       c.op("Sqrt", {c.mul(a, number(c, 0.5 / M_PI))}));
  return c.mul(front, integral);
}

/// The regularised incomplete gamma functions: the series for P, the fraction for Q; for large a
/// an integral.
void igamma(C& c) {
  const DType type = c.promote({"self", "other"}, Promotion::kIntToFloat);
  Value *a = c.operand("self", kWide), *x = c.operand("other", kWide);
  Value *zero = number(c, 0), *one = number(c, 1);
  Value* finite = c.op("Not", {c.op("Or", {c.op("IsInf", {a}), c.op("IsInf", {x})})});
  Value* positive = c.op("And", {c.op("Greater", {a, zero}), c.op("GreaterOrEqual", {x, zero})});
  Value* proper = c.op("And", {finite, positive});
  Value* large = c.op("And", {proper, c.op("Greater", {a, number(c, 20)})});
  Value *far_a = c.where(large, a, number(c, 30)), *far_x = c.where(large, x, number(c, 30));
  Value* far_low = c.op("LessOrEqual", {far_x, far_a});
  Value* beyond = gamma_beyond(c, far_a, far_x, far_low);
  Value* usual = c.op("And", {proper, c.op("Not", {large})});
  Value *b = c.where(usual, a, one), *y = c.where(usual, x, one);
  Value* front = exp_of(c, c.sub(c.sub(c.mul(b, log_of(c, y)), y), lgamma(c, b)));
  Value* low = c.op("Less", {y, c.add(b, one)});
  // P = front * sum x^k / (a (a+1) ... (a+k))
  Value* term = c.op("Reciprocal", {b});
  Value* series = term;
  for (int k = 1; k < 80; ++k) {
    term = c.mul(term, c.div(y, c.add(b, number(c, k))));
    series = c.add(series, term);
  }
  Value* p = c.mul(front, series);
  // Q by the continued fraction, from its end.
  Value* safe = c.where(low, c.add(b, number(c, 2)), y);
  Value* f = c.add(c.sub(safe, b), number(c, 2 * 80 + 1));
  for (int k = 80; k >= 1; --k) {
    Value* above = c.mul(number(c, k), c.sub(number(c, k), b));
    f = c.sub(c.add(c.sub(safe, b), number(c, 2 * k - 1)), c.div(above, f));
  }
  Value* q = c.div(front, f);
  const bool upper = std::string_view(c.detail()) == "upper";
  Value* smaller = c.where(large, beyond, c.where(low, p, q));
  Value* is_p = c.where(large, far_low, low);
  Value* other = c.sub(one, smaller);
  Value* result = upper ? c.where(is_p, other, smaller) : c.where(is_p, smaller, other);
  // At the edges: what of the function lies below x is nothing, or everything.
  Value *none = number(c, upper ? 1 : 0), *whole = number(c, upper ? 0 : 1);
  result = c.where(c.op("Equal", {x, zero}), none, result);
  result = c.where(c.op("IsInf", {x}), whole, result);
  result = c.where(c.op("IsInf", {a}), none, result);
  result = c.where(c.op("Equal", {a, zero}), whole, result);
  // Nothing is known of 0 in 0, of infinity in infinity, and of negative numbers.
  Value* open = c.op("And", {c.op("Equal", {a, x}),
                             c.op("Not", {c.op("And", {finite, c.op("Greater", {a, zero})})})});
  Value* bad = c.op("Or", {open, c.op("Or", {less(c, x, 0), less(c, a, 0)})});
  bad = c.op("Or", {bad, c.op("Or", {c.op("IsNaN", {x}), c.op("IsNaN", {a})})});
  c.out(c.cast(c.where(bad, number(c, NAN), result), type));
}

/// Orthogonal polynomials by their recurrence; the degree is a tensor, too.
void polynomial(C& c) {
  const std::string_view kind = c.detail();
  const DType type = c.promote({"x", "n"}, Promotion::kIntToFloat);
  Value *x = c.operand("x", kWide), *n = c.operand("n", kWide);
  n = c.where(less(c, n, 0), c.op("Ceil", {n}), c.op("Floor", {n}));
  // What is no degree, or more than an integer holds, counts as a negative one: the result is 0.
  n = c.where(less(c, n, 9.2e18), n, number(c, -1));
  const bool shifted = kind.starts_with("shifted");
  if (shifted) x = c.sub(c.mul(number(c, 2), x), number(c, 1));
  Value* zero = c.mul(c.cast(c.op("Less", {x, n}), kWide), number(c, 0));  // of both shapes
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
  Node* node = c.b.begin("Loop", Values{trips, nullptr, p0, p1, p1});
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
    UNARY_X("special_airy_ai", airy_ai),
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
