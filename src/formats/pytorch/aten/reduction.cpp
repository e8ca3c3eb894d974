// Sums, means, extrema, norms, scans, sorting.

#include <algorithm>
#include <cmath>

#include "formats/pytorch/aten/complex.h"
#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

/// The axes that "dim" names; all of them where it is None or empty.
Ints axes_of(C& c, Value* x, int64_t r) {
  Ints axes;
  if (c.has_arg("dim") && c.given("dim"))
    for (const int64_t dim : c.ints("dim")) axes.push_back(c.axis(dim, r));
  if (axes.empty())
    for (int64_t i = 0; i < r; ++i) axes.push_back(i);
  (void)x;
  if (r == 0) axes.clear();
  return axes;
}

bool keep(C& c) { return c.has_arg("keepdim") && c.flag("keepdim"); }

int64_t logical_rank(C& c, std::string_view name, Value* x) {
  return c.rank(x) - (c.is_complex(name) ? 1 : 0);
}

/// The operand in the type that "dtype" says, or in what sums of its type are.
Value* summand(C& c, DType& type) {
  type = c.has_arg("dtype") ? c.dtype("dtype").value_or(DType::kUndefined) : DType::kUndefined;
  if (type == DType::kUndefined) type = c.promote({"self"}, Promotion::kBoolToInt);
  return c.operand("self", type);
}

Value* reduced(C& c, Text op, Value* x, const Ints& axes, bool keepdims) {
  // ONNX reduces 32- and 64-bit integers and floats.
  const DType type = c.dtype(x);
  const bool narrow =
      type == DType::kBool || type == DType::kInt16 || type == DType::kUInt16 ||
      ((type == DType::kInt8 || type == DType::kUInt8) && op != "ReduceMax" && op != "ReduceMin");
  if (!narrow) return c.reduce(op, x, axes, keepdims);
  return c.cast(c.reduce(op, c.cast(x, DType::kInt32), axes, keepdims), type);
}

void sum(C& c) {
  DType type;
  Value* x = summand(c, type);
  const int64_t r = c.rank(x) - (is_complex(type) ? 1 : 0);
  c.out(reduced(c, "ReduceSum", x, axes_of(c, x, r), keep(c)), type);
}

void nansum(C& c) {
  DType type;
  Value* x = summand(c, type);
  if (is_float(c.dtype(x))) x = c.where(c.op("IsNaN", {x}), c.like(0, x), x);
  c.out(reduced(c, "ReduceSum", x, axes_of(c, x, c.rank(x)), keep(c)));
}

/// One factor after the other: there is no reduction for pairs.
void complex_product(C& c, Value* x, DType type) {
  const int64_t r = c.rank(x) - 1;
  int64_t axis = 0;
  bool keepdim = false;
  if (c.has_arg("dim")) {
    axis = c.axis(c.integer("dim"), r);
    keepdim = keep(c);
  } else {
    x = c.reshape(x, {SymInt(-1), SymInt(2)});
  }
  const auto length = r == 0 ? std::optional<int64_t>(1) : c.known(x, axis);
  constexpr int64_t kMost = 256;
  if (!length || *length > kMost) return c.refuse("a product of many complex numbers");
  if (r == 0) return c.out(c.x("self"), type);
  Value* y = nullptr;
  for (int64_t i = 0; i < *length; ++i) {
    Value* one = c.select(x, axis, SymInt(i));
    y = y ? complex_mul(c, y, one) : one;
  }
  if (!y) {
    SymInts sizes = c.sizes(x);
    sizes.erase(sizes.begin() + static_cast<ptrdiff_t>(axis));
    sizes.pop_back();
    Value* one = c.full(sizes, 1, AtenContext::real_of(type));
    y = c.pair(one, c.mul(one, c.like(0, one)));
  }
  c.out(keepdim ? c.unsqueeze(y, {axis}) : y, type);
}

void prod(C& c) {
  DType type;
  Value* x = summand(c, type);
  if (is_complex(type)) return complex_product(c, x, type);
  c.out(reduced(c, "ReduceProd", x, axes_of(c, x, c.rank(x)), keep(c)));
}

DType mean_type(C& c) {
  const auto wanted = c.has_arg("dtype") ? c.dtype("dtype") : std::nullopt;
  return wanted.value_or(c.type("self"));
}

void mean(C& c) {
  const DType type = mean_type(c);
  Value* x = c.operand("self", type);
  const int64_t r = c.rank(x) - (is_complex(type) ? 1 : 0);
  c.out(c.reduce("ReduceMean", x, axes_of(c, x, r), keep(c)), type);
}

void nanmean(C& c) {
  const DType type = mean_type(c);
  Value* x = c.operand("self", type);
  const auto axes = axes_of(c, x, c.rank(x));
  Value* nan = c.op("IsNaN", {x});
  Value* total = c.reduce("ReduceSum", c.where(nan, c.like(0, x), x), axes, keep(c));
  Value* count = c.reduce("ReduceSum", c.cast(c.op("Not", {nan}), type), axes, keep(c));
  c.out(c.div(total, count));
}

/// Variance about the mean; the divisor is the count less the correction.
Value* variance(C& c, Value* x, const Ints& axes, double correction, bool keepdims,
                Value** mean_out, bool complex) {
  Value* m = c.reduce("ReduceMean", x, axes, true);
  Value* d = c.sub(x, m);
  Value* squares = c.mul(d, d);
  if (complex) squares = c.reduce("ReduceSum", squares, {-1}, false);
  Value* total = c.reduce("ReduceSum", squares, axes, keepdims);
  SymInt count(1);
  for (const int64_t axis : axes) count = c.mul(count, c.size(x, axis));
  Value* divisor = nullptr;
  if (count.is_number()) {
    divisor = c.like(std::max(0.0, static_cast<double>(count.dim.value()) - correction), total);
  } else {
    divisor =
        c.op("Max", {c.sub(c.operand_of(Arg(count), c.dtype(total)), c.like(correction, total)),
                     c.like(0, total)});
  }
  if (mean_out) {
    *mean_out = keepdims ? m : c.squeeze(m, axes);
  }
  return c.div(total, divisor);
}

void var(C& c) {
  Value* x = c.x("self");
  const std::string_view name = c.name();
  double correction = 1;
  if (c.has_arg("correction"))
    correction = c.given("correction") ? c.real("correction") : 1;
  else if (c.has_arg("unbiased"))
    correction = c.flag("unbiased") ? 1 : 0;
  const bool complex = c.is_complex("self");
  const auto axes = axes_of(c, x, logical_rank(c, "self", x));
  Value* m = nullptr;
  const bool with_mean = name.find("_mean") != name.npos;
  Value* v = variance(c, x, axes, correction, keep(c), with_mean ? &m : nullptr, complex);
  if (name.starts_with("std")) v = c.op("Sqrt", {v});
  c.out(v);
  if (with_mean) c.out(m, c.type("self"));
}

void all_any(C& c) {
  Value* x = c.x("self");
  const int64_t r = logical_rank(c, "self", x);
  Value* truth = c.cast(c.cast(x, DType::kBool), DType::kInt32);
  if (c.is_complex("self")) truth = c.reduce("ReduceMax", truth, {-1}, false);
  Value* result = c.cast(c.reduce(c.detail(), truth, axes_of(c, truth, r), keep(c)), DType::kBool);
  c.out(c.type("self") == DType::kUInt8 ? c.cast(result, DType::kUInt8) : result);
}

void extreme(C& c) {
  // amax, amin, and max, min over everything.
  Value* x = c.x("self");
  c.out(reduced(c, c.detail(), x, axes_of(c, x, c.rank(x)), keep(c)));
}

void aminmax(C& c) {
  Value* x = c.x("self");
  const auto axes = axes_of(c, x, c.rank(x));
  c.out(reduced(c, "ReduceMin", x, axes, keep(c)));
  c.out(reduced(c, "ReduceMax", x, axes, keep(c)));
}

/// Integers that ONNX's ArgMax and TopK lack travel as int64.
Value* orderable(C& c, Value* x) {
  const DType type = c.dtype(x);
  if (type == DType::kBool) return c.cast(x, DType::kInt32);
  return x;
}

/// max.dim and min.dim: values and indices.
void extreme_dim(C& c) {
  Value* x = c.x("self");
  const int64_t dim = c.axis(c.integer("dim"), c.rank(x));
  if (c.rank(x) == 0) {
    c.out(x);
    return c.out(c.b.int_scalar(0));
  }
  const bool largest = std::string_view(c.detail()) == "ReduceMax", keepdims = keep(c);
  Value* ordered = orderable(c, x);
  c.out(reduced(c, largest ? "ReduceMax" : "ReduceMin", x, {dim}, keepdims));
  c.out(c.op(largest ? "ArgMax" : "ArgMin", {ordered}, {{"axis", dim}, {"keepdims", keepdims}}));
}

void arg_extreme(C& c) {
  Value* x = orderable(c, c.x("self"));
  if (c.rank(x) == 0) return c.out(c.b.int_scalar(0));
  const int64_t r = c.rank(x);
  if (!c.given("dim")) {
    Value* flat = c.reshape(x, {SymInt(-1)});
    Value* index = c.op(c.detail(), {flat}, {{"axis", 0}, {"keepdims", 0}});
    if (keep(c)) index = c.reshape(index, SymInts(static_cast<size_t>(r), SymInt(1)));
    return c.out(index);
  }
  c.out(c.op(c.detail(), {x}, {{"axis", c.axis(c.integer("dim"), r)}, {"keepdims", keep(c)}}));
}

void log_sum_exp(C& c) {
  Value* x = c.operand("self", c.promote({"self"}, Promotion::kIntToFloat));
  c.out(c.reduce("ReduceLogSumExp", x, axes_of(c, x, c.rank(x)), keep(c)));
}

void count_nonzero(C& c) {
  Value* x = c.cast(c.cast(c.x("self"), DType::kBool), DType::kInt64);
  if (c.is_complex("self")) x = c.reduce("ReduceMax", x, {-1}, false);
  c.out(c.reduce("ReduceSum", x, axes_of(c, x, c.rank(x)), keep(c)));
}

// ---- norms ----

Value* vector_norm(C& c, Value* x, double p, Ints axes, bool keepdims) {
  if (c.rank(x) == 0)
    return p == 0 ? c.cast(c.cast(x, DType::kBool), c.dtype(x)) : c.op("Abs", {x});
  if (p == 2) return c.reduce("ReduceL2", x, std::move(axes), keepdims);
  if (p == 1) return c.reduce("ReduceL1", x, std::move(axes), keepdims);
  if (p == 0) {
    Value* some = c.cast(c.cast(x, DType::kBool), c.dtype(x));
    return c.reduce("ReduceSum", some, std::move(axes), keepdims);
  }
  Value* a = c.op("Abs", {x});
  if (std::isinf(p))
    return c.reduce(p > 0 ? "ReduceMax" : "ReduceMin", a, std::move(axes), keepdims);
  Value* total = c.reduce("ReduceSum", c.op("Pow", {a, c.like(p, a)}), std::move(axes), keepdims);
  return c.op("Pow", {total, c.like(1 / p, total)});
}

Value* norm_operand(C& c) {
  DType type =
      c.has_arg("dtype") ? c.dtype("dtype").value_or(DType::kUndefined) : DType::kUndefined;
  if (c.is_complex("self")) return complex_abs(c, c.x("self"));
  if (type == DType::kUndefined) type = c.promote({"self"}, Promotion::kIntToFloat);
  return c.operand("self", C::real_of(type));
}

void norm(C& c) {
  Value* x = norm_operand(c);
  const double p = c.has_arg("ord") ? c.real("ord") : c.given("p") ? c.real("p") : 2;
  c.out(vector_norm(c, x, p, axes_of(c, x, c.rank(x)), keep(c)));
}

void dist(C& c) {
  const DType type = c.promote({"self", "other"});
  Value* d = c.sub(c.operand("self", type), c.operand("other", type));
  if (is_complex(type)) d = complex_abs(c, d);
  c.out(vector_norm(c, d, c.real("p"), axes_of(c, d, c.rank(d)), false));
}

void renorm(C& c) {
  Value* x = c.x("self");
  const int64_t r = c.rank(x), dim = c.axis(c.integer("dim"), r);
  Ints axes;
  for (int64_t i = 0; i < r; ++i)
    if (i != dim) axes.push_back(i);
  Value* length = vector_norm(c, x, c.real("p"), axes, true);
  Value* limit = c.like(c.real("maxnorm"), x);
  Value* factor = c.div(limit, c.add(length, c.like(1e-7, x)));
  c.out(c.where(c.op("Greater", {length, limit}), c.mul(x, factor), x));
}

// ---- scans ----

Value* cumulative_sum(C& c, Value* x, int64_t dim) {
  const DType type = c.dtype(x);
  const bool narrow = is_integer(type) && bits_of(type) < 32;
  Value* wide = narrow ? c.cast(x, DType::kInt64) : x;
  Value* result = c.at_least_1d(wide, [&](Value* v) {
    return c.op("CumSum", {v, c.b.int_scalar(c.axis(dim, c.rank(v)))});
  });
  return c.cast(result, type);
}

void cumsum(C& c) {
  DType type;
  Value* x = summand(c, type);
  int64_t dim = c.integer("dim");
  if (is_complex(type)) dim = c.axis(dim, c.rank(x) - 1);
  c.out(cumulative_sum(c, x, dim), type);
}

/// The axis brought first, for Scan; and back.
template <typename Body>
Value* scan_axis(C& c, Value* x, int64_t dim, Value* initial, Body&& step, Value** last = nullptr) {
  // step(state, item) -> {state, output}
  Node* scan = c.b.begin(
      "Scan", Values{initial, x},
      {{"num_scan_inputs", 1}, {"scan_input_axes", Ints{dim}}, {"scan_output_axes", Ints{dim}}});
  Graph& body = scan->set_graph("body");
  body.name = "step";
  Shape item_shape = c.b.shape(x);
  if (static_cast<size_t>(dim) < item_shape.size())
    item_shape.erase(item_shape.begin() + static_cast<ptrdiff_t>(dim));
  c.enter(body);
  Value* state = c.b.input("state", c.dtype(initial), SymShape(c.b.shape(initial)));
  Value* item = c.b.input("item", c.dtype(x), item_shape);
  const auto [next, output] = step(state, item);
  body.add_output(next == output || !next->producer() ? c.op("Identity", {next}) : next);
  body.add_output(!output->producer() ? c.op("Identity", {output}) : output);
  c.leave();
  const Values results = c.b.finish(scan, 2);
  c.b.set_type(results[0], c.dtype(initial), SymShape(c.b.shape(initial)));
  c.b.set_type(results[1], c.dtype(output), SymShape(c.b.shape(x)));
  if (last) *last = results[0];
  return results[1];
}

SymInts without(C& c, Value* x, int64_t dim) {
  SymInts sizes = c.sizes(x);
  sizes.erase_axis(static_cast<size_t>(dim));
  return sizes;
}

void cumprod(C& c) {
  DType type;
  Value* x = summand(c, type);
  if (is_complex(type)) {
    if (c.rank(x) == 1) return c.out(x, type);
    const int64_t dim = c.axis(c.integer("dim"), c.rank(x) - 1);
    const SymInts sizes = without(c, c.re(x), dim);
    Value* one = c.pair(c.full(sizes, 1, c.dtype(x)), c.full(sizes, 0, c.dtype(x)));
    return c.out(scan_axis(c, x, dim, one,
                           [&](Value* state, Value* item) {
                             Value* next = complex_mul(c, state, item);
                             return std::pair(next, next);
                           }),
                 type);
  }
  if (c.rank(x) == 0) return c.out(x);
  const int64_t dim = c.axis(c.integer("dim"), c.rank(x));
  Value* one = c.full(without(c, x, dim), 1, c.dtype(x));
  c.out(scan_axis(c, x, dim, one, [&](Value* state, Value* item) {
    Value* next = c.mul(state, item);
    return std::pair(next, next);
  }));
}

/// log(exp(a) + exp(b)) as max + log(1 + exp(min - max)), in the order of the real parts.
void complex_logcumsumexp(C& c, Value* z) {
  const DType type = c.type("self");
  if (c.rank(z) == 1) return c.out(z, type);
  const int64_t dim = c.axis(c.integer("dim"), c.rank(z) - 1);
  const SymInts sizes = without(c, c.re(z), dim);
  Value* none = c.pair(c.full(sizes, -INFINITY, c.dtype(z)), c.full(sizes, 0, c.dtype(z)));
  const auto step = [&](Value* state, Value* item) {
    Value* less = c.op("Less", {c.re(state), c.re(item)});
    less = c.unsqueeze(less, {-1});
    Value *high = c.where(less, item, state), *low = c.where(less, state, item);
    Value* nothing = c.unsqueeze(c.op("Equal", {c.re(high), c.like(-INFINITY, z)}), {-1});
    Value* gap = c.where(nothing, c.like(0, z), c.sub(low, high));
    Value* size = complex_exp(c, gap);
    Value* one_more = c.pair(c.add(c.re(size), c.like(1, z)), c.im(size));
    Value* next = c.where(nothing, high, c.add(high, complex_log(c, one_more)));
    return std::pair(next, next);
  };
  c.out(scan_axis(c, z, dim, none, step), type);
}

void logcumsumexp(C& c) {
  Value* x = c.x("self");
  if (c.is_complex("self")) return complex_logcumsumexp(c, x);
  if (c.rank(x) == 0) return c.out(x);
  const int64_t dim = c.axis(c.integer("dim"), c.rank(x));
  Value* none = c.full(without(c, x, dim), -INFINITY, c.dtype(x));
  c.out(scan_axis(c, x, dim, none, [&](Value* state, Value* item) {
    Value* high = c.op("Max", {state, item});
    Value* low = c.op("Min", {state, item});
    Value* safe = c.where(c.op("Equal", {high, low}), c.like(0, high), c.sub(low, high));
    Value* next = c.add(high, c.op("Log", {c.add(c.like(1, high), c.op("Exp", {safe}))}));
    next = c.where(c.op("IsInf", {high}), high, next);
    return std::pair(next, next);
  }));
}

/// All bits of 64 of each element, as integer or double, by exclusive or.
void hash_tensor(C& c) {
  if (c.is_complex("self") || c.integer("mode") != 0) return c.refuse("this kind of hash");
  Value* x = c.x("self");
  const int64_t r = c.rank(x);
  const Ints axes = axes_of(c, x, r);
  x = c.cast(x, is_float(c.dtype(x)) ? DType::kFloat64 : DType::kInt64);
  x = c.op("BitCast", {x}, {{"to", static_cast<int64_t>(DType::kUInt64)}});
  if (r == 0) return c.out(x);
  // The axes that go come first, as one.
  Ints order = axes;
  SymInts sizes = {SymInt(-1)}, kept;
  for (int64_t i = 0; i < r; ++i) {
    const bool gone = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!gone) order.push_back(i);
    if (!gone) sizes.push_back(c.size(x, i));
    if (!gone || keep(c)) kept.push_back(gone ? SymInt(1) : c.size(x, i));
  }
  x = c.reshape(c.transpose(x, order), sizes);
  Value* last = nullptr;
  scan_axis(
      c, x, 0, c.full(without(c, x, 0), 0, DType::kUInt64),
      [&](Value* state, Value* item) {
        Value* next = c.op("BitwiseXor", {state, item});
        return std::pair(next, next);
      },
      &last);
  c.out(c.reshape(last, kept));
}

/// cummax, cummin: values and the index of the last element that equals them.
void cumulative_extreme(C& c) {
  Value* x = c.x("self");
  const int64_t r = c.rank(x);
  if (r == 0) {
    c.out(x);
    return c.out(c.b.int_scalar(0));
  }
  const bool largest = std::string_view(c.detail()) == "max";
  const int64_t dim = c.axis(c.integer("dim"), r);
  const DType type = c.dtype(x);
  Value* values = type == DType::kBool ? c.cast(x, DType::kInt32) : x;
  // Pairs (value, index) ride together in two scans: the second looks at where the value changes.
  Value* first = c.squeeze(c.slice(values, dim, SymInt(0), SymInt(1)), {dim});
  Value* running = scan_axis(c, values, dim, first, [&](Value* state, Value* item) {
    Value* next = c.op(largest ? "Max" : "Min", {state, item});
    return std::pair(next, next);
  });
  Value* hit = c.op("Equal", {values, running});
  if (is_float(c.dtype(values))) hit = c.op("Or", {hit, c.op("IsNaN", {values})});
  Ints after;
  for (int64_t i = dim + 1; i < r; ++i) after.push_back(i - dim);
  Value* positions = c.range(c.size(values, dim));
  if (!after.empty()) positions = c.unsqueeze(positions, after);
  Value* marked = c.where(hit, positions, c.b.int_scalar(0));
  marked = c.expand(marked, c.sizes(values));
  Value* zero = c.full(without(c, values, dim), 0, DType::kInt64);
  Value* indices = scan_axis(c, marked, dim, zero, [&](Value* state, Value* item) {
    Value* next = c.op("Max", {state, item});
    return std::pair(next, next);
  });
  c.out(c.cast(running, type));
  c.out(indices);
}

void diff(C& c) {
  Value* x = c.x("self");
  const int64_t dim = c.axis(c.integer("dim"), c.rank(x));
  Values parts;
  if (c.given("prepend")) parts.push_back(c.x("prepend"));
  parts.push_back(x);
  if (c.given("append")) parts.push_back(c.x("append"));
  const bool complex = c.is_complex("self");
  const int64_t real_dim = complex ? c.axis(c.integer("dim"), c.rank(x) - 1) : dim;
  x = c.concat(parts, real_dim);
  for (int64_t i = c.count(c.integer("n"), 256); i > 0; --i) {
    Value* high = c.slice(x, real_dim, SymInt(1), SymInt(INT64_MAX));
    Value* low = c.slice(x, real_dim, SymInt(0), SymInt(-1));
    x = c.dtype(x) == DType::kBool ? c.op("Xor", {high, low}) : c.sub(high, low);
  }
  c.out(x, c.type("self"));
}

// ---- order ----

/// Both results of TopK over a whole axis; a stable order needs no more, as TopK prefers the lower
/// index.
std::pair<Value*, Value*> sorted(C& c, Value* x, int64_t dim, bool descending) {
  const DType type = c.dtype(x);
  Value* keys = type == DType::kBool ? c.cast(x, DType::kInt32) : x;
  if (c.rank(x) == 0) return {x, c.b.int_scalar(0)};
  Value* k = c.int_vector(c.size(x, dim));
  const Values results =
      c.b.op_many("TopK", {keys, k}, 2, {{"axis", dim}, {"largest", descending}, {"sorted", 1}});
  for (size_t i = 0; i < 2; ++i)
    c.b.set_type(results[i], i == 0 ? c.dtype(keys) : DType::kInt64, SymShape(c.b.shape(x)));
  return {c.cast(results[0], type), results[1]};
}

void sort(C& c) {
  Value* x = c.x("self");
  const auto [values, indices] =
      sorted(c, x, c.axis(c.integer("dim"), c.rank(x)), c.flag("descending"));
  c.out(values);
  c.out(indices);
}

void argsort(C& c) {
  Value* x = c.x("self");
  c.out(sorted(c, x, c.axis(c.integer("dim"), c.rank(x)), c.flag("descending")).second);
}

void msort(C& c) { c.out(sorted(c, c.x("self"), 0, false).first); }

void topk(C& c) {
  Value* x = c.x("self");
  if (c.rank(x) == 0) {
    c.out(x);
    return c.out(c.b.int_scalar(0));
  }
  const int64_t dim = c.axis(c.integer("dim"), c.rank(x));
  const Values results =
      c.b.op_many("TopK", {orderable(c, x), c.int_vector(c.sym("k"))}, 2,
                  {{"axis", dim}, {"largest", c.flag("largest")}, {"sorted", c.flag("sorted")}});
  c.out(c.cast(results[0], c.dtype(x)));
  c.out(results[1]);
}

Value* nth(C& c, Value* x, int64_t dim, const SymInt& index, bool keepdims) {
  Value* one = c.slice(x, dim, index, c.add(index, SymInt(1)));
  return keepdims ? one : c.squeeze(one, {dim});
}

void kthvalue(C& c) {
  Value* x = c.x("self");
  if (c.rank(x) == 0) {
    c.out(x);
    return c.out(c.b.int_scalar(0));
  }
  const int64_t dim = c.axis(c.integer("dim"), c.rank(x));
  const auto [values, indices] = sorted(c, x, dim, false);
  const SymInt at = c.sub(c.sym("k"), SymInt(1));
  c.out(nth(c, values, dim, at, keep(c)));
  c.out(nth(c, indices, dim, at, keep(c)));
}

/// The lower median; NaN where there is one (nanmedian: NaN only where all are).
void median(C& c) {
  const bool ignore_nan = std::string_view(c.detail()) == "nan";
  const bool whole = !c.has_arg("dim");
  Value* x = c.x("self");
  const DType type = c.dtype(x);
  if (whole) x = c.reshape(x, {SymInt(-1)});
  if (c.rank(x) == 0) {
    c.out(x);
    return c.out(c.b.int_scalar(0));
  }
  const int64_t dim = whole ? 0 : c.axis(c.integer("dim"), c.rank(x));
  const bool keepdims = !whole && keep(c);
  if (!is_float(type)) {
    const auto [values, indices] = sorted(c, x, dim, false);
    const SymInt at = c.floor_div(c.sub(c.size(x, dim), SymInt(1)), SymInt(2));
    c.out(nth(c, values, dim, at, keepdims));
    if (!whole) c.out(nth(c, indices, dim, at, keepdims));
    return;
  }
  Value* nan = c.op("IsNaN", {x});
  Value* keys = c.where(nan, c.like(INFINITY, x), x);
  const auto [values, indices] = sorted(c, keys, dim, false);
  // The position depends on how many numbers there are when NaN does not count.
  Value* valid = c.reduce("ReduceSum", c.cast(c.op("Not", {nan}), DType::kInt64), {dim}, true);
  Value* some = c.op("Max", {c.sub(valid, c.b.int_scalar(1)), c.b.int_scalar(0)});
  Value* at = c.op("Div", {some, c.b.int_scalar(2)});
  if (!ignore_nan) {
    Value* any_nan = c.op("Less", {valid, c.int_vector(c.size(x, dim))});
    Value* first_nan = c.op("ArgMax", {c.cast(nan, DType::kInt32)}, {{"axis", dim}});
    at = c.op("Div", {c.sub(c.int_vector(c.size(x, dim)), c.b.ints({1})), c.b.ints({2})});
    at = c.expand(at, c.sizes(valid));
    Value* value = c.op("GatherElements", {values, at}, {{"axis", dim}});
    Value* index = c.op("GatherElements", {indices, at}, {{"axis", dim}});
    value = c.where(any_nan, c.like(NAN, x), value);
    index = c.where(any_nan, first_nan, index);
    c.out(keepdims ? value : c.squeeze(value, {dim}));
    if (!whole) c.out(keepdims ? index : c.squeeze(index, {dim}));
    return;
  }
  Value* value = c.op("GatherElements", {values, at}, {{"axis", dim}});
  Value* index = c.op("GatherElements", {indices, at}, {{"axis", dim}});
  Value* none = c.op("Equal", {valid, c.b.int_scalar(0)});
  value = c.where(none, c.like(NAN, x), value);
  c.out(keepdims ? value : c.squeeze(value, {dim}));
  if (!whole) c.out(keepdims ? index : c.squeeze(index, {dim}));
}

/// The most frequent value, the smallest of several; the index of its last occurrence.
void mode(C& c) {
  Value* x = c.x("self");
  if (c.rank(x) == 0) {
    c.out(x);
    return c.out(c.b.int_scalar(0));
  }
  const int64_t r = c.rank(x), dim = c.axis(c.integer("dim"), r);
  Value* last = c.swap(x, dim, r - 1);
  const auto [values, indices] = sorted(c, last, r - 1, false);
  Value* same = c.op("Equal", {c.unsqueeze(values, {r}), c.unsqueeze(values, {r - 1})});
  Value* counts = c.reduce("ReduceSum", c.cast(same, DType::kInt64), {r}, false);
  Value* best = c.op("ArgMax", {counts}, {{"axis", r - 1}, {"keepdims", 1}});
  Value* value = c.op("GatherElements", {values, best}, {{"axis", r - 1}});
  // The last index at which the value stands in the source.
  Value* hit = c.op("Equal", {last, value});
  Value* index = c.op("ArgMax", {c.cast(hit, DType::kInt32)},
                      {{"axis", r - 1}, {"select_last_index", 1}, {"keepdims", 1}});
  value = c.swap(value, dim, r - 1);
  index = c.swap(index, dim, r - 1);
  c.out(keep(c) ? value : c.squeeze(value, {dim}));
  c.out(keep(c) ? index : c.squeeze(index, {dim}));
}

/// quantile and nanquantile; q is a number or a tensor of rank 0 or 1.
void quantile(C& c) {
  const bool ignore_nan = std::string_view(c.detail()) == "nan";
  Value* x = c.x("self");
  const DType type = c.dtype(x);
  const bool whole = !c.given("dim");
  const int64_t source_rank = c.rank(x);
  int64_t dim = 0;
  if (whole) {
    x = c.reshape(x, {SymInt(-1)});
  } else {
    dim = c.axis(c.integer("dim"), std::max<int64_t>(source_rank, 1));
    if (source_rank == 0) x = c.unsqueeze(x, {0});
  }
  const int64_t r = c.rank(x);
  x = c.swap(x, dim, r - 1);
  Value* q = c.operand("q", type);
  const int64_t q_rank = c.rank(q);
  if (q_rank == 0) q = c.unsqueeze(q, {0});
  Value* nan = c.op("IsNaN", {x});
  Value* keys = c.where(nan, c.like(INFINITY, x), x);
  Value* values = sorted(c, keys, r - 1, false).first;
  Value* valid = c.reduce("ReduceSum", c.cast(c.op("Not", {nan}), type), {r - 1}, true);
  Value* length = c.operand_of(Arg(c.size(x, r - 1)), type);
  Value* reach = ignore_nan ? c.op("Max", {c.sub(valid, c.like(1, valid)), c.like(0, valid)})
                            : c.expand(c.reshape(c.sub(length, c.like(1, x)),
                                                 SymInts(static_cast<size_t>(r), SymInt(1))),
                                       c.sizes(valid));
  Value* position = c.mul(reach, q);
  Value* low = c.op("Floor", {position});
  Value* high = c.op("Ceil", {position});
  const std::string how = c.text("interpolation");
  const auto at = [&](Value* where) {
    return c.op("GatherElements", {values, c.cast(where, DType::kInt64)}, {{"axis", r - 1}});
  };
  Value* result = nullptr;
  if (how == "lower") {
    result = at(low);
  } else if (how == "higher") {
    result = at(high);
  } else if (how == "nearest") {
    result = at(c.op("Round", {position}));
  } else {
    Value *a = at(low), *z = at(high);
    Value* weight = how == "midpoint" ? c.like(0.5, x) : c.sub(position, low);
    Value* gap = c.where(c.op("Equal", {a, z}), c.like(0, a), c.sub(z, a));
    result = c.add(a, c.mul(weight, gap));
  }
  Value* bad =
      ignore_nan ? c.op("Equal", {valid, c.like(0, valid)}) : c.op("Less", {valid, length});
  result = c.where(bad, c.like(NAN, x), result);
  // [..., q] -> q in front, the reduced axis kept as 1 or dropped.
  Ints perm = {r - 1};
  for (int64_t i = 0; i + 1 < r; ++i) perm.push_back(i);
  result = c.transpose(result, perm);  // [q, others with dim's place taken by the last]
  result = c.unsqueeze(result, {r});   // the place of the reduced axis
  result = c.swap(result, dim + 1, r);
  SymInts shape;
  if (q_rank > 0) shape.push_back(c.size(q, 0));
  if (whole) {
    if (keep(c))
      for (int64_t i = 0; i < source_rank; ++i) shape.emplace_back(1);
  } else {
    for (int64_t i = 0; i < r; ++i) {
      if (i == dim && (!keep(c) || source_rank == 0)) continue;
      shape.push_back(i == dim ? SymInt(1) : c.size(result, i + 1));
    }
  }
  c.out(c.reshape(result, shape));
}

void trace(C& c) {
  Value* d = c.lower("diagonal", {c.arg("self")});
  DType type = c.type("self");
  if (is_integer(type) || type == DType::kBool) d = c.cast(d, DType::kInt64);
  if (is_complex(type)) return c.out(c.reduce("ReduceSum", d, {0}, false), type);
  c.out(c.reduce("ReduceSum", d, {0}, false));
}

constexpr Row kReductionRows[] = {
    {"sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", sum},
    {"sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> "
     "Tensor",
     sum},
    {"nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
     "Tensor",
     nansum},
    {"prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", prod},
    {"prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     prod},
    {"mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", mean},
    {"mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     mean},
    {"nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
     "Tensor",
     nanmean},
    {"var(Tensor self, bool unbiased=True) -> Tensor", var},
    {"var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", var},
    {"var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
     "keepdim=False) -> Tensor",
     var},
    {"std(Tensor self, bool unbiased=True) -> Tensor", var},
    {"std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", var},
    {"std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
     "keepdim=False) -> Tensor",
     var},
    {"var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", var},
    {"var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, "
     "Tensor)",
     var},
    {"var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
     "keepdim=False) -> (Tensor, Tensor)",
     var},
    {"std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", var},
    {"std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, "
     "Tensor)",
     var},
    {"std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
     "keepdim=False) -> (Tensor, Tensor)",
     var},
    {"all(Tensor self) -> Tensor", all_any, "ReduceMin"},
    {"_is_all_true(Tensor self) -> Tensor", all_any, "ReduceMin"},
    {"_is_any_true(Tensor self) -> Tensor", all_any, "ReduceMax"},
    {"all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", all_any, "ReduceMin"},
    {"all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", all_any, "ReduceMin"},
    {"any(Tensor self) -> Tensor", all_any, "ReduceMax"},
    {"any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", all_any, "ReduceMax"},
    {"any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", all_any, "ReduceMax"},
    {"amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", extreme, "ReduceMax"},
    {"amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", extreme, "ReduceMin"},
    {"max(Tensor self) -> Tensor", extreme, "ReduceMax"},
    {"min(Tensor self) -> Tensor", extreme, "ReduceMin"},
    {"aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
     aminmax},
    {"max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
     extreme_dim, "ReduceMax"},
    {"min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
     extreme_dim, "ReduceMin"},
    {"argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", arg_extreme, "ArgMax"},
    {"argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", arg_extreme, "ArgMin"},
    {"logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", log_sum_exp},
    {"special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", log_sum_exp},
    {"count_nonzero(Tensor self, int? dim=None) -> Tensor", count_nonzero},
    {"count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor", count_nonzero},
    {"norm.Scalar(Tensor self, Scalar p=2) -> Tensor", norm},
    {"norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor", norm},
    {"norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor", norm},
    {"norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType "
     "dtype) -> Tensor",
     norm},
    {"linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
     "ScalarType? dtype=None) -> Tensor",
     norm},
    {"frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", norm},
    {"dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", dist},
    {"renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", renorm},
    {"cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", cumsum},
    {"cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", cumprod},
    {"logcumsumexp(Tensor self, int dim) -> Tensor", logcumsumexp},
    {"hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor",
     hash_tensor},
    {"cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)", cumulative_extreme, "max"},
    {"cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)", cumulative_extreme, "min"},
    {"diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
     diff},
    {"sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
     sort},
    {"sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor "
     "values, Tensor indices)",
     sort},
    {"argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", argsort},
    {"argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
     argsort},
    {"msort(Tensor self) -> Tensor", msort},
    {"topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor "
     "values, Tensor indices)",
     topk},
    {"kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor "
     "indices)",
     kthvalue},
    {"median(Tensor self) -> Tensor", median},
    {"median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
     median},
    {"nanmedian(Tensor self) -> Tensor", median, "nan"},
    {"nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
     median, "nan"},
    {"mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)", mode},
    {"quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
     "interpolation='linear') -> Tensor",
     quantile},
    {"quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
     "interpolation='linear') -> Tensor",
     quantile},
    {"nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
     "interpolation='linear') -> Tensor",
     quantile, "nan"},
    {"nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
     "interpolation='linear') -> Tensor",
     quantile, "nan"},
    {"trace(Tensor self) -> Tensor", trace},
};

}  // namespace

std::span<const Row> reduction_rows() { return kReductionRows; }

}  // namespace tombolo::pytorch
