// Numbers of the program. What is known is computed here as Python does; what is not becomes nodes
// on 0-d int64, double and bool tensors.

#include <cmath>

#include "formats/pytorch/script/builtins.h"

namespace tombolo::script {

namespace {

using AKind = Arg::Kind;

bool known(const Arg& arg) {
  if (arg.kind == AKind::kFloat) return arg.computed == nullptr;
  if (arg.kind == AKind::kBool) return arg.computed == nullptr && arg.integer.is_number();
  return arg.kind == AKind::kInt && arg.integer.is_number();
}
double real_of(const Arg& arg) {
  return arg.kind == AKind::kFloat ? arg.real : static_cast<double>(arg.integer.dim.value());
}
Item computed(AKind kind, Value* value) {
  if (kind == AKind::kInt) return Item(Arg(SymInt(SymDim(), value)));
  Arg arg;
  arg.kind = kind;
  arg.computed = value;
  return Item(std::move(arg));
}
bool two_numbers(const Items& args) {
  return args.size() >= 2 && args[0].is_number() && args[1].is_number() &&
         args[0].arg.kind != AKind::kComplex && args[1].arg.kind != AKind::kComplex;
}
bool both_ints(const Items& args) {
  return args[0].arg.kind != AKind::kFloat && args[1].arg.kind != AKind::kFloat;
}
/// A bool counts as an integer in arithmetic.
SymInt int_of(Interpreter& in, const Arg& arg) {
  if (arg.kind == AKind::kBool && arg.computed)
    return SymInt(SymDim(), in.context().cast(arg.computed, DType::kInt64));
  return arg.integer;
}

/// An arithmetic operation: of integers, of known doubles, and as a node on doubles.
using IntFunction = SymInt (*)(AtenContext&, const SymInt&, const SymInt&);
using RealFunction = double (*)(double, double);
Answer arithmetic(Interpreter& in, Items& args, const char* node, IntFunction on_ints,
                  RealFunction on_reals) {
  if (!two_numbers(args)) return not_mine();
  AtenContext& c = in.context();
  if (both_ints(args))
    return answer(Item(Arg(on_ints(c, int_of(in, args[0].arg), int_of(in, args[1].arg)))));
  if (known(args[0].arg) && known(args[1].arg))
    return answer(Item(Arg(on_reals(real_of(args[0].arg), real_of(args[1].arg)))));
  Value* a = c.operand_of(args[0].arg, DType::kFloat64);
  Value* b = c.operand_of(args[1].arg, DType::kFloat64);
  return answer(computed(AKind::kFloat, c.op(node, {a, b})));
}

Answer add(Interpreter& in, Items& args, NamedItems&) {
  return arithmetic(
      in, args, "Add", [](AtenContext& c, const SymInt& a, const SymInt& b) { return c.add(a, b); },
      [](double a, double b) { return a + b; });
}
Answer sub(Interpreter& in, Items& args, NamedItems&) {
  return arithmetic(
      in, args, "Sub", [](AtenContext& c, const SymInt& a, const SymInt& b) { return c.sub(a, b); },
      [](double a, double b) { return a - b; });
}
Answer mul(Interpreter& in, Items& args, NamedItems&) {
  return arithmetic(
      in, args, "Mul", [](AtenContext& c, const SymInt& a, const SymInt& b) { return c.mul(a, b); },
      [](double a, double b) { return a * b; });
}
Answer minimum(Interpreter& in, Items& args, NamedItems&) {
  return arithmetic(
      in, args, "Min",
      [](AtenContext& c, const SymInt& a, const SymInt& b) { return c.minimum(a, b); },
      [](double a, double b) { return b < a ? b : a; });
}
Answer maximum(Interpreter& in, Items& args, NamedItems&) {
  return arithmetic(
      in, args, "Max",
      [](AtenContext& c, const SymInt& a, const SymInt& b) { return c.maximum(a, b); },
      [](double a, double b) { return b > a ? b : a; });
}
Answer remainder(Interpreter& in, Items& args, NamedItems&) {
  if (two_numbers(args) && known(args[1].arg) && real_of(args[1].arg) == 0)
    return unsupported("a division by zero");
  if (!two_numbers(args)) return not_mine();
  AtenContext& c = in.context();
  if (both_ints(args))
    return answer(Item(Arg(c.modulo(int_of(in, args[0].arg), int_of(in, args[1].arg)))));
  if (known(args[0].arg) && known(args[1].arg)) {
    const double divisor = real_of(args[1].arg), rest = std::fmod(real_of(args[0].arg), divisor);
    return answer(Item(Arg(rest != 0 && (rest < 0) != (divisor < 0) ? rest + divisor : rest)));
  }
  // The rest has the divisor's sign.
  Value *a = c.operand_of(args[0].arg, DType::kFloat64),
        *b = c.operand_of(args[1].arg, DType::kFloat64), *zero = c.b.scalar(0, DType::kFloat64);
  Value* rest = c.op("Mod", {a, b}, {{"fmod", int64_t{1}}});
  Value* differs = c.op("Xor", {c.op("Less", {rest, zero}), c.op("Less", {b, zero})});
  differs = c.op("And", {differs, c.op("Not", {c.op("Equal", {rest, zero})})});
  return answer(computed(AKind::kFloat, c.where(differs, c.add(rest, b), rest)));
}
Answer floordiv(Interpreter& in, Items& args, NamedItems&) {
  if (!two_numbers(args)) return not_mine();
  if (known(args[1].arg) && real_of(args[1].arg) == 0) return unsupported("a division by zero");
  AtenContext& c = in.context();
  if (both_ints(args))
    return answer(Item(Arg(c.floor_div(int_of(in, args[0].arg), int_of(in, args[1].arg)))));
  if (known(args[0].arg) && known(args[1].arg))
    return answer(Item(Arg(std::floor(real_of(args[0].arg) / real_of(args[1].arg)))));
  Value* ratio = c.op("Div", {c.operand_of(args[0].arg, DType::kFloat64),
                              c.operand_of(args[1].arg, DType::kFloat64)});
  return answer(computed(AKind::kFloat, c.op("Floor", {ratio})));
}
Answer divide(Interpreter& in, Items& args, NamedItems&) {
  if (!two_numbers(args)) return not_mine();
  AtenContext& c = in.context();
  if (known(args[0].arg) && known(args[1].arg)) {
    if (real_of(args[1].arg) == 0) return unsupported("a division by zero");
    return answer(Item(Arg(real_of(args[0].arg) / real_of(args[1].arg))));
  }
  return answer(computed(AKind::kFloat, c.op("Div", {c.operand_of(args[0].arg, DType::kFloat64),
                                                     c.operand_of(args[1].arg, DType::kFloat64)})));
}
/// A float always: of integers too, as the overload that a saved program is matched with gives.
Answer power(Interpreter& in, Items& args, NamedItems&) {
  if (!two_numbers(args)) return not_mine();
  AtenContext& c = in.context();
  if (known(args[0].arg) && known(args[1].arg))
    return answer(Item(Arg(std::pow(real_of(args[0].arg), real_of(args[1].arg)))));
  return answer(computed(AKind::kFloat, c.op("Pow", {c.operand_of(args[0].arg, DType::kFloat64),
                                                     c.operand_of(args[1].arg, DType::kFloat64)})));
}
Answer negate(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 1 || !args[0].is_number()) return not_mine();
  if (args[0].arg.kind == AKind::kComplex)
    return answer(Item(Arg::complex(-args[0].arg.real, -args[0].arg.imaginary)));
  Items both = {Item(Arg(-1)), args[0]};
  NamedItems none;
  if (args[0].arg.kind == AKind::kFloat && known(args[0].arg))
    return answer(Item(Arg(-args[0].arg.real)));
  return mul(in, both, none);
}

template <typename Compare>
Answer compare(Interpreter& in, Items& args, const char* node, bool negated, Compare&& decide) {
  if (!two_numbers(args)) return not_mine();
  AtenContext& c = in.context();
  const Arg &a = args[0].arg, &b = args[1].arg;
  if (known(a) && known(b)) return answer(Item(Arg(decide(real_of(a), real_of(b)))));
  if (both_ints(args) && a.kind == AKind::kInt && b.kind == AKind::kInt) {
    // Sizes that are expressions may still tell.
    const SymDim difference = a.integer.dim - b.integer.dim;
    const auto low = difference.lower_bound(), high = difference.upper_bound();
    if (low && high && *low == *high)
      return answer(Item(Arg(decide(static_cast<double>(*low), 0))));
    if (low && *low > 0) return answer(Item(Arg(decide(1, 0))));
    if (high && *high < 0) return answer(Item(Arg(decide(-1, 0))));
    const std::string_view name = node;
    if (low && *low == 0 && ((name == "Less" && !negated) || name == "GreaterOrEqual"))
      return answer(Item(Arg(name == "GreaterOrEqual")));
    if (high && *high == 0 && ((name == "Greater" && !negated) || name == "LessOrEqual"))
      return answer(Item(Arg(name == "LessOrEqual")));
    if (name == "Equal" && a.integer.dim.differs(b.integer.dim)) return answer(Item(Arg(negated)));
  }
  const bool bools = a.kind == AKind::kBool && b.kind == AKind::kBool;
  const DType type = both_ints(args) ? bools ? DType::kBool : DType::kInt64 : DType::kFloat64;
  Value* value = c.op(node, {c.operand_of(a, type), c.operand_of(b, type)});
  if (negated) value = c.op("Not", {value});
  return answer(computed(AKind::kBool, value));
}
Answer lt(Interpreter& in, Items& args, NamedItems&) {
  return compare(in, args, "Less", false, [](double a, double b) { return a < b; });
}
Answer le(Interpreter& in, Items& args, NamedItems&) {
  return compare(in, args, "LessOrEqual", false, [](double a, double b) { return a <= b; });
}
Answer gt(Interpreter& in, Items& args, NamedItems&) {
  return compare(in, args, "Greater", false, [](double a, double b) { return a > b; });
}
Answer ge(Interpreter& in, Items& args, NamedItems&) {
  return compare(in, args, "GreaterOrEqual", false, [](double a, double b) { return a >= b; });
}
Answer eq(Interpreter& in, Items& args, NamedItems&) {
  return compare(in, args, "Equal", false, [](double a, double b) { return a == b; });
}
Answer ne(Interpreter& in, Items& args, NamedItems&) {
  return compare(in, args, "Equal", true, [](double a, double b) { return a != b; });
}

Answer logic(Interpreter& in, Items& args, const char* node) {
  if (args.size() != 2) return not_mine();
  for (const Item& item : args)
    if (!item.is_arg(AKind::kBool)) {
      // Bits of integers.
      if (!args[0].is_number() || !args[1].is_number() || !both_ints(args)) return not_mine();
      if (!known(args[0].arg) || !known(args[1].arg)) {
        AtenContext& c = in.context();
        const std::string bits = std::string("Bitwise") + node;
        return answer(
            computed(AKind::kInt, c.op(Text(bits), {c.operand_of(args[0].arg, DType::kInt64),
                                                    c.operand_of(args[1].arg, DType::kInt64)})));
      }
      const int64_t a = args[0].arg.integer.dim.value(), b = args[1].arg.integer.dim.value();
      const std::string_view name = node;
      return answer(Item(Arg(name == "And" ? (a & b) : name == "Or" ? (a | b) : (a ^ b))));
    }
  AtenContext& c = in.context();
  const std::string_view name = node;
  for (int side = 0; side < 2; ++side) {
    const Item &one = args[static_cast<size_t>(side)], &other = args[static_cast<size_t>(1 - side)];
    if (!known(one.arg)) continue;
    const bool value = one.arg.integer.dim.value() != 0;
    if (name == "And") return answer(value ? other : Item(Arg(false)));
    if (name == "Or") return answer(value ? Item(Arg(true)) : other);
    if (known(other.arg)) return answer(Item(Arg(value != (other.arg.integer.dim.value() != 0))));
  }
  return answer(computed(AKind::kBool, c.op(node, {c.operand_of(args[0].arg, DType::kBool),
                                                   c.operand_of(args[1].arg, DType::kBool)})));
}
Answer logical_and(Interpreter& in, Items& args, NamedItems&) { return logic(in, args, "And"); }
Answer logical_or(Interpreter& in, Items& args, NamedItems&) { return logic(in, args, "Or"); }
Answer logical_xor(Interpreter& in, Items& args, NamedItems&) { return logic(in, args, "Xor"); }
Answer logical_not(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 1 || args[0].is_tensor()) return not_mine();
  TRY(Arg value, in.truth(args[0]));
  if (!value.computed) return answer(Item(Arg(value.integer.dim.value() == 0)));
  return answer(computed(AKind::kBool, in.context().op("Not", {value.computed})));
}

Answer identical(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 2) return not_mine();
  for (int side = 0; side < 2; ++side) {
    const Item &one = args[static_cast<size_t>(side)], &other = args[static_cast<size_t>(1 - side)];
    if (!one.is_none()) continue;
    if (other.kind == Item::Kind::kMaybe)
      return answer(computed(AKind::kBool, in.context().op("Not", {other.box->present})));
    return answer(Item(Arg(other.is_none())));
  }
  if (args[0].box && args[1].box) return answer(Item(Arg(args[0].box == args[1].box)));
  if (args[0].is_tensor() && args[1].is_tensor())
    return answer(Item(Arg(args[0].arg.tensor == args[1].arg.tensor)));
  return eq(in, args, *std::make_unique<NamedItems>());
}
Answer not_identical(Interpreter& in, Items& args, NamedItems& named) {
  TRY(std::optional<Item> same, identical(in, args, named));
  if (!same) return not_mine();
  Items one = {*same};
  return logical_not(in, one, named);
}

Answer to_int(Interpreter& in, Items& args, NamedItems&) {
  if (args.empty()) return answer(Item(Arg(0)));
  AtenContext& c = in.context();
  const Item& item = args[0];
  if (item.is_text())
    return answer(
        Item(Arg(static_cast<int64_t>(std::strtoll(item.arg.text.c_str(), nullptr, 10)))));
  if (item.is_tensor()) {
    Value* value = c.read(item.arg.tensor);
    if (const SymShape* elements = c.b.elements(value);
        elements && elements->size() == 1 && !(*elements)[0].is_unknown())
      return answer(Item(Arg(SymInt((*elements)[0], c.reshape(c.cast(value, DType::kInt64), {})))));
    if (const Tensor* constant = c.b.constant_value(value); constant && constant->size() == 1)
      return answer(
          Item(Arg(is_float(constant->dtype()) ? static_cast<int64_t>(constant->get_double(0))
                                               : constant->get_int64(0))));
    return answer(Item(Arg(SymInt(SymDim(), c.reshape(c.cast(value, DType::kInt64), {})))));
  }
  if (!item.is_number()) return not_mine();
  if (item.arg.kind == AKind::kInt) return answer(item);
  if (known(item.arg)) return answer(Item(Arg(static_cast<int64_t>(real_of(item.arg)))));
  return answer(computed(AKind::kInt, c.cast(item.arg.computed, DType::kInt64)));
}
Answer to_float(Interpreter& in, Items& args, NamedItems&) {
  if (args.empty()) return answer(Item(Arg(0.0)));
  AtenContext& c = in.context();
  const Item& item = args[0];
  if (item.is_text()) return answer(Item(Arg(std::strtod(item.arg.text.c_str(), nullptr))));
  if (item.is_tensor()) {
    Value* value = c.read(item.arg.tensor);
    if (const Tensor* constant = c.b.constant_value(value); constant && constant->size() == 1)
      return answer(Item(Arg(constant->get_double(0))));
    return answer(computed(AKind::kFloat, c.reshape(c.cast(value, DType::kFloat64), {})));
  }
  if (!item.is_number()) return not_mine();
  if (item.arg.kind == AKind::kFloat) return answer(item);
  if (known(item.arg)) return answer(Item(Arg(real_of(item.arg))));
  return answer(computed(AKind::kFloat, c.operand_of(item.arg, DType::kFloat64)));
}
Answer to_bool(Interpreter& in, Items& args, NamedItems&) {
  if (args.empty()) return answer(Item(Arg(false)));
  TRY(Arg value, in.truth(args[0]));
  return answer(Item(std::move(value)));
}
/// The number that a 0-d tensor holds, of the kind that its type says.
Answer to_number(Interpreter& in, Items& args, NamedItems& named) {
  if (args.size() != 1) return not_mine();
  if (args[0].is_number()) return answer(args[0]);
  if (!args[0].is_tensor()) return not_mine();
  const DType type = args[0].arg.tensor->dtype;
  if (type == DType::kBool) return to_bool(in, args, named);
  return is_float(type) ? to_float(in, args, named) : to_int(in, args, named);
}

Answer complex_of(Interpreter&, Items& args, NamedItems&) {
  for (const Item& item : args)
    if (!item.is_number() || !known(item.arg)) return not_mine();
  return answer(Item(Arg::complex(args.empty() ? 0 : real_of(args[0].arg),
                                  args.size() > 1 ? real_of(args[1].arg) : 0)));
}

/// i-th value of range(start, end, step), and how many there are.
Answer derive_index(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 3) return not_mine();
  AtenContext& c = in.context();
  return answer(
      Item(Arg(c.add(args[1].arg.integer, c.mul(args[0].arg.integer, args[2].arg.integer)))));
}
Answer range_length(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 3) return not_mine();
  AtenContext& c = in.context();
  const SymInt &low = args[0].arg.integer, &high = args[1].arg.integer, &step = args[2].arg.integer;
  if (!step.is_number() || step.dim.value() == 0)
    return unsupported("a range whose step depends on data");
  const int64_t by = step.dim.value();
  const SymInt span = by > 0 ? c.sub(high, low) : c.sub(low, high);
  const int64_t size = by > 0 ? by : -by;
  return answer(Item(Arg(
      c.maximum(c.floor_div(c.add(span, SymInt(size - 1)), SymInt(size)), SymInt(int64_t{0})))));
}

constexpr BuiltinRow kNumberRows[] = {
    {"__derive_index", derive_index},
    {"__range_length", range_length},
    {"add", add},
    {"sub", sub},
    {"mul", mul},
    {"div", divide},
    {"truediv", divide},
    {"floordiv", floordiv},
    {"remainder", remainder},
    {"pow", power},
    {"neg", negate},
    {"min", minimum},
    {"max", maximum},
    {"lt", lt},
    {"le", le},
    {"gt", gt},
    {"ge", ge},
    {"eq", eq},
    {"ne", ne},
    {"__and__", logical_and},
    {"__or__", logical_or},
    {"__xor__", logical_xor},
    {"__not__", logical_not},
    {"__is__", identical},
    {"__isnot__", not_identical},
    {"int", to_int},
    {"Int", to_int},
    {"IntImplicit", to_int},
    {"float", to_float},
    {"Float", to_float},
    {"FloatImplicit", to_float},
    {"bool", to_bool},
    {"Bool", to_bool},
    {"item", to_number},
    {"ScalarImplicit", to_number},
    {"complex", complex_of},
    {"Complex", complex_of},
};

}  // namespace

std::span<const BuiltinRow> number_builtins() { return kNumberRows; }

Result<Arg> Interpreter::truth(const Item& item) {
  if (item.is_arg(AKind::kBool)) return item.arg;
  if (item.is_none()) return Arg(false);
  if (item.is_tensor()) {
    Value* value = c.read(item.arg.tensor);
    if (const Tensor* constant = c.b.constant_value(value); constant && constant->size() == 1)
      return Arg(constant->get_double(0) != 0);
    Arg arg;
    arg.kind = AKind::kBool;
    arg.computed = c.reshape(c.cast(value, DType::kBool), {});
    return arg;
  }
  if (item.is_number()) {
    Items pair = {item, Item(Arg(0))};
    NamedItems none;
    TRY(std::optional<Item> differs, ne(*this, pair, none));
    if (differs) return differs->arg;
  }
  if (item.is_text()) return Arg(!item.arg.text.empty());
  if (item.box && !item.box->sequence && item.kind != Item::Kind::kMaybe &&
      item.kind != Item::Kind::kObject)
    return Arg(!item.box->items.empty());
  return unsupported("the truth of " + kind_of(item));
}

}  // namespace tombolo::script
