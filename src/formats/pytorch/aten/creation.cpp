// Tensors from nothing, and from others: zeros, arange, casts, copies.

#include <algorithm>
#include <cmath>

#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

DType wanted_type(C& c, DType fallback) {
  return c.has_arg("dtype") ? c.dtype("dtype").value_or(fallback) : fallback;
}

/// A constant of this type, complex ones as pairs, spread over the sizes.
void filled(C& c, SymInts sizes, const Arg& value, DType type) {
  if (is_complex(type)) sizes.emplace_back(2);
  c.out(c.expand(c.operand_of(value, type), sizes), type);
}

Arg fill_of(C& c) {
  const std::string_view what = c.detail();
  if (what == "1") return Arg(1);
  if (what == "value") return c.arg("fill_value");
  return Arg(0);
}

DType type_of_number(C& c, const Arg& value) {
  switch (value.kind) {
    case Arg::Kind::kInt:
      return DType::kInt64;
    case Arg::Kind::kBool:
      return DType::kBool;
    case Arg::Kind::kComplex:
      return C::complex_of(c.default_float);
    case Arg::Kind::kTensor:
      return value.tensor->dtype;
    default:
      return c.default_float;
  }
}

/// zeros, ones, full, empty (whose elements nobody may look at).
void create(C& c) {
  const Arg value = fill_of(c);
  const DType fallback =
      std::string_view(c.detail()) == "value" ? type_of_number(c, value) : c.default_float;
  filled(c, c.syms("size"), value, wanted_type(c, fallback));
}

SymInts logical_sizes(C& c, std::string_view name) {
  SymInts sizes = c.sizes(c.x(name));
  if (c.is_complex(name)) sizes.pop_back();
  return sizes;
}

void create_like(C& c) {
  filled(c, logical_sizes(c, "self"), fill_of(c), wanted_type(c, c.type("self")));
}
void create_new(C& c) { filled(c, c.syms("size"), fill_of(c), wanted_type(c, c.type("self"))); }

void fill(C& c) {
  const Arg value = c.has_arg("value") ? c.arg("value") : Arg(0);
  filled(c, logical_sizes(c, "self"), value, c.type("self"));
}

void scalar_tensor(C& c) {
  filled(c, {}, c.arg(c.has_arg("s") ? "s" : "t"),
         wanted_type(c, c.has_arg("s") ? c.default_float : type_of_number(c, c.arg("t"))));
}

void arange(C& c) {
  const Arg start = c.has_arg("start") ? c.arg("start") : Arg(0);
  const Arg end = c.arg("end");
  const Arg step = c.has_arg("step") ? c.arg("step") : Arg(1);
  const auto whole = [](const Arg& a) {
    return a.kind == Arg::Kind::kInt || a.kind == Arg::Kind::kBool;
  };
  const bool integers = whole(start) && whole(end) && whole(step);
  const DType type = wanted_type(c, integers ? DType::kInt64 : c.default_float);
  if (integers) {
    SymInt count = c.sub(end.integer, start.integer);
    if (!step.integer.is(1)) {
      const int64_t by = step.integer.dim.constant().value_or(0);
      if (by == INT64_MIN) return c.refuse("a step of that length");
      if (by > 0) {
        count = c.floor_div(c.add(count, SymInt(by - 1)), SymInt(by));
      } else if (by < 0) {
        count = c.floor_div(c.add(c.sub(start.integer, end.integer), SymInt(-by - 1)), SymInt(-by));
      } else {  // ceil(count / step) = -floor(-count / step), whatever the sign
        count = c.floor_div(c.sub(start.integer, end.integer), step.integer);
        count = c.sub(SymInt(0), count);
      }
    }
    if (count.is_number() && count.dim.value() < 0) count = SymInt(0);
    Value* numbers = c.op(
        "Range", {c.int_value(start.integer), c.int_value(end.integer), c.int_value(step.integer)});
    if (numbers->producer()) c.b.set_type(numbers, DType::kInt64, {count.dim});
    return c.out(c.cast(numbers, type));
  }
  // The count in double, as torch finds it; then start + i * step.
  const auto number = [&](const Arg& a) {
    return a.kind == Arg::Kind::kFloat ? a.real
                                       : static_cast<double>(a.integer.dim.constant().value_or(0));
  };
  for (const Arg* one : {&start, &end, &step})
    if (one->computed || (one->kind == Arg::Kind::kInt && !one->integer.is_number()))
      return c.refuse("a range of floats with computed bounds");
  const double from = number(start), by = number(step);
  const auto count = to_int64(std::ceil((number(end) - from) / by));
  if (!count) return c.refuse("a range without end");
  Value* places = c.cast(c.range(SymInt(std::max<int64_t>(0, *count))), DType::kFloat64);
  Value* values =
      c.add(c.mul(places, c.scalar(by, DType::kFloat64)), c.scalar(from, DType::kFloat64));
  c.out(c.cast(values, type));
}

void linspace(C& c) {
  const bool log = c.name().starts_with("logspace");
  const Args ends = {c.arg("start"), c.arg("end")};
  DType fallback = c.promote(ends);
  if (!is_float(fallback) || !ends[0].is_tensor()) fallback = c.default_float;
  const DType type = wanted_type(c, fallback);
  if (is_complex(type) && !log) return c.refuse("complex numbers");
  if (is_complex(type)) {
    std::string line(c.schema().name);
    line.replace(0, 3, "lin");
    const Arg points(
        c.cell(c.lower(line, {c.arg("start"), c.arg("end"), c.arg("steps"), Arg(type)}), type));
    const double base = c.given("base") ? c.real("base") : 10.0;
    return c.out(c.lower("pow.Scalar", {Arg(base), points}), type);
  }
  const DType wide = DType::kFloat64;
  const SymInt steps = c.sym("steps");
  Value *from = c.operand("start", wide), *to = c.operand("end", wide);
  Value* values = nullptr;
  if (steps.is(0)) {
    values = c.full({SymInt(0)}, 0, wide);
  } else if (steps.is(1)) {
    values = c.reshape(from, {SymInt(1)});
  } else {
    // From both ends, so that both are met exactly.
    Value* places = c.cast(c.range(steps), wide);
    Value* last = c.operand_of(Arg(c.sub(steps, SymInt(1))), wide);
    Value* step = c.div(c.sub(to, from), last);
    Value* up = c.add(from, c.mul(step, places));
    Value* down = c.sub(to, c.mul(step, c.sub(last, places)));
    Value* half = c.op("Less", {places, c.div(c.add(last, c.scalar(1, wide)), c.scalar(2, wide))});
    values = c.where(half, up, down);
  }
  if (log) {
    values = c.op("Pow", {c.scalar(c.given("base") ? c.real("base") : 10.0, wide), values});
  }
  if (is_integer(type))
    values = c.where(c.op("Less", {values, c.scalar(0, wide)}), c.op("Ceil", {values}),
                     c.op("Floor", {values}));
  c.out(c.cast(values, type));
}

void eye(C& c) {
  const SymInt rows = c.sym("n"), columns = c.has_arg("m") ? c.sym("m") : rows;
  const DType type = wanted_type(c, c.default_float);
  if (is_complex(type)) return c.refuse("complex numbers");
  Value* hit = c.op("Equal", {c.unsqueeze(c.range(rows), {1}), c.range(columns)});
  c.out(c.cast(hit, type));
}

// ---- copies and casts ----

Value* converted(C& c, std::string_view name, DType to) {
  const DType from = c.type(name);
  Value* x = c.x(name);
  if (to == DType::kUndefined || to == from) return x;
  if (is_complex(to)) return is_complex(from) ? c.cast(x, C::real_of(to)) : c.to_complex(x, to);
  if (is_complex(from)) {
    if (to == DType::kBool)
      return c.cast(
          c.reduce("ReduceMax", c.cast(c.cast(x, DType::kBool), DType::kInt32), {-1}, false),
          DType::kBool);
    x = c.re(x);
  }
  return c.cast(x, to);
}

void to(C& c) {
  DType type = c.type("self");
  if (c.has_arg("dtype")) type = c.dtype("dtype").value_or(type);
  if (c.has_arg("other") && c.arg("other").is_tensor()) type = c.type("other");
  // Where nothing changes it is the tensor itself: what is written to the one is seen by the other.
  const bool copy = c.name() == "_to_copy" || (c.has_arg("copy") && c.flag("copy")) ||
                    (c.has_arg("memory_format") && c.given("memory_format"));
  if (!copy && type == c.type("self")) return c.out_arg(c.arg("self"));
  c.out(converted(c, "self", type), type);
}

void type_as(C& c) {
  if (c.type("other") == c.type("self")) return c.out_arg(c.arg("self"));
  c.out(converted(c, "self", c.type("other")), c.type("other"));
}

void to_named(C& c) {
  const std::string_view name = c.detail();
  const DType type = name == "float"    ? DType::kFloat32
                     : name == "double" ? DType::kFloat64
                     : name == "half"   ? DType::kFloat16
                     : name == "int"    ? DType::kInt32
                     : name == "long"   ? DType::kInt64
                     : name == "short"  ? DType::kInt16
                     : name == "char"   ? DType::kInt8
                     : name == "byte"   ? DType::kUInt8
                     : name == "bool"   ? DType::kBool
                     : name == "bf16"   ? DType::kBFloat16
                     : name == "cfloat" ? DType::kComplex64
                                        : DType::kComplex128;
  c.out(converted(c, "self", type), type);
}

void same(C& c) { c.out(c.x("self"), c.type("self")); }

void copy(C& c) {
  Value* self = c.x("self");
  const DType type = c.type("self");
  Value* source = c.operand("src", type);
  SymInts sizes = c.sizes(self);
  c.out(c.expand(source, sizes), type);
}

void complex_from_parts(C& c) {
  const bool polar = c.name() == "polar";
  const DType type = c.promote({polar ? "abs" : "real", polar ? "angle" : "imag"});
  Value *a = c.operand(polar ? "abs" : "real", type),
        *z = c.operand(polar ? "angle" : "imag", type);
  Value* pair = polar ? c.pair(c.mul(a, c.op("Cos", {z})), c.mul(a, c.op("Sin", {z}))) : nullptr;
  if (!polar) {
    Value *zero_a = c.mul(z, c.like(0, z)), *zero_z = c.mul(a, c.like(0, a));
    bool equal = c.rank(a) == c.rank(z);
    for (int64_t i = 0; equal && i < c.rank(a); ++i) equal = c.b.dim(a, i).equals(c.b.dim(z, i));
    pair = equal ? c.pair(a, z) : c.pair(c.add(a, zero_a), c.add(z, zero_z));
  }
  c.out(pair, C::complex_of(type));
}

void nothing(C& c) { (void)c; }

void window(C& c) {
  const int64_t n = c.integer("window_length");
  const bool periodic = !c.has_arg("periodic") || c.flag("periodic");
  const DType type = wanted_type(c, c.default_float);
  if (n < 0 || n > (1 << 20)) return c.refuse("a very long window");
  const std::string_view kind = c.detail();
  const double beta = c.has_arg("beta") ? std::abs(c.real("beta")) : 12;  // Bessel's I0 is even
  const double alpha = c.has_arg("alpha") ? c.real("alpha") : 0.54;
  const double second = c.has_arg("beta") && kind == "hamming" ? c.real("beta") : 0.46;
  if (kind == "kaiser" && !(beta <= 700)) return c.refuse("a window of this beta");
  const int64_t dims[] = {n};
  auto tensor = Tensor::allocate(DType::kFloat64, dims);
  if (!tensor) return c.refuse("a very long window");
  const double last = static_cast<double>(n == 1 ? 1 : periodic ? n : n - 1);
  for (int64_t i = 0; i < n; ++i) {
    const double t = static_cast<double>(i) / last;
    double w = 1;
    if (n > 1 || kind == "none") {
      if (kind == "hann") w = 0.5 - 0.5 * std::cos(2 * M_PI * t);
      if (kind == "hamming") w = alpha - second * std::cos(2 * M_PI * t);
      if (kind == "blackman")
        w = 0.42 - 0.5 * std::cos(2 * M_PI * t) + 0.08 * std::cos(4 * M_PI * t);
      if (kind == "bartlett") w = 1 - std::abs(2 * t - 1);
      if (kind == "kaiser") {
        const double r = 2 * t - 1;
        w = std::cyl_bessel_i(0, beta * std::sqrt(std::max(0.0, 1 - r * r))) /
            std::cyl_bessel_i(0, beta);
      }
    }
    tensor->set_double(i, w);
  }
  c.out(c.cast(c.b.constant(*tensor, "window"), type));
}

void vander(C& c) {
  Value* x = c.x("x");
  if (c.rank(x) == 0) x = c.unsqueeze(x, {0});
  const int64_t r = c.rank(x);
  const SymInt n = c.given("N") ? c.sym("N") : c.size(x, r - 1);
  if (is_complex(c.type("x"))) return c.refuse("complex numbers");
  Value* powers = c.range(n);
  if (c.has_arg("increasing") && !c.flag("increasing"))
    powers = c.sub(c.int_value(c.sub(n, SymInt(1))), powers);
  const DType type = c.dtype(x), wide = is_float(type) ? type : DType::kInt64;
  c.out(c.op("Pow", {c.unsqueeze(c.cast(x, wide), {r}), c.cast(powers, wide)}));
}

#define OPTIONS \
  "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define LIKE OPTIONS ", MemoryFormat? memory_format=None"

constexpr Row kCreationRows[] = {
    {"zeros(SymInt[] size, *, " OPTIONS ") -> Tensor", create, "0"},
    {"ones(SymInt[] size, *, " OPTIONS ") -> Tensor", create, "1"},
    {"empty.memory_format(SymInt[] size, *, " LIKE ") -> Tensor", create, "0"},
    {"empty_strided(SymInt[] size, SymInt[] stride, *, " OPTIONS ") -> Tensor", create, "0"},
    {"empty_permuted(SymInt[] size, int[] physical_layout, *, " OPTIONS ") -> Tensor", create, "0"},
    {"full(SymInt[] size, Scalar fill_value, *, " OPTIONS ") -> Tensor", create, "value"},
    {"zeros_like(Tensor self, *, " LIKE ") -> Tensor", create_like, "0"},
    {"ones_like(Tensor self, *, " LIKE ") -> Tensor", create_like, "1"},
    {"empty_like(Tensor self, *, " LIKE ") -> Tensor", create_like, "0"},
    {"full_like(Tensor self, Scalar fill_value, *, " LIKE ") -> Tensor", create_like, "value"},
    {"new_zeros(Tensor self, SymInt[] size, *, " OPTIONS ") -> Tensor", create_new, "0"},
    {"new_ones(Tensor self, SymInt[] size, *, " OPTIONS ") -> Tensor", create_new, "1"},
    {"new_empty(Tensor self, SymInt[] size, *, " OPTIONS ") -> Tensor", create_new, "0"},
    {"new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, " OPTIONS ") -> Tensor",
     create_new, "0"},
    {"new_full(Tensor self, SymInt[] size, Scalar fill_value, *, " OPTIONS ") -> Tensor",
     create_new, "value"},
    {"fill.Scalar(Tensor self, Scalar value) -> Tensor", fill},
    {"fill.Tensor(Tensor self, Tensor value) -> Tensor", fill},
    {"zero(Tensor self) -> Tensor", fill},
    {"scalar_tensor(Scalar s, *, " OPTIONS ") -> Tensor", scalar_tensor},
    {"tensor.float(float t, *, ScalarType? dtype=None, Device? device=None, bool "
     "requires_grad=False) -> Tensor",
     scalar_tensor},
    {"tensor.int(int t, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) "
     "-> Tensor",
     scalar_tensor},
    {"tensor.bool(bool t, *, ScalarType? dtype=None, Device? device=None, bool "
     "requires_grad=False) -> Tensor",
     scalar_tensor},
    {"arange(Scalar end, *, " OPTIONS ") -> Tensor", arange},
    {"arange.start(Scalar start, Scalar end, *, " OPTIONS ") -> Tensor", arange},
    {"arange.start_step(Scalar start, Scalar end, Scalar step=1, *, " OPTIONS ") -> Tensor",
     arange},
    {"linspace(Scalar start, Scalar end, int steps, *, " OPTIONS ") -> Tensor", linspace},
    {"linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, " OPTIONS ") -> Tensor",
     linspace},
    {"linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, " OPTIONS ") -> Tensor",
     linspace},
    {"linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, " OPTIONS ") -> Tensor",
     linspace},
    {"logspace(Scalar start, Scalar end, int steps, float base=10.0, *, " OPTIONS ") -> Tensor",
     linspace},
    {"logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10.0, *, " OPTIONS
     ") -> Tensor",
     linspace},
    {"logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10.0, *, " OPTIONS
     ") -> Tensor",
     linspace},
    {"logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10.0, *, " OPTIONS
     ") -> Tensor",
     linspace},
    {"eye(SymInt n, *, " OPTIONS ") -> Tensor", eye},
    {"eye.m(SymInt n, SymInt m, *, " OPTIONS ") -> Tensor", eye},
    {"to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, "
     "MemoryFormat? memory_format=None) -> Tensor(a)",
     to},
    {"to.dtype_layout(Tensor(a) self, *, " OPTIONS
     ", bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
     to},
    {"to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool "
     "copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
     to},
    {"to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, "
     "MemoryFormat? memory_format=None) -> Tensor(a)",
     to},
    {"to.prim_Device(Tensor(a) self, Device? device, int? dtype=None, bool non_blocking=False, "
     "bool copy=False) -> Tensor(a)",
     to},
    {"to.prim_dtype(Tensor(a) self, int? dtype=None, bool non_blocking=False, bool copy=False) -> "
     "Tensor(a)",
     to},
    {"to.prim_other(Tensor(a) self, bool non_blocking=False, bool copy=False) -> Tensor(a)", same},
    {"_to_copy(Tensor self, *, " OPTIONS
     ", bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
     to},
    {"type_as(Tensor self, Tensor other) -> Tensor", type_as},
    {"_cast_Float(Tensor self, bool non_blocking=False) -> Tensor", to_named, "float"},
    {"_cast_Double(Tensor self, bool non_blocking=False) -> Tensor", to_named, "double"},
    {"_cast_Half(Tensor self, bool non_blocking=False) -> Tensor", to_named, "half"},
    {"_cast_Int(Tensor self, bool non_blocking=False) -> Tensor", to_named, "int"},
    {"_cast_Long(Tensor self, bool non_blocking=False) -> Tensor", to_named, "long"},
    {"_cast_Short(Tensor self, bool non_blocking=False) -> Tensor", to_named, "short"},
    {"_cast_Char(Tensor self, bool non_blocking=False) -> Tensor", to_named, "char"},
    {"_cast_Byte(Tensor self, bool non_blocking=False) -> Tensor", to_named, "byte"},
    {"clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", same},
    {"contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
     same, "", RowKind::kMaybeView},
    {"cpu(Tensor(a) self) -> Tensor(a)", same},
    {"cuda(Tensor(a) self) -> Tensor(a)", same},
    {"copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor", copy},
    {"requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)", same},
    {"complex(Tensor real, Tensor imag) -> Tensor", complex_from_parts},
    {"polar(Tensor abs, Tensor angle) -> Tensor", complex_from_parts},
    {"hann_window(int window_length, *, " OPTIONS ") -> Tensor", window, "hann"},
    {"hann_window.periodic(int window_length, bool periodic, *, " OPTIONS ") -> Tensor", window,
     "hann"},
    {"hamming_window(int window_length, *, " OPTIONS ") -> Tensor", window, "hamming"},
    {"hamming_window.periodic(int window_length, bool periodic, *, " OPTIONS ") -> Tensor", window,
     "hamming"},
    {"hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, *, " OPTIONS
     ") -> Tensor",
     window, "hamming"},
    {"hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float "
     "beta, *, " OPTIONS ") -> Tensor",
     window, "hamming"},
    {"blackman_window(int window_length, *, " OPTIONS ") -> Tensor", window, "blackman"},
    {"blackman_window.periodic(int window_length, bool periodic, *, " OPTIONS ") -> Tensor", window,
     "blackman"},
    {"bartlett_window(int window_length, *, " OPTIONS ") -> Tensor", window, "bartlett"},
    {"bartlett_window.periodic(int window_length, bool periodic, *, " OPTIONS ") -> Tensor", window,
     "bartlett"},
    {"kaiser_window(int window_length, *, " OPTIONS ") -> Tensor", window, "kaiser"},
    {"kaiser_window.periodic(int window_length, bool periodic, *, " OPTIONS ") -> Tensor", window,
     "kaiser"},
    {"kaiser_window.beta(int window_length, bool periodic, float beta, *, " OPTIONS ") -> Tensor",
     window, "kaiser"},
    {"vander(Tensor x, SymInt? N=None, bool increasing=False) -> Tensor", vander},
    {"linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor", vander},
    {"_assert_async(Tensor self) -> ()", nothing},
    {"_assert_async.msg(Tensor self, str assert_msg) -> ()", nothing},
    {"_assert_scalar(Scalar self, str assert_msg) -> ()", nothing},
    {"_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? "
     "dtype=None, *, Device? device=None, Layout? layout=None) -> ()",
     nothing},
    {"_functional_assert_async.msg(Tensor self, str assert_msg, Tensor dep_token) -> Tensor",
     nothing},
    {"_functional_assert_scalar(Scalar self, str assert_msg, Tensor dep_token) -> Tensor", nothing},
    {"_make_dep_token(*, " LIKE ") -> Tensor", nothing},
    {"_print(str s) -> ()", nothing},
    {"sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()", nothing},
    {"sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()", nothing},
    {"_functional_sym_constrain_range(Scalar size, int? min, int? max, Tensor dep_token) -> Tensor",
     nothing},
    {"_functional_sym_constrain_range_for_size(Scalar size, int? min, int? max, Tensor dep_token) "
     "-> Tensor",
     nothing},
};

}  // namespace

std::span<const Row> creation_rows() { return kCreationRows; }

}  // namespace tombolo::pytorch
