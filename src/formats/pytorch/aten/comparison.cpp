// Comparisons, logic, where.

#include <cmath>

#include "formats/pytorch/aten/complex.h"
#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

void compare(C& c) {
  const DType type = c.promote({"self", "other"});
  Value *a = c.operand("self", type), *y = c.operand("other", type);
  const std::string_view op = c.detail();
  if (is_complex(type)) {
    // Equal pairs: both components are.
    Value* same = c.cast(c.op("Equal", {a, y}), DType::kInt32);
    Value* both = c.cast(c.reduce("ReduceMin", same, {-1}, false), DType::kBool);
    return c.out(op == "NotEqual" ? c.op("Not", {both}) : both);
  }
  if (type == DType::kBool && op != "Equal" && op != "NotEqual") {
    a = c.cast(a, DType::kInt32);
    y = c.cast(y, DType::kInt32);
  }
  c.out(op == "NotEqual" ? c.op("Not", {c.op("Equal", {a, y})}) : c.op(c.detail(), {a, y}));
}

void truth(C& c, std::string_view name, Value*& value) {
  value = c.x(name);
  if (c.is_complex(name)) {
    value = c.cast(
        c.reduce("ReduceMax", c.cast(c.cast(value, DType::kBool), DType::kInt32), {-1}, false),
        DType::kBool);
  } else {
    value = c.cast(value, DType::kBool);
  }
}

void logical(C& c) {
  Value *a = nullptr, *y = nullptr;
  truth(c, "self", a);
  truth(c, "other", y);
  c.out(c.op(c.detail(), {a, y}));
}

void logical_not(C& c) {
  Value* a = nullptr;
  truth(c, "self", a);
  c.out(c.op("Not", {a}));
}

void where(C& c) {
  const DType type = c.promote({"self", "other"});
  Value* condition = c.cast(c.x("condition"), DType::kBool);
  if (is_complex(type)) condition = c.unsqueeze(condition, {-1});
  c.out(c.where(condition, c.operand("self", type), c.operand("other", type)), type);
}

void where_indices(C& c) {
  // torch.where(condition) is nonzero as a tuple.
  c.out_arg(c.lower_all("nonzero_numpy", {c.arg("condition")}).front());
}

void is_nan_inf(C& c) {
  Value* x = c.x("self");
  const std::string_view op = c.detail();
  const bool complex = c.is_complex("self");
  if (!is_float(c.dtype(x))) return c.out(c.full(c.sizes(x), op == "Finite" ? 1 : 0, DType::kBool));
  Value* result = nullptr;
  if (op == "IsNaN") {
    result = c.op("IsNaN", {x});
  } else if (op == "IsInf") {
    result = c.op("IsInf", {x});
  } else if (op == "PosInf") {
    result = c.op("IsInf", {x}, {{"detect_negative", 0}});
  } else if (op == "NegInf") {
    result = c.op("IsInf", {x}, {{"detect_positive", 0}});
  } else {
    result = c.op("Not", {c.op("Or", {c.op("IsInf", {x}), c.op("IsNaN", {x})})});
  }
  if (complex) {
    result = c.cast(c.reduce(op == "Finite" ? "ReduceMin" : "ReduceMax",
                             c.cast(result, DType::kInt32), {-1}, false),
                    DType::kBool);
  }
  c.out(result);
}

void is_real(C& c) {
  Value* x = c.x("self");
  if (c.is_complex("self")) return c.out(c.op("Equal", {c.im(x), c.like(0, x)}));
  c.out(c.full(c.sizes(x), 1, DType::kBool));
}

void sign_bit(C& c) {
  Value* x = c.x("self");
  if (c.dtype(x) == DType::kBool || is_unsigned_integer(c.dtype(x)))
    return c.out(c.full(c.sizes(x), 0, DType::kBool));
  c.out(c.op("Less", {is_float(c.dtype(x)) ? sign_bit_proxy(c, x) : x, c.like(0, x)}));
}

Value* close(C& c) {
  const DType type = c.promote({"self", "other"});
  Value *a = c.operand("self", type), *y = c.operand("other", type);
  Value* same = c.op("Equal", {a, y});
  if (is_complex(type)) {
    c.refuse("closeness of complex numbers");
    return same;
  }
  if (type == DType::kBool) return same;
  const DType real = is_float(type) ? type : DType::kFloat32;
  Value *fa = c.cast(a, real), *fy = c.cast(y, real);
  Value* room = c.add(c.scalar(c.real("atol"), real),
                      c.op("Abs", {c.mul(c.scalar(c.real("rtol"), real), fy)}));
  Value* gap = c.op("Abs", {c.sub(fa, fy)});
  Value* finite = c.op("Not", {c.op("Or", {c.op("IsInf", {gap}), c.op("IsNaN", {gap})})});
  Value* near = c.op("And", {finite, c.op("LessOrEqual", {gap, room})});
  Value* result = c.op("Or", {same, near});
  if (c.flag("equal_nan"))
    result = c.op("Or", {result, c.op("And", {c.op("IsNaN", {fa}), c.op("IsNaN", {fy})})});
  return result;
}

void isclose(C& c) { c.out(close(c)); }

void allclose(C& c) {
  Value* all =
      c.cast(c.op("ReduceMin", {c.cast(close(c), DType::kInt32)}, {{"keepdims", 0}}), DType::kBool);
  c.out(all);
}

void equal(C& c) {
  Value *a = c.x("self"), *y = c.x("other");
  const SymInts sa = c.sizes(a), sy = c.sizes(y);
  bool same_shape = sa.size() == sy.size();
  for (size_t i = 0; same_shape && i < sa.size(); ++i) same_shape = !sa[i].dim.differs(sy[i].dim);
  if (!same_shape) return c.out(c.scalar(0, DType::kBool));
  Value* same = c.op("Equal", {a, y});
  c.out(c.cast(c.op("ReduceMin", {c.cast(same, DType::kInt32)}, {{"keepdims", 0}}), DType::kBool));
}

/// Elements of `elements` among `test_elements`.
void isin(C& c) {
  const DType type = c.promote({"elements", "test_elements"});
  Value* x = c.operand("elements", type);
  Value* tests = c.reshape(c.operand("test_elements", type), {SymInt(-1)});
  Value* hit = c.op("Equal", {c.unsqueeze(x, {-1}), tests});
  Value* any = nullptr;
  if (c.known(tests, 0) == 0) {
    any = c.full(c.sizes(x), 0, DType::kBool);
  } else {
    any = c.cast(c.reduce("ReduceMax", c.cast(hit, DType::kInt32), {-1}, false), DType::kBool);
  }
  c.out(c.flag("invert") ? c.op("Not", {any}) : any);
}

#define COMPARE(name, op)                                               \
  {name ".Tensor(Tensor self, Tensor other) -> Tensor", compare, op}, { \
    name ".Scalar(Tensor self, Scalar other) -> Tensor", compare, op    \
  }

constexpr Row kComparisonRows[] = {
    COMPARE("eq", "Equal"),
    COMPARE("ne", "NotEqual"),
    COMPARE("not_equal", "NotEqual"),
    COMPARE("lt", "Less"),
    COMPARE("less", "Less"),
    COMPARE("le", "LessOrEqual"),
    COMPARE("less_equal", "LessOrEqual"),
    COMPARE("gt", "Greater"),
    COMPARE("greater", "Greater"),
    COMPARE("ge", "GreaterOrEqual"),
    COMPARE("greater_equal", "GreaterOrEqual"),
    {"logical_and(Tensor self, Tensor other) -> Tensor", logical, "And"},
    {"logical_or(Tensor self, Tensor other) -> Tensor", logical, "Or"},
    {"logical_xor(Tensor self, Tensor other) -> Tensor", logical, "Xor"},
    {"logical_not(Tensor self) -> Tensor", logical_not},
    {"where(Tensor condition) -> Tensor[]", where_indices},
    {"where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", where},
    {"where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor", where},
    {"where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor", where},
    {"where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor", where},
    {"isnan(Tensor self) -> Tensor", is_nan_inf, "IsNaN"},
    {"isinf(Tensor self) -> Tensor", is_nan_inf, "IsInf"},
    {"isposinf(Tensor self) -> Tensor", is_nan_inf, "PosInf"},
    {"isneginf(Tensor self) -> Tensor", is_nan_inf, "NegInf"},
    {"isfinite(Tensor self) -> Tensor", is_nan_inf, "Finite"},
    {"isreal(Tensor self) -> Tensor", is_real},
    {"signbit(Tensor self) -> Tensor", sign_bit},
    {"isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) "
     "-> Tensor",
     isclose},
    {"allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool "
     "equal_nan=False) -> bool",
     allclose},
    {"equal(Tensor self, Tensor other) -> bool", equal},
    {"isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool "
     "invert=False) -> Tensor",
     isin},
    {"isin.Tensor_Scalar(Tensor elements, Scalar test_elements, *, bool assume_unique=False, bool "
     "invert=False) -> Tensor",
     isin},
    {"isin.Scalar_Tensor(Scalar elements, Tensor test_elements, *, bool assume_unique=False, bool "
     "invert=False) -> Tensor",
     isin},
};

}  // namespace

std::span<const Row> comparison_rows() { return kComparisonRows; }

}  // namespace tombolo::pytorch
