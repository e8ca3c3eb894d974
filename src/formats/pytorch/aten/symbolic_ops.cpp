// Numbers of the program: sizes, Python's operators on them, values read out of tensors.

#include <cmath>

#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

void size(C& c) {
  Value* x = c.x("self");
  const int64_t r = c.rank(x) - (c.is_complex("self") ? 1 : 0);
  if (c.has_arg("dim")) return c.out_arg(Arg(c.size(x, c.axis(c.integer("dim"), r))));
  SymInts sizes = c.sizes(x);
  sizes.resize(static_cast<size_t>(r));
  c.out_arg(Arg::ints(sizes));
}

void numel(C& c) {
  SymInt count = c.numel(c.x("self"));
  if (c.is_complex("self")) count = c.floor_div(count, SymInt(2));
  c.out_arg(Arg(count));
}

void stride(C& c) {
  const Ref place = c.ref("self");  // kept: a refused one belongs to nobody else
  const Cell& self = *place;
  if (self.layout == CellLayout::kUnknown)
    return c.refuse("the strides of a tensor are not known here");
  if (self.layout == CellLayout::kStrided) {
    SymInts all(self.strides.begin(), self.strides.end());
    if (!c.has_arg("dim")) return c.out_arg(Arg::ints(all));
    return c.out_arg(
        Arg(all[static_cast<size_t>(c.axis(c.integer("dim"), static_cast<int64_t>(all.size())))]));
  }
  SymInts sizes = c.sizes(c.x("self")), strides(sizes.size(), SymInt(1));
  for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = c.mul(strides[i], sizes[i]);
  if (c.has_arg("dim"))
    return c.out_arg(Arg(strides[static_cast<size_t>(
        c.axis(c.integer("dim"), static_cast<int64_t>(sizes.size())))]));
  c.out_arg(Arg::ints(strides));
}

void storage_offset(C& c) { c.out_arg(Arg(0)); }

/// item(): the number in a tensor of one element.
void item(C& c) {
  Value* x = c.x("self");
  const DType type = c.type("self");
  if (const Tensor* constant = c.b.constant_value(x); constant && constant->size() == 1) {
    if (type == DType::kBool) return c.out_arg(Arg(constant->get_int64(0) != 0));
    if (is_integer(type)) return c.out_arg(Arg(constant->get_int64(0)));
    if (is_float(type)) return c.out_arg(Arg(constant->get_double(0)));
  }
  if (is_complex(type)) return c.refuse("a complex number read out of a tensor");
  Value* scalar = c.rank(x) == 0 ? x : c.reshape(x, {});
  Arg number;
  if (type == DType::kBool) {
    number = Arg(false);
    number.computed = scalar;
  } else if (is_integer(type)) {
    number = Arg(SymInt(SymDim(), c.cast(scalar, DType::kInt64)));
  } else {
    number = Arg(0.0);
    number.computed = c.cast(scalar, DType::kFloat64);
  }
  c.out_arg(std::move(number));
}

bool is_known(const Arg& a) {
  if (a.computed) return false;
  return a.kind == Arg::Kind::kFloat ||
         ((a.kind == Arg::Kind::kInt || a.kind == Arg::Kind::kBool) && a.integer.is_number());
}
double number_of(const Arg& a) {
  return a.kind == Arg::Kind::kFloat ? a.real
                                     : static_cast<double>(a.integer.dim.constant().value_or(0));
}

/// A computed number of the kind that `type` says.
Arg computed(C& c, Value* value) {
  const DType type = c.dtype(value);
  if (type == DType::kInt64) return Arg(SymInt(SymDim(), value));
  Arg arg = type == DType::kBool ? Arg(false) : Arg(0.0);
  arg.computed = value;
  return arg;
}

void arithmetic(C& c) {
  const std::string_view op = c.detail();
  const Arg &a = c.arg("a"), &z = c.arg("b");
  if (a.is_tensor() || z.is_tensor()) {
    static const std::pair<std::string_view, const char*> kTensor[] = {
        {"Add", "add.Tensor"},       {"Sub", "sub.Tensor"},        {"Mul", "mul.Tensor"},
        {"Div", "div.Tensor"},       {"FloorDiv", "floor_divide"}, {"Mod", "remainder.Tensor"},
        {"Pow", "pow.Tensor_Tensor"}};
    for (const auto& [name, overload] : kTensor)
      if (name == op) return c.out(c.lower(overload, {a, z}));
    return c.refuse("arithmetic of tensors");
  }
  const bool whole = (a.kind == Arg::Kind::kInt || a.kind == Arg::Kind::kBool) && !a.computed &&
                     (z.kind == Arg::Kind::kInt || z.kind == Arg::Kind::kBool) && !z.computed;
  if (whole && op != "Div" && op != "Pow") {
    const SymInt &x = a.integer, &y = z.integer;
    if (op == "Add") return c.out_arg(Arg(c.add(x, y)));
    if (op == "Sub") return c.out_arg(Arg(c.sub(x, y)));
    if (op == "Mul") return c.out_arg(Arg(c.mul(x, y)));
    if (op == "FloorDiv") return c.out_arg(Arg(c.floor_div(x, y)));
    if (op == "Mod") return c.out_arg(Arg(c.modulo(x, y)));
    if (op == "Min") return c.out_arg(Arg(c.minimum(x, y)));
    if (op == "Max") return c.out_arg(Arg(c.maximum(x, y)));
  }
  if (is_known(a) && is_known(z)) {
    const double x = number_of(a), y = number_of(z);
    if (whole && op == "Pow" && y >= 0) {
      const auto power = to_int64(std::round(std::pow(x, y)));
      if (!power) return c.refuse("an integer beyond 64 bits");
      return c.out_arg(Arg(*power));
    }
    const double r = op == "Add"        ? x + y
                     : op == "Sub"      ? x - y
                     : op == "Mul"      ? x * y
                     : op == "Div"      ? x / y
                     : op == "Pow"      ? std::pow(x, y)
                     : op == "FloorDiv" ? std::floor(x / y)
                     : op == "Mod"      ? x - y * std::floor(x / y)
                     : op == "Min"      ? std::min(x, y)
                                        : std::max(x, y);
    return c.out_arg(Arg(r));
  }
  if (whole && op == "Pow" && z.integer.is_number()) {
    SymInt result(1);
    for (int64_t i = 0; i < z.integer.dim.value() && i < 16; ++i) result = c.mul(result, a.integer);
    return c.out_arg(Arg(result));
  }
  const DType type = DType::kFloat64;
  Value *x = c.operand("a", type), *y = c.operand("b", type), *r = nullptr;
  if (op == "FloorDiv") {
    r = c.op("Floor", {c.div(x, y)});
  } else if (op == "Mod") {
    r = c.sub(x, c.mul(y, c.op("Floor", {c.div(x, y)})));
  } else {
    r = c.op(c.detail(), {x, y});
  }
  c.out_arg(computed(c, r));
}

void compare_symbols(C& c) {
  const std::string_view op = c.detail();
  const Arg &a = c.arg("a"), &z = c.arg("b");
  if (is_known(a) && is_known(z)) {
    const double x = number_of(a), y = number_of(z);
    return c.out_arg(Arg(op == "Equal"         ? x == y
                         : op == "NotEqual"    ? x != y
                         : op == "Less"        ? x < y
                         : op == "LessOrEqual" ? x <= y
                         : op == "Greater"     ? x > y
                                               : x >= y));
  }
  const bool whole = a.kind == Arg::Kind::kInt && z.kind == Arg::Kind::kInt;
  if (whole && a.integer.dim.equals(z.integer.dim))
    return c.out_arg(Arg(op == "Equal" || op == "LessOrEqual" || op == "GreaterOrEqual"));
  const DType type = whole ? DType::kInt64 : DType::kFloat64;
  Value *x = c.operand("a", type), *y = c.operand("b", type);
  Value* r = op == "NotEqual" ? c.op("Not", {c.op("Equal", {x, y})}) : c.op(c.detail(), {x, y});
  c.out_arg(computed(c, r));
}

void logic(C& c) {
  const std::string_view op = c.detail();
  const Arg &a = c.arg("a"), &z = c.arg("b");
  if (is_known(a) && is_known(z)) {
    const bool x = number_of(a) != 0, y = number_of(z) != 0;
    return c.out_arg(Arg(op == "And" ? x && y : op == "Or" ? x || y : x != y));
  }
  c.out_arg(
      computed(c, c.op(c.detail(), {c.operand("a", DType::kBool), c.operand("b", DType::kBool)})));
}

void logic_not(C& c) {
  const Arg& a = c.arg("a");
  if (is_known(a)) return c.out_arg(Arg(number_of(a) == 0));
  c.out_arg(computed(c, c.op("Not", {c.operand("a", DType::kBool)})));
}

void negate(C& c) {
  const Arg& a = c.arg("a");
  if (a.kind == Arg::Kind::kInt) return c.out_arg(Arg(c.sub(SymInt(0), a.integer)));
  if (is_known(a)) return c.out_arg(Arg(-number_of(a)));
  c.out_arg(computed(c, c.op("Neg", {c.operand("a", DType::kFloat64)})));
}

void positive(C& c) { c.out_arg(c.arg("a")); }

void absolute(C& c) {
  const Arg& a = c.arg("a");
  if (is_known(a)) {
    if (a.kind == Arg::Kind::kFloat) return c.out_arg(Arg(std::abs(a.real)));
  }
  if (a.kind == Arg::Kind::kInt || (a.kind == Arg::Kind::kBool && !a.computed))
    return c.out_arg(Arg(c.maximum(a.integer, c.sub(SymInt(0), a.integer))));
  c.out_arg(computed(c, c.op("Abs", {c.operand("a", DType::kFloat64)})));
}

/// Shifts by a number known now: a product or a quotient with a power of two.
void shift(C& c) {
  const int64_t by = c.integer("b");
  if (by < 0 || by > 62) return c.refuse("a shift by so many places");
  const SymInt power(int64_t{1} << by);
  const SymInt a = c.sym("a");
  c.out_arg(Arg(std::string_view(c.detail()) == "left" ? c.mul(a, power) : c.floor_div(a, power)));
}

void sum_of(C& c) {
  SymInt total(0);
  bool whole = true;
  for (const Arg& one : c.arg("args").list) {
    whole = whole && one.kind == Arg::Kind::kInt;
    if (whole) total = c.add(total, one.integer);
  }
  if (!whole) return c.refuse("a sum of other numbers than integers");
  c.out_arg(Arg(total));
}

void to_float(C& c) {
  const Arg& a = c.arg("a");
  if (is_known(a)) return c.out_arg(Arg(number_of(a)));
  c.out_arg(computed(c, c.operand("a", DType::kFloat64)));
}

/// int(), math.floor, ceil, trunc, round of a number.
void to_int(C& c) {
  const Arg& a = c.arg("a");
  const std::string_view how = c.detail();
  if (a.kind == Arg::Kind::kInt) return c.out_arg(a);
  if (is_known(a)) {
    const double x = number_of(a);
    const auto r = to_int64(how == "Floor"   ? std::floor(x)
                            : how == "Ceil"  ? std::ceil(x)
                            : how == "Round" ? std::nearbyint(x)
                                             : std::trunc(x));
    if (!r) return c.refuse("an integer beyond 64 bits");
    return c.out_arg(Arg(*r));
  }
  Value* x = c.operand("a", DType::kFloat64);
  if (how != "Trunc") x = c.op(c.detail(), {x});
  c.out_arg(computed(c, c.cast(x, DType::kInt64)));
}

void math_float(C& c) {
  const Arg& a = c.arg("a");
  const std::string_view how = c.detail();
  if (is_known(a)) {
    const double x = number_of(a);
    return c.out_arg(Arg(how == "Sqrt"  ? std::sqrt(x)
                         : how == "Exp" ? std::exp(x)
                         : how == "Log" ? std::log(x)
                         : how == "Cos" ? std::cos(x)
                         : how == "Sin" ? std::sin(x)
                         : how == "Tan" ? std::tan(x)
                                        : std::tanh(x)));
  }
  c.out_arg(computed(c, c.op(c.detail(), {c.operand("a", DType::kFloat64)})));
}

void getitem(C& c) {
  const Arg& list = c.arg("a");
  int64_t index = c.integer("b");
  if (list.kind != Arg::Kind::kList) return c.refuse("an element of what is no list");
  if (index < 0) index += static_cast<int64_t>(list.list.size());
  if (index < 0 || index >= static_cast<int64_t>(list.list.size()))
    return c.refuse("an element that is not there");
  c.out_arg(list.list[static_cast<size_t>(index)]);
}

void ite(C& c) {
  const Arg& condition = c.arg("condition");
  if (is_known(condition)) return c.out_arg(c.arg(number_of(condition) != 0 ? "a" : "b"));
  const bool whole = c.arg("a").kind == Arg::Kind::kInt && c.arg("b").kind == Arg::Kind::kInt;
  const DType type = whole ? DType::kInt64 : DType::kFloat64;
  c.out_arg(computed(c, c.where(c.operand("condition", DType::kBool), c.operand("a", type),
                                c.operand("b", type))));
}

#define BINARY(name, handler, detail) \
  { name "(Scalar a, Scalar b) -> Scalar", handler, detail }
#define UNARY(name, handler, detail) \
  { name "(Scalar a) -> Scalar", handler, detail }

constexpr Row kSymbolicOpsRows[] = {
    {"sym_size.int(Tensor self, int dim) -> SymInt", size},
    {"sym_size(Tensor self) -> SymInt[]", size},
    {"size.int(Tensor self, int dim) -> int", size},
    {"size(Tensor self) -> int[]", size},
    {"sym_numel(Tensor self) -> SymInt", numel},
    {"numel(Tensor self) -> int", numel},
    {"sym_stride.int(Tensor self, int dim) -> SymInt", stride},
    {"sym_stride(Tensor self) -> SymInt[]", stride},
    {"sym_storage_offset(Tensor self) -> SymInt", storage_offset},
    {"item(Tensor self) -> Scalar", item},
    {"_local_scalar_dense(Tensor self) -> Scalar", item},
    BINARY("_operator::add", arithmetic, "Add"),
    BINARY("_operator::sub", arithmetic, "Sub"),
    BINARY("_operator::mul", arithmetic, "Mul"),
    BINARY("_operator::floordiv", arithmetic, "FloorDiv"),
    BINARY("_operator::truediv", arithmetic, "Div"),
    BINARY("_operator::mod", arithmetic, "Mod"),
    BINARY("_operator::pow", arithmetic, "Pow"),
    BINARY("_operator::pow_by_natural", arithmetic, "Pow"),
    BINARY("torch::sym_max", arithmetic, "Max"),
    BINARY("torch::sym_min", arithmetic, "Min"),
    BINARY("builtins::max", arithmetic, "Max"),
    BINARY("builtins::min", arithmetic, "Min"),
    BINARY("_operator::eq", compare_symbols, "Equal"),
    BINARY("_operator::ne", compare_symbols, "NotEqual"),
    BINARY("_operator::lt", compare_symbols, "Less"),
    BINARY("_operator::le", compare_symbols, "LessOrEqual"),
    BINARY("_operator::gt", compare_symbols, "Greater"),
    BINARY("_operator::ge", compare_symbols, "GreaterOrEqual"),
    BINARY("_operator::and_", logic, "And"),
    BINARY("_operator::or_", logic, "Or"),
    BINARY("_operator::xor", logic, "Xor"),
    BINARY("_operator::getitem", getitem, ""),
    UNARY("_operator::neg", negate, ""),
    UNARY("_operator::not_", logic_not, ""),
    UNARY("torch::sym_not", logic_not, ""),
    UNARY("torch::sym_float", to_float, ""),
    UNARY("torch::sym_int", to_int, "Trunc"),
    UNARY("math::floor", to_int, "Floor"),
    UNARY("math::ceil", to_int, "Ceil"),
    UNARY("math::trunc", to_int, "Trunc"),
    UNARY("builtins::round", to_int, "Round"),
    UNARY("_operator::round", to_int, "Round"),
    UNARY("math::sqrt", math_float, "Sqrt"),
    UNARY("torch::_sym_sqrt", math_float, "Sqrt"),
    UNARY("torch::sym_sqrt", math_float, "Sqrt"),
    UNARY("torch::_sym_exp", math_float, "Exp"),
    UNARY("math::exp", math_float, "Exp"),
    UNARY("math::log", math_float, "Log"),
    UNARY("torch::_sym_cos", math_float, "Cos"),
    UNARY("math::cos", math_float, "Cos"),
    UNARY("torch::_sym_sin", math_float, "Sin"),
    UNARY("math::sin", math_float, "Sin"),
    UNARY("torch::_sym_tan", math_float, "Tan"),
    UNARY("math::tan", math_float, "Tan"),
    UNARY("torch::_sym_tanh", math_float, "Tanh"),
    UNARY("math::tanh", math_float, "Tanh"),
    UNARY("_operator::pos", positive, ""),
    UNARY("_operator::abs", absolute, ""),
    UNARY("builtins::abs", absolute, ""),
    BINARY("_operator::lshift", shift, "left"),
    BINARY("_operator::rshift", shift, "right"),
    {"torch::sym_sum(Scalar[] args) -> Scalar", sum_of},
    {"torch::sym_ite(Scalar condition, Scalar a, Scalar b) -> Scalar", ite},
};

}  // namespace

std::span<const Row> symbolic_rows() { return kSymbolicOpsRows; }

}  // namespace tombolo::pytorch
