// Functions of Python's math module on numbers of the program: computed now where the number is
// known, nodes on doubles where it is not.

#include <cmath>
#include <numeric>

#include "formats/pytorch/script/builtins.h"

namespace tombolo::script {

namespace {

using AKind = Arg::Kind;

bool is_real(const Item& item) { return item.is_number() && item.arg.kind != AKind::kComplex; }
std::optional<double> known(const Item& item) {
  if (!is_real(item) || item.arg.computed) return std::nullopt;
  if (item.arg.kind == AKind::kFloat) return item.arg.real;
  if (!item.arg.integer.is_number()) return std::nullopt;
  return static_cast<double>(item.arg.integer.dim.value());
}
Item real(Value* value) {
  Arg arg;
  arg.kind = AKind::kFloat;
  arg.computed = value;
  return Item(std::move(arg));
}
Item flag(Value* value) {
  Arg arg;
  arg.kind = AKind::kBool;
  arg.computed = value;
  return Item(std::move(arg));
}
Item integer(AtenContext& c, Value* value) {
  return Item(Arg(SymInt(SymDim(), c.cast(value, DType::kInt64))));
}
Value* operand(Interpreter& in, const Item& item) {
  return in.context().operand_of(item.arg, DType::kFloat64);
}
Value* number(Interpreter& in, double value) {
  return in.context().b.scalar(value, DType::kFloat64);
}

using Node = Value* (*)(Interpreter&, Value*);

Answer unary(Interpreter& in, Items& args, double (*function)(double), Node node) {
  if (args.size() != 1 || !is_real(args[0])) return not_mine();
  if (const auto x = known(args[0])) return answer(Item(Arg(function(*x))));
  return answer(real(node(in, operand(in, args[0]))));
}

#define UNARY(NAME, FUNCTION, OP)                                                    \
  Answer NAME(Interpreter& in, Items& args, NamedItems&) {                           \
    return unary(                                                                    \
        in, args, [](double x) -> double { return FUNCTION; },                       \
        [](Interpreter& i, Value* x) -> Value* { return i.context().op(OP, {x}); }); \
  }
UNARY(sqrt_of, std::sqrt(x), "Sqrt")
UNARY(exp_of, std::exp(x), "Exp")
UNARY(log_of_one, std::log(x), "Log")
UNARY(sin_of, std::sin(x), "Sin")
UNARY(cos_of, std::cos(x), "Cos")
UNARY(tan_of, std::tan(x), "Tan")
UNARY(asin_of, std::asin(x), "Asin")
UNARY(acos_of, std::acos(x), "Acos")
UNARY(atan_of, std::atan(x), "Atan")
UNARY(sinh_of, std::sinh(x), "Sinh")
UNARY(cosh_of, std::cosh(x), "Cosh")
UNARY(tanh_of, std::tanh(x), "Tanh")
UNARY(asinh_of, std::asinh(x), "Asinh")
UNARY(acosh_of, std::acosh(x), "Acosh")
UNARY(atanh_of, std::atanh(x), "Atanh")
UNARY(erf_of, std::erf(x), "Erf")
UNARY(round_real, std::nearbyint(x), "Round")
UNARY(fabs_of, std::fabs(x), "Abs")
#undef UNARY

double to_degrees(double x) { return x * 180 / M_PI; }
double to_radians(double x) { return x * M_PI / 180; }
Answer degrees(Interpreter& in, Items& args, NamedItems&) {
  return unary(in, args, to_degrees, [](Interpreter& i, Value* x) -> Value* {
    return i.context().mul(x, number(i, 180 / M_PI));
  });
}
Answer radians(Interpreter& in, Items& args, NamedItems&) {
  return unary(in, args, to_radians, [](Interpreter& i, Value* x) -> Value* {
    return i.context().mul(x, number(i, M_PI / 180));
  });
}
Answer log10_of(Interpreter& in, Items& args, NamedItems&) {
  return unary(
      in, args, [](double x) { return std::log10(x); },
      [](Interpreter& i, Value* x) -> Value* {
        return i.context().div(i.context().op("Log", {x}), number(i, M_LN10));
      });
}
Answer log2_of(Interpreter& in, Items& args, NamedItems&) {
  return unary(
      in, args, [](double x) { return std::log2(x); },
      [](Interpreter& i, Value* x) -> Value* {
        return i.context().div(i.context().op("Log", {x}), number(i, M_LN2));
      });
}
/// Beyond rounding only where the argument is tiny: the correction is Kahan's.
Answer log1p_of(Interpreter& in, Items& args, NamedItems&) {
  return unary(
      in, args, [](double x) { return std::log1p(x); },
      [](Interpreter& i, Value* x) -> Value* {
        AtenContext& c = i.context();
        Value* one = number(i, 1);
        Value* u = c.add(x, one);
        Value* moved = c.op("Sub", {u, one});
        Value* exact = c.op("Equal", {moved, number(i, 0)});
        Value* safe = c.where(exact, one, moved);
        return c.where(exact, x, c.mul(c.op("Log", {u}), c.div(x, safe)));
      });
}
Answer expm1_of(Interpreter& in, Items& args, NamedItems&) {
  return unary(
      in, args, [](double x) { return std::expm1(x); },
      [](Interpreter& i, Value* x) -> Value* {
        // 2 sinh(x / 2) exp(x / 2)
        AtenContext& c = i.context();
        Value* half = c.mul(x, number(i, 0.5));
        return c.mul(number(i, 2), c.mul(c.op("Sinh", {half}), c.op("Exp", {half})));
      });
}
template <double (*Function)(double)>
Answer known_only(Interpreter&, Items& args, NamedItems&) {
  if (args.size() != 1 || !is_real(args[0])) return not_mine();
  const auto x = known(args[0]);
  if (!x) return unsupported("a gamma or error function of a number that depends on data");
  return answer(Item(Arg(Function(*x))));
}

Answer log_of(Interpreter& in, Items& args, NamedItems& named) {
  if (args.size() != 2 || !is_real(args[0]) || !is_real(args[1])) {
    return log_of_one(in, args, named);
  }
  const auto x = known(args[0]), base = known(args[1]);
  if (x && base) return answer(Item(Arg(std::log(*x) / std::log(*base))));
  AtenContext& c = in.context();
  return answer(
      real(c.div(c.op("Log", {operand(in, args[0])}), c.op("Log", {operand(in, args[1])}))));
}

Answer absolute(Interpreter& in, Items& args, NamedItems& named) {
  if (args.size() == 1 && (args[0].is_arg(AKind::kInt) || args[0].is_arg(AKind::kBool))) {
    AtenContext& c = in.context();
    const SymInt& x = args[0].arg.integer;
    if (known(args[0]) && x.dim.value() != INT64_MIN)
      return answer(Item(Arg(std::abs(x.dim.value()))));
    return answer(integer(c, c.op("Abs", {c.operand_of(args[0].arg, DType::kInt64)})));
  }
  return fabs_of(in, args, named);
}
/// To an integer.
Answer rounded(Interpreter& in, Items& args, const char* node, double (*function)(double)) {
  if (args.size() != 1 || !is_real(args[0])) return not_mine();
  if (args[0].arg.kind == AKind::kInt) return answer(args[0]);
  if (const auto x = known(args[0])) {
    const auto whole = pytorch::to_int64(function(*x));
    if (!whole) return unsupported("an integer beyond 64 bits");
    return answer(Item(Arg(*whole)));
  }
  AtenContext& c = in.context();
  Value* x = operand(in, args[0]);
  return answer(integer(c, node ? c.op(node, {x}) : x));
}
Answer ceil_of(Interpreter& in, Items& args, NamedItems&) {
  return rounded(in, args, "Ceil", [](double x) { return std::ceil(x); });
}
Answer floor_of(Interpreter& in, Items& args, NamedItems&) {
  return rounded(in, args, "Floor", [](double x) { return std::floor(x); });
}
Answer trunc_of(Interpreter& in, Items& args, NamedItems&) {
  return rounded(in, args, nullptr, [](double x) { return std::trunc(x); });
}
Answer round_of(Interpreter& in, Items& args, NamedItems& named) {
  if (args.size() == 1 && args[0].is_arg(AKind::kInt)) return answer(args[0]);
  return round_real(in, args, named);
}

/// Functions of two numbers.
bool pair(const Items& args) { return args.size() == 2 && is_real(args[0]) && is_real(args[1]); }

Answer fmod_of(Interpreter& in, Items& args, NamedItems&) {
  if (!pair(args)) return not_mine();
  const auto a = known(args[0]), b = known(args[1]);
  if (a && b) return answer(Item(Arg(std::fmod(*a, *b))));
  return answer(real(in.context().op("Mod", {operand(in, args[0]), operand(in, args[1])},
                                     {{"fmod", int64_t{1}}})));
}
Answer copysign_of(Interpreter& in, Items& args, NamedItems&) {
  if (!pair(args)) return not_mine();
  const auto a = known(args[0]), b = known(args[1]);
  if (a && b) return answer(Item(Arg(std::copysign(*a, *b))));
  AtenContext& c = in.context();
  Value* size = c.op("Abs", {operand(in, args[0])});
  // Of a negative zero too: its reciprocal is negative.
  Value *sign = operand(in, args[1]), *zero = number(in, 0);
  Value* low = c.op("Less", {sign, zero});
  Value* minus = c.op("Less", {c.div(number(in, 1), sign), zero});
  return answer(real(c.where(c.op("Or", {low, minus}), c.op("Neg", {size}), size)));
}
Answer atan2_of(Interpreter& in, Items& args, NamedItems&) {
  if (!pair(args)) return not_mine();
  const auto a = known(args[0]), b = known(args[1]);
  if (a && b) return answer(Item(Arg(std::atan2(*a, *b))));
  AtenContext& c = in.context();
  TRY(Item angle, in.aten("atan2", {Item(Arg(c.cell(operand(in, args[0])))),
                                    Item(Arg(c.cell(operand(in, args[1]))))}));
  return answer(real(c.read(angle.arg.tensor)));
}
Answer hypot_of(Interpreter& in, Items& args, NamedItems&) {
  if (!pair(args)) return not_mine();
  const auto a = known(args[0]), b = known(args[1]);
  if (a && b) return answer(Item(Arg(std::hypot(*a, *b))));
  AtenContext& c = in.context();
  Value *x = operand(in, args[0]), *y = operand(in, args[1]);
  return answer(real(c.op("Sqrt", {c.add(c.mul(x, x), c.mul(y, y))})));
}
Answer ldexp_of(Interpreter& in, Items& args, NamedItems&) {
  if (!pair(args)) return not_mine();
  const auto a = known(args[0]), b = known(args[1]);
  if (a && b) return answer(Item(Arg(std::ldexp(*a, static_cast<int>(*b)))));
  AtenContext& c = in.context();
  return answer(
      real(c.mul(operand(in, args[0]), c.op("Pow", {number(in, 2), operand(in, args[1])}))));
}
Answer gcd_of(Interpreter&, Items& args, NamedItems&) {
  if (!pair(args)) return not_mine();
  const auto a = known(args[0]), b = known(args[1]);
  if (!a || !b) return unsupported("a greatest common divisor that depends on data");
  return answer(Item(Arg(std::gcd(static_cast<int64_t>(*a), static_cast<int64_t>(*b)))));
}
Answer factorial_of(Interpreter&, Items& args, NamedItems&) {
  if (args.size() != 1 || !is_real(args[0])) return not_mine();
  const auto n = known(args[0]);
  if (!n || *n < 0 || *n > 20) return unsupported("a factorial of this number");
  int64_t product = 1;
  for (int64_t i = 2; i <= static_cast<int64_t>(*n); ++i) product *= i;
  return answer(Item(Arg(product)));
}
Answer divmod_of(Interpreter& in, Items& args, NamedItems&) {
  if (!pair(args)) return not_mine();
  TRY(Item quotient, in.invoke("torch.floordiv", {args[0], args[1]}));
  TRY(Item rest, in.invoke("torch.remainder", {args[0], args[1]}));
  return answer(Item::tuple({quotient, rest}));
}
Answer modf_of(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 1 || !is_real(args[0])) return not_mine();
  if (const auto x = known(args[0])) {
    double whole = 0;
    const double part = std::modf(*x, &whole);
    return answer(Item::tuple({Item(Arg(part)), Item(Arg(whole))}));
  }
  AtenContext& c = in.context();
  Value* x = operand(in, args[0]);
  Value* whole = c.cast(c.cast(x, DType::kInt64), DType::kFloat64);
  return answer(Item::tuple({real(c.op("Sub", {x, whole})), real(whole)}));
}

Answer is_nan(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 1 || !is_real(args[0])) return not_mine();
  if (const auto x = known(args[0])) return answer(Item(Arg(bool{std::isnan(*x)})));
  return answer(flag(in.context().op("IsNaN", {operand(in, args[0])})));
}
Answer is_infinite(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 1 || !is_real(args[0])) return not_mine();
  if (const auto x = known(args[0])) return answer(Item(Arg(bool{std::isinf(*x)})));
  Value* magnitude = in.context().op("Abs", {operand(in, args[0])});
  return answer(flag(in.context().op("Equal", {magnitude, number(in, INFINITY)})));
}
Answer is_finite(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 1 || !is_real(args[0])) return not_mine();
  if (const auto x = known(args[0])) return answer(Item(Arg(bool{std::isfinite(*x)})));
  Value* magnitude = in.context().op("Abs", {operand(in, args[0])});
  return answer(flag(in.context().op("Less", {magnitude, number(in, INFINITY)})));
}

/// Shifts of integers: products and floor quotients.
Answer shift_left(Interpreter& in, Items& args, NamedItems&) {
  if (!pair(args)) return not_mine();
  const auto by = known(args[1]);
  if (!by || *by < 0 || *by > 62) return unsupported("a shift by a number that depends on data");
  return answer(Item(
      Arg(in.context().mul(args[0].arg.integer, SymInt(int64_t{1} << static_cast<int64_t>(*by))))));
}
Answer shift_right(Interpreter& in, Items& args, NamedItems&) {
  if (!pair(args)) return not_mine();
  const auto by = known(args[1]);
  if (!by || *by < 0 || *by > 62) return unsupported("a shift by a number that depends on data");
  return answer(Item(Arg(in.context().floor_div(args[0].arg.integer,
                                                SymInt(int64_t{1} << static_cast<int64_t>(*by))))));
}

constexpr BuiltinRow kMathRows[] = {
    {"abs", absolute},
    {"fabs", fabs_of},
    {"ceil", ceil_of},
    {"floor", floor_of},
    {"trunc", trunc_of},
    {"round", round_of},
    {"sqrt", sqrt_of},
    {"exp", exp_of},
    {"expm1", expm1_of},
    {"log", log_of},
    {"log2", log2_of},
    {"log10", log10_of},
    {"log1p", log1p_of},
    {"sin", sin_of},
    {"cos", cos_of},
    {"tan", tan_of},
    {"asin", asin_of},
    {"acos", acos_of},
    {"atan", atan_of},
    {"atan2", atan2_of},
    {"sinh", sinh_of},
    {"cosh", cosh_of},
    {"tanh", tanh_of},
    {"asinh", asinh_of},
    {"acosh", acosh_of},
    {"atanh", atanh_of},
    {"erf", erf_of},
    {"erfc", known_only<std::erfc>},
    {"gamma", known_only<std::tgamma>},
    {"lgamma", known_only<std::lgamma>},
    {"degrees", degrees},
    {"radians", radians},
    {"hypot", hypot_of},
    {"fmod", fmod_of},
    {"modf", modf_of},
    {"ldexp", ldexp_of},
    {"copysign", copysign_of},
    {"gcd", gcd_of},
    {"factorial", factorial_of},
    {"divmod", divmod_of},
    {"isnan", is_nan},
    {"isinf", is_infinite},
    {"isfinite", is_finite},
    {"__lshift__", shift_left},
    {"__rshift__", shift_right},
};

}  // namespace

std::span<const BuiltinRow> math_builtins() { return kMathRows; }

}  // namespace tombolo::script
