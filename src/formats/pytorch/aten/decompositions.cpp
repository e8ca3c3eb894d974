// Linear algebra: elimination and factorisation as loops over columns, batches at once.

#include <algorithm>
#include <cmath>

#include "formats/pytorch/aten/complex.h"
#include "formats/pytorch/aten/matrices.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

struct Elimination {
  Value *solution, *determinant;
};

/// Gauss-Jordan with the largest pivot: A X = B, and det A.
Elimination eliminate(C& c, Value* a, Value* right) {
  const int64_t r = c.rank(a);
  const SymInt n = c.size(a, r - 1), m = c.size(right, r - 1);
  const DType type = c.dtype(a);
  SymInts lead = lead_sizes(c, a, 2), one_sizes = lead;
  one_sizes.emplace_back(1);
  one_sizes.emplace_back(1);
  Value* wide = c.concat({a, right}, r - 1);
  Value* rows = c.unsqueeze(c.range(n), {1});  // [n, 1]
  Value* det = c.full(one_sizes, 1, type);
  const SymInt width = c.add(n, m);
  const Values done = loop(c, n, {wide, det}, [&](Value* i, const Values& state) {
    Value* x = state[0];
    Value* column = c.op("Abs", {column_of(c, x, i)});
    Value* open = c.op("GreaterOrEqual", {rows, i});
    Value* best = c.op("ArgMax", {c.where(open, column, c.like(-1, column))},
                       {{"axis", r - 2}, {"keepdims", 1}});
    SymInts spread = lead;
    spread.emplace_back(1);
    spread.push_back(width);
    Value* pivot_row = c.op("GatherElements", {x, c.expand(best, spread)}, {{"axis", r - 2}});
    Value* old_row = row_of(c, x, i);
    Value* swapped = c.where(c.op("Equal", {rows, best}), old_row, x);
    Value* pivot = column_of(c, pivot_row, i);
    Value* unit = c.div(pivot_row, pivot);
    Value* cleared = c.sub(swapped, c.mul(column_of(c, swapped, i), unit));
    Value* next = c.where(c.op("Equal", {rows, i}), unit, cleared);
    Value* sign = c.where(c.op("Equal", {best, i}), c.like(1, pivot), c.like(-1, pivot));
    return Values{next, c.mul(state[1], c.mul(pivot, sign))};
  });
  Value* solution = c.slice(done[0], r - 1, n, SymInt(INT64_MAX));
  Shape shape = c.b.shape(right);
  if (solution->producer()) c.b.set_type(solution, type, shape);
  return {solution, done[1]};
}

/// The same for pairs, [.., n, n, 2] and [.., n, m, 2].
Elimination eliminate_pairs(C& c, Value* a, Value* right) {
  const int64_t r = c.rank(a) - 1;
  const SymInt n = c.size(a, r - 1), m = c.size(right, r - 1);
  const DType type = c.dtype(a);
  SymInts lead = lead_sizes(c, a, 3), one_sizes = lead;
  one_sizes.emplace_back(1);
  one_sizes.emplace_back(1);
  Value* wide = c.concat({a, right}, r - 1);
  Value* rows = c.unsqueeze(c.range(n), {1});  // [n, 1]
  Value* one = c.full(one_sizes, 1, type);
  Value* det = c.pair(one, c.mul(one, c.like(0, one)));
  const SymInt width = c.add(n, m);
  const auto column = [&](Value* x, Value* i) {
    return c.op("Gather", {x, c.unsqueeze(i, {0})}, {{"axis", r - 1}});
  };
  const Values done = loop(c, n, {wide, det}, [&](Value* i, const Values& state) {
    Value* x = state[0];
    Value* size = complex_abs(c, column(x, i));
    Value* open = c.op("GreaterOrEqual", {rows, i});
    Value* best =
        c.op("ArgMax", {c.where(open, size, c.like(-1, size))}, {{"axis", r - 2}, {"keepdims", 1}});
    SymInts spread = lead;
    spread.emplace_back(1);
    spread.push_back(width);
    spread.emplace_back(2);
    Value* pivot_row =
        c.op("GatherElements", {x, c.expand(c.unsqueeze(best, {-1}), spread)}, {{"axis", r - 2}});
    Value* old_row = c.op("Gather", {x, c.unsqueeze(i, {0})}, {{"axis", r - 2}});
    Value* swapped = c.where(c.unsqueeze(c.op("Equal", {rows, best}), {-1}), old_row, x);
    Value* pivot = column(pivot_row, i);
    Value* unit = complex_div(c, pivot_row, pivot);
    Value* cleared = c.sub(swapped, complex_mul(c, column(swapped, i), unit));
    Value* next = c.where(c.unsqueeze(c.op("Equal", {rows, i}), {-1}), unit, cleared);
    Value* sign =
        c.unsqueeze(c.where(c.op("Equal", {best, i}), c.scalar(1, type), c.scalar(-1, type)), {-1});
    return Values{next, c.mul(complex_mul(c, state[1], pivot), sign)};
  });
  Value* solution = c.slice(done[0], r - 1, n, SymInt(INT64_MAX));
  if (solution->producer()) c.b.set_type(solution, type, SymShape(c.b.shape(right)));
  return {solution, done[1]};
}

void emit_info(C& c, Value* a) { c.out(c.full(lead_sizes(c, a, 2), 0, DType::kInt32)); }

Value* inverse_of(C& c, Value* a) {
  Value* w = wide(c, a);
  return c.cast(eliminate(c, w, identity_like(c, w)).solution, c.dtype(a));
}

void inverse(C& c) {
  const char* name = c.has_arg("A") ? "A" : "self";
  Value* a = c.x(name);
  if (c.is_complex(name)) {
    Value* w = wide(c, a);
    Value* eye = identity_like(c, c.re(w));
    Value* unit = c.pair(eye, c.mul(eye, c.like(0, eye)));
    c.out(c.cast(eliminate_pairs(c, w, unit).solution, c.dtype(a)), c.type(name));
    a = c.re(a);
  } else {
    c.out(inverse_of(c, a));
  }
  if (c.schema().results.size() == 2) emit_info(c, a);
}

/// Brings both to one batch.
void align_batches(C& c, Value*& a, Value*& y) {
  SymInts la = lead_sizes(c, a, 2), ly = lead_sizes(c, y, 2);
  SymInts lead = la.size() >= ly.size() ? la : ly;
  const SymInts& other = la.size() >= ly.size() ? ly : la;
  for (size_t i = 0; i < other.size(); ++i) {
    SymInt& one = lead[lead.size() - other.size() + i];
    if (one.is(1)) one = other[i];
  }
  const auto widened = [&](Value* v) {
    SymInts sizes = lead;
    sizes.push_back(c.size(v, -2));
    sizes.push_back(c.size(v, -1));
    return c.expand(v, sizes);
  };
  a = widened(a);
  y = widened(y);
}

/// Exchanges the last two axes of matrices.
Value* turned(C& c, Value* a, bool pairs) { return pairs ? c.swap(a, -2, -3) : c.swap(a, -1, -2); }

Value* solved(C& c, Value* a, Value* y, bool pairs = false) {
  const DType type = c.dtype(a);
  if (pairs) {  // both parts at once are one batch
    Value *are = c.re(a), *aim = c.im(a), *yre = c.re(y), *yim = c.im(y);
    align_batches(c, are, yre);
    align_batches(c, aim, yim);
    Value* x = eliminate_pairs(c, wide(c, c.pair(are, aim)), wide(c, c.pair(yre, yim))).solution;
    return c.cast(x, type);
  }
  align_batches(c, a, y);
  return c.cast(eliminate(c, wide(c, a), wide(c, y)).solution, type);
}

/// X of A X = B, or of X A = B; B may be a vector.
void solve(C& c) {
  Value *a = c.x("A"), *y = c.x("B");
  const bool left = !c.has_arg("left") || c.flag("left"), pairs = c.is_complex("A");
  const int64_t extra = pairs ? 1 : 0;
  // A vector where B has one axis less than A and fits its batch.
  bool vector = c.rank(y) == 1 + extra;
  if (!vector && c.rank(y) == c.rank(a) - 1) {
    vector = true;
    for (int64_t i = 0; i < c.rank(y) - extra; ++i)
      vector = vector && c.b.dim(y, i).equals(c.b.dim(a, i));
  }
  if (vector) y = c.unsqueeze(y, {c.rank(y) - extra});
  Value* x = left ? solved(c, a, y, pairs)
                  : turned(c, solved(c, turned(c, a, pairs), turned(c, y, pairs), pairs), pairs);
  c.out(vector ? c.squeeze(x, {c.rank(x) - 1 - extra}) : x, c.type("A"));
  if (pairs) a = c.re(a);
  const size_t results = c.schema().results.size();
  if (results == 2) emit_info(c, a);
  for (size_t i = 1; i < results && results > 2; ++i) {
    if (i == 3) {
      emit_info(c, a);
    } else {
      c.out_arg(Arg());
    }
  }
}

void triangular(C& c) {
  const bool old = c.name() == "triangular_solve", pairs = c.is_complex(old ? "A" : "self");
  Value *a = c.x(old ? "A" : "self"), *y = c.x(old ? "self" : "B");
  Value* original = a;
  const bool upper = c.flag("upper"), unit = c.flag("unitriangular");
  const bool left = old || c.flag("left");
  const bool transposed = old && c.flag("transpose");
  const auto cut = [&](Value* whole, double diagonal) {
    Value* half = c.op("Trilu", {whole}, {{"upper", upper}});
    if (!unit) return half;
    Value* eye = identity(c, c.size(whole, -1), DType::kBool);
    return c.where(eye, c.like(diagonal, half), half);
  };
  Value* part = pairs ? c.pair(cut(c.re(a), 1), cut(c.im(a), 0)) : cut(a, 1);
  if (transposed) part = turned(c, part, pairs);
  Value* x = left ? solved(c, part, y, pairs)
                  : turned(c, solved(c, turned(c, part, pairs), turned(c, y, pairs), pairs), pairs);
  c.out(x, c.type(old ? "A" : "self"));
  if (old) c.out(original, c.type("A"));
}

void complex_determinant(C& c, const char* name) {
  Value* a = c.x(name);
  const DType type = c.dtype(a);
  SymInts none = lead_sizes(c, a, 2);
  none.emplace_back(0);
  none.emplace_back(2);
  Value* d = eliminate_pairs(c, wide(c, a), c.full(none, 0, DType::kFloat64)).determinant;
  const int64_t r = c.rank(d) - 1;
  d = c.squeeze(d, {r - 2, r - 1});
  d = c.where(c.op("IsNaN", {d}), c.like(0, d), d);
  const std::string_view what = c.detail();
  if (what == "det") {
    c.out(c.cast(d, type), c.type(name));
    for (size_t i = 1; i < c.schema().results.size(); ++i) c.out_arg(Arg());
    return;
  }
  if (what == "logdet") return c.out(c.cast(complex_log(c, d), type), c.type(name));
  Value* size = complex_abs(c, d);
  c.out(c.cast(c.div(d, c.unsqueeze(size, {-1})), type), c.type(name));
  c.out(c.cast(c.op("Log", {size}), type));
  for (size_t i = 2; i < c.schema().results.size(); ++i) c.out_arg(Arg());
}

void determinant(C& c) {
  const char* name = c.has_arg("A") ? "A" : "self";
  if (c.is_complex(name)) return complex_determinant(c, name);
  Value* a = c.x(name);
  const DType type = c.dtype(a);
  SymInts none = lead_sizes(c, a, 1);
  none.emplace_back(0);
  Value* w = wide(c, a);
  Value* d = eliminate(c, w, c.full(none, 0, DType::kFloat64)).determinant;
  const int64_t r = c.rank(d);
  d = c.squeeze(d, {r - 2, r - 1});
  // A pivot of zero makes everything behind it undefined; the determinant is zero then.
  d = c.where(c.op("IsNaN", {d}), c.like(0, d), d);
  const std::string_view what = c.detail();
  if (what == "det") {
    c.out(c.cast(d, type));
    for (size_t i = 1; i < c.schema().results.size(); ++i) c.out_arg(Arg());
    return;
  }
  Value* log = c.op("Log", {c.op("Abs", {d})});
  if (what == "logdet") {
    return c.out(c.cast(c.where(c.op("Less", {d, c.like(0, d)}), c.like(NAN, d), log), type));
  }
  c.out(c.cast(c.op("Sign", {d}), type));
  c.out(c.cast(log, type));
  for (size_t i = 2; i < c.schema().results.size(); ++i) c.out_arg(Arg());
}

/// The lower factor L of A = L L^T.
Value* cholesky_of(C& c, Value* a) {
  const DType type = c.dtype(a);
  const int64_t r = c.rank(a);
  Value* w = wide(c, a);
  const SymInt n = c.size(w, r - 1);
  Value* rows = c.unsqueeze(c.range(n), {1});
  Value* columns = c.range(n);
  Value* zero = c.mul(w, c.like(0, w));
  const Values done = loop(c, n, {w, zero}, [&](Value* i, const Values& state) {
    Value* column = column_of(c, state[0], i);
    Value* pivot = c.op("Sqrt", {row_of(c, column, i)});
    Value* l = c.where(c.op("GreaterOrEqual", {rows, i}), c.div(column, pivot), c.like(0, column));
    Value* rest = c.sub(state[0], c.mul(l, c.swap(l, -1, -2)));
    Value* factor = c.where(c.op("Equal", {columns, i}), l, state[1]);
    return Values{rest, factor};
  });
  return c.cast(done[1], type);
}

/// The lower factor L of A = L L^H, of pairs.
Value* complex_cholesky(C& c, Value* a) {
  const DType type = c.dtype(a);
  Value *re = wide(c, c.re(a)), *im = wide(c, c.im(a));
  const SymInt n = c.size(re, -1);
  Value *rows = c.unsqueeze(c.range(n), {1}), *columns = c.range(n);
  Value* zero = c.mul(re, c.like(0, re));
  const Values done = loop(c, n, {re, im, zero, zero}, [&](Value* i, const Values& state) {
    Value *column = column_of(c, state[0], i), *turned = column_of(c, state[1], i);
    Value* pivot = c.op("Sqrt", {row_of(c, column, i)});
    Value* none = c.like(0, column);
    Value* x = c.where(c.op("GreaterOrEqual", {rows, i}), c.div(column, pivot), none);
    Value* y = c.where(c.op("Greater", {rows, i}), c.div(turned, pivot), none);
    Value *xt = c.swap(x, -1, -2), *yt = c.swap(y, -1, -2);
    Value* here = c.op("Equal", {columns, i});
    return Values{c.sub(state[0], c.add(c.mul(x, xt), c.mul(y, yt))),
                  c.sub(state[1], c.sub(c.mul(y, xt), c.mul(x, yt))), c.where(here, x, state[2]),
                  c.where(here, y, state[3])};
  });
  return c.pair(c.cast(done[2], type), c.cast(done[3], type));
}

void cholesky(C& c) {
  Value* a = c.x("self");
  const bool upper = c.flag("upper");
  if (c.is_complex("self")) {
    const bool old = c.name() == "cholesky";  // it reads the triangle that it gives
    const auto turn = [&](Value* v) {
      return c.pair(c.swap(c.re(v), -1, -2), c.swap(c.im(v), -1, -2));
    };
    Value* l = complex_cholesky(c, old && upper ? turn(a) : a);
    if (upper) l = turn(l);
    if (upper && !old) l = c.pair(c.re(l), c.op("Neg", {c.im(l)}));
    c.out(l, c.type("self"));
    if (c.schema().results.size() == 2) emit_info(c, c.re(a));
    return;
  }
  if (c.name() == "cholesky" && upper) a = c.swap(a, -1, -2);
  Value* l = cholesky_of(c, a);
  c.out(upper ? c.swap(l, -1, -2) : l);
  if (c.schema().results.size() == 2) emit_info(c, a);
}

void cholesky_solve(C& c) {
  // A X = B with A = L L^T or U^T U.
  const char* factor = c.has_arg("input2") ? "input2" : "self";
  if (!real_only(c, factor)) return;
  Value* l = c.x(factor);
  const bool upper = c.flag("upper");
  l = c.op("Trilu", {l}, {{"upper", upper}});
  Value* w = wide(c, l);
  Value* a =
      upper ? c.op("MatMul", {c.swap(w, -1, -2), w}) : c.op("MatMul", {w, c.swap(w, -1, -2)});
  Value* y = c.has_arg("input2") ? wide(c, c.x("self")) : identity_like(c, a);
  align_batches(c, a, y);
  c.out(c.cast(eliminate(c, a, y).solution, c.dtype(l)));
}

/// P A = L U in place, and which row went where; of pairs too.
struct Factors {
  Value *lu, *pivots;  ///< pivots[.., n, 1]: the row that step i took
  Value* order;        ///< order[.., n, 1]: the row of A that stands in row i
};
Factors lu_of(C& c, Value* a, bool pairs) {
  const int64_t extra = pairs ? 1 : 0, r = c.rank(a) - extra;
  Value* w = wide(c, a);
  const SymInt n = c.size(w, r - 2), m = c.size(w, r - 1);
  Value* rows = c.unsqueeze(c.range(n), {1});
  Value* columns = c.range(m);
  SymInts lead = lead_sizes(c, w, 2 + extra), order_sizes = lead;
  order_sizes.push_back(n);
  order_sizes.emplace_back(1);
  Value* order = c.expand(rows, order_sizes);
  // What is said of elements, said of both parts.
  const auto each = [&](Value* x) { return pairs ? c.unsqueeze(x, {-1}) : x; };
  const auto taken = [&](Value* x, Value* i, int64_t axis) {
    return c.op("Gather", {x, c.unsqueeze(i, {0})}, {{"axis", axis}});
  };
  const Values done =
      loop(c, c.minimum(n, m), {w, order, order}, [&](Value* i, const Values& state) {
        Value* x = state[0];
        Value* column = taken(x, i, r - 1);
        Value* length = c.op("Abs", {column});  // of pairs as LAPACK counts: both parts added
        if (pairs) length = c.add(c.re(length), c.im(length));
        Value* open = c.op("GreaterOrEqual", {rows, i});
        Value* best = c.op("ArgMax", {c.where(open, length, c.like(-1, length))},
                           {{"axis", r - 2}, {"keepdims", 1}});
        SymInts spread = lead;
        spread.emplace_back(1);
        spread.push_back(m);
        if (pairs) spread.emplace_back(2);
        Value* pivot_row =
            c.op("GatherElements", {x, c.expand(each(best), spread)}, {{"axis", r - 2}});
        Value* here = c.op("Equal", {rows, i});
        Value* swapped = c.where(each(c.op("Equal", {rows, best})), taken(x, i, r - 2), x);
        swapped = c.where(each(here), pivot_row, swapped);
        Value* best_order = c.op("GatherElements", {state[1], best}, {{"axis", r - 2}});
        Value* next_order = c.where(c.op("Equal", {rows, best}), row_of(c, state[1], i), state[1]);
        next_order = c.where(here, best_order, next_order);
        Value* pivot = taken(pivot_row, i, r - 1);
        Value* size = pairs ? complex_abs(c, pivot) : pivot;
        Value* none = each(c.op("Equal", {size, c.like(0, size)}));
        Value* divisor = c.where(none, c.like(1, pivot), pivot);
        Value* factor = taken(swapped, i, r - 1);
        factor = pairs ? complex_div(c, factor, divisor) : c.div(factor, divisor);
        Value* updated =
            c.sub(swapped, pairs ? complex_mul(c, factor, pivot_row) : c.mul(factor, pivot_row));
        Value* inner = c.where(each(c.op("Greater", {columns, i})), updated,
                               c.where(each(c.op("Equal", {columns, i})), factor, swapped));
        Value* next_pivots = c.where(here, best, state[2]);
        return Values{c.where(each(c.op("Greater", {rows, i})), inner, swapped), next_order,
                      next_pivots};
      });
  return {done[0], done[2], done[1]};
}

/// The factors as LAPACK packs them, with pivots from 1.
void lu_factor(C& c) {
  const char* name = c.has_arg("A") ? "A" : "self";
  const bool pairs = c.is_complex(name);
  if (!c.flag("pivot")) return c.refuse("a factorisation without pivots");
  Value* a = c.x(name);
  const Factors f = lu_of(c, a, pairs);
  c.out(c.cast(f.lu, c.dtype(a)), c.type(name));
  if (pairs) a = c.re(a);
  const int64_t r = c.rank(a);
  Value* pivots = c.slice(c.squeeze(f.pivots, {r - 1}), r - 2, SymInt(0),
                          c.minimum(c.size(a, -2), c.size(a, -1)));
  c.out(c.cast(c.add(pivots, c.b.int_scalar(1)), DType::kInt32));
  if (c.schema().results.size() == 3) emit_info(c, a);
}

/// P with P[order[i], i] = 1, from pivots in LAPACK's form, for `n` rows.
Value* permutation_matrix(C& c, Value* pivots, const SymInt& n, DType type) {
  const int64_t r = c.rank(pivots) + 1;
  pivots = c.sub(c.cast(c.unsqueeze(pivots, {r - 1}), DType::kInt64), c.b.int_scalar(1));
  Value* rows = c.unsqueeze(c.range(n), {1});
  SymInts sizes = lead_sizes(c, pivots, 2);
  sizes.push_back(n);
  sizes.emplace_back(1);
  Value* order = c.expand(rows, sizes);
  const Values done = loop(c, c.size(pivots, r - 2), {order}, [&](Value* i, const Values& state) {
    Value* taken = row_of(c, pivots, i);
    Value* theirs = c.op("GatherElements", {state[0], taken}, {{"axis", r - 2}});
    Value* next = c.where(c.op("Equal", {rows, taken}), row_of(c, state[0], i), state[0]);
    return Values{c.where(c.op("Equal", {rows, i}), theirs, next)};
  });
  return c.cast(c.op("Equal", {c.unsqueeze(c.range(n), {1}), c.swap(done[0], -1, -2)}), type);
}

struct Triangles {
  Value *lower, *upper;
};
Triangles unpacked(C& c, Value* lu, bool pairs) {
  if (pairs) {
    // A triangle of pairs is that of both parts; the ones of the diagonal are real.
    const Triangles re = unpacked(c, c.re(lu), false);
    Value* im = c.im(lu);
    const SymInt k = c.minimum(c.size(im, -2), c.size(im, -1));
    const int64_t r = c.rank(im);
    Value* lower = c.op("Trilu", {im, c.b.int_scalar(-1)}, {{"upper", 0}});
    Value* upper = c.op("Trilu", {im}, {{"upper", 1}});
    return {c.pair(re.lower, c.slice(lower, r - 1, SymInt(0), k)),
            c.pair(re.upper, c.slice(upper, r - 2, SymInt(0), k))};
  }
  const SymInt n = c.size(lu, -2), m = c.size(lu, -1), k = c.minimum(n, m);
  const int64_t r = c.rank(lu);
  Value* lower =
      c.slice(c.op("Trilu", {lu, c.b.int_scalar(-1)}, {{"upper", 0}}), r - 1, SymInt(0), k);
  lower =
      c.where(c.op("Equal", {c.unsqueeze(c.range(n), {1}), c.range(k)}), c.like(1, lower), lower);
  return {lower, c.slice(c.op("Trilu", {lu}, {{"upper", 1}}), r - 2, SymInt(0), k)};
}

/// A permutation as a matrix of `type`, complex or not.
void out_permutation(C& c, Value* p, DType type) {
  c.out(tombolo::is_complex(type) ? c.to_complex(p, type) : p, type);
}

void lu_unpack(C& c) {
  const bool pairs = c.is_complex("LU_data");
  const DType type = c.type("LU_data");
  Value* lu = c.x("LU_data");
  const Triangles t = unpacked(c, lu, pairs);
  const auto none = [&] { c.out(c.full({SymInt(0)}, 0, c.dtype(lu))); };
  if (c.flag("unpack_pivots"))
    out_permutation(
        c, permutation_matrix(c, c.x("LU_pivots"), c.size(lu, pairs ? -3 : -2), c.dtype(lu)), type);
  else
    none();
  if (!c.flag("unpack_data")) {
    none();
    return none();
  }
  c.out(t.lower, type);
  c.out(t.upper, type);
}

void lu_solve(C& c) {
  const bool old = c.name() == "lu_solve";
  const char* name = old ? "LU_data" : "LU";
  const bool pairs = c.is_complex(name);
  const DType type = c.type(name);
  Value* lu = c.x(name);
  const Triangles t = unpacked(c, lu, pairs);
  Value* p = permutation_matrix(c, c.x(old ? "LU_pivots" : "pivots"), c.size(lu, pairs ? -3 : -2),
                                c.dtype(lu));
  Value* a = nullptr;
  if (pairs) {
    const auto both = [&](Value* x) { return Arg(c.cell(x, type)); };
    a = c.lower("matmul", {both(t.lower), both(t.upper)});
    a = c.pair(c.op("MatMul", {p, c.re(a)}), c.op("MatMul", {p, c.im(a)}));
  } else {
    a = c.op("MatMul", {p, c.op("MatMul", {t.lower, t.upper})});
  }
  if (!old && c.flag("adjoint")) a = turned(c, pairs ? complex_conj(c, a) : a, pairs);
  Value* y = c.x(old ? "self" : "B");
  const bool left = old || c.flag("left");
  c.out(left ? solved(c, a, y, pairs)
             : turned(c, solved(c, turned(c, a, pairs), turned(c, y, pairs), pairs), pairs),
        type);
}

/// The vector's norm, or the matrix's where two axes are meant and an order is given.
void any_norm(C& c) {
  const bool text = c.arg("ord").kind == Arg::Kind::kString;
  Value* x = c.x("self");
  const size_t dims = c.given("dim") ? c.ints("dim").size() : 0;
  const int64_t r = c.rank(x) - (c.is_complex("self") ? 1 : 0);
  const bool matrix = text || (c.given("ord") && (dims == 2 || (dims == 0 && r == 2)));
  Arg dim = c.arg("dim");
  if (matrix) {
    if (dim.is_none()) dim = Arg::ints(Ints{-2, -1});
    return c.out(c.lower(text ? "linalg_matrix_norm.str_ord" : "linalg_matrix_norm",
                         {c.arg("self"), c.arg("ord"), dim, c.arg("keepdim")},
                         {{"dtype", c.arg("dtype")}}));
  }
  const Arg order = c.given("ord") ? c.arg("ord") : Arg(2);
  c.out(c.lower("linalg_vector_norm", {c.arg("self"), order, dim, c.arg("keepdim")},
                {{"dtype", c.arg("dtype")}}));
}

void vecdot(C& c) {
  const DType type = c.promote({"x", "y"});
  if (is_complex(type)) return c.refuse("complex numbers");
  Value* p = c.mul(c.operand("x", type), c.operand("y", type));
  c.out(c.reduce("ReduceSum", p, {c.axis(c.integer("dim"), c.rank(p))}, false));
}

void tensorsolve(C& c) {
  if (!real_only(c, "self")) return;
  Value *a = c.x("self"), *y = c.x("other");
  if (c.given("dims")) {
    // These axes of A come last.
    Ints perm, last;
    for (const int64_t axis : c.ints("dims")) last.push_back(c.axis(axis, c.rank(a)));
    for (int64_t axis = 0; axis < c.rank(a); ++axis)
      if (std::find(last.begin(), last.end(), axis) == last.end()) perm.push_back(axis);
    perm.insert(perm.end(), last.begin(), last.end());
    a = c.transpose(a, perm);
  }
  SymInts shape;
  for (int64_t i = c.rank(y); i < c.rank(a); ++i) shape.push_back(c.size(a, i));
  const SymInt n = c.numel(y);
  Value* x = solved(c, c.reshape(a, {n, n}), c.reshape(y, {n, SymInt(1)}));
  c.out(c.reshape(x, shape));
}

void tensorinv(C& c) {
  if (!real_only(c, "self")) return;
  Value* a = c.x("self");
  const int64_t ind = c.integer("ind");
  if (ind <= 0 || ind > c.rank(a)) return c.refuse("an inverse of other axes");
  SymInts shape;
  SymInt n(1);
  for (int64_t i = ind; i < c.rank(a); ++i) {
    shape.push_back(c.size(a, i));
    n = c.mul(n, c.size(a, i));
  }
  for (int64_t i = 0; i < ind; ++i) shape.push_back(c.size(a, i));
  c.out(c.reshape(inverse_of(c, c.reshape(a, {n, n})), shape));
}

void linalg_lu(C& c) {
  const bool pairs = c.is_complex("A");
  if (!c.flag("pivot")) return c.refuse("a factorisation without pivots");
  Value* a = c.x("A");
  const DType type = c.type("A");
  const Factors f = lu_of(c, a, pairs);
  const Triangles t = unpacked(c, f.lu, pairs);
  // P[order[i], i] = 1
  Value* rows = c.unsqueeze(c.range(c.size(a, pairs ? -3 : -2)), {1});
  out_permutation(c, c.cast(c.op("Equal", {rows, c.swap(f.order, -1, -2)}), c.dtype(a)), type);
  c.out(c.cast(t.lower, c.dtype(a)), type);
  c.out(c.cast(t.upper, c.dtype(a)), type);
}

/// The Moore-Penrose inverse of a matrix of any rank. With G = A^T A = L L^T, L of full rank but
/// for columns of zeros, it is L M M L^T A^T, where M = (L^T L)^-1 with ones for the columns of
/// zeros (P. Courrieu, "Fast computation of Moore-Penrose inverse matrices", 2005).
Value* pseudo_inverse(C& c, Value* a) {
  const DType type = c.dtype(a);
  Value* w = wide(c, a);
  const SymInt n = c.size(a, -2), m = c.size(a, -1);
  if (!n.is_number() || !m.is_number()) {
    c.refuse("a pseudo-inverse of unknown shape");
    return a;
  }
  const bool tall = n.dim.value() >= m.dim.value();
  if (!tall) w = c.swap(w, -1, -2);
  Value* t = c.swap(w, -1, -2);
  Value* g = c.op("MatMul", {t, w});
  const SymInt count = c.size(g, -1);
  if (count.is(0)) return c.swap(a, -1, -2);
  Value *rows = c.unsqueeze(c.range(count), {1}), *columns = c.range(count);
  // What is less than this of the largest square is what rounding leaves of a zero.
  Value* largest = c.reduce("ReduceMax", g, {c.rank(g) - 2, c.rank(g) - 1}, true);
  Value* least = c.mul(largest, c.like(type == DType::kFloat64 ? 1e-15 : 1e-12, g));
  Value* zero = c.like(0, g);
  const Values done = loop(c, count, {g, c.mul(g, zero)}, [&](Value* i, const Values& state) {
    Value* column = column_of(c, state[0], i);
    Value* pivot = row_of(c, column, i);
    Value* counts = c.op("Greater", {pivot, least});
    Value* root = c.op("Sqrt", {c.where(counts, pivot, c.like(1, pivot))});
    Value* kept = c.op("And", {c.op("GreaterOrEqual", {rows, i}), counts});
    Value* l = c.where(kept, c.div(column, root), c.like(0, column));
    Value* rest = c.sub(state[0], c.mul(l, c.swap(l, -1, -2)));
    return Values{rest, c.where(c.op("Equal", {columns, i}), l, state[1])};
  });
  Value *l = done[1], *lt = c.swap(l, -1, -2);
  Value* length = c.reduce("ReduceSum", c.mul(l, l), {c.rank(l) - 2}, true);
  Value* eye = c.op("Equal", {rows, columns});
  Value* filled = c.where(c.op("And", {eye, c.op("Equal", {length, zero})}), c.like(1, g), zero);
  Value* square = c.add(c.op("MatMul", {lt, l}), filled);
  Value* once = eliminate(c, square, c.op("MatMul", {lt, t})).solution;
  Value* result = c.op("MatMul", {l, eliminate(c, square, once).solution});
  return c.cast(tall ? result : c.swap(result, -1, -2), type);
}

void pinv(C& c) {
  if (!real_only(c, "self")) return;
  Value* a = c.x("self");
  if (c.has_arg("hermitian") && c.flag("hermitian")) {  // the lower triangle says it all
    Value* below = c.op("Trilu", {a, c.b.int_scalar(-1)}, {{"upper", 0}});
    a = c.add(c.op("Trilu", {a}, {{"upper", 0}}), c.swap(below, -1, -2));
  }
  c.out(pseudo_inverse(c, a));
}

void matrix_exp(C& c) {
  if (!real_only(c, "self")) return;
  Value* a = c.x("self");
  const DType type = c.dtype(a);
  constexpr int kSquarings = 12, kTerms = 10;
  Value* w = wide(c, a);
  w = c.mul(w, c.like(std::pow(2.0, -kSquarings), w));
  Value* sum = c.add(identity_like(c, w), w);
  Value* term = w;
  for (int k = 2; k <= kTerms; ++k) {
    term = c.mul(c.op("MatMul", {term, w}), c.like(1.0 / k, w));
    sum = c.add(sum, term);
  }
  for (int i = 0; i < kSquarings; ++i) sum = c.op("MatMul", {sum, sum});
  c.out(c.cast(sum, type));
}

constexpr Row kDecompositionsRows[] = {
    {"inverse(Tensor self) -> Tensor", inverse},
    {"linalg_inv(Tensor A) -> Tensor", inverse},
    {"linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
     inverse},
    {"linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", solve},
    {"linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor "
     "result, Tensor info)",
     solve},
    {"_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor "
     "result, Tensor LU, Tensor pivots, Tensor info)",
     solve},
    {"linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool "
     "unitriangular=False) -> Tensor",
     triangular},
    {"triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool "
     "unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
     triangular},
    {"det(Tensor self) -> Tensor", determinant, "det"},
    {"linalg_det(Tensor A) -> Tensor", determinant, "det"},
    {"_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)", determinant, "det"},
    {"logdet(Tensor self) -> Tensor", determinant, "logdet"},
    {"slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", determinant, "slogdet"},
    {"linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", determinant, "slogdet"},
    {"_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
     determinant, "slogdet"},
    {"cholesky(Tensor self, bool upper=False) -> Tensor", cholesky},
    {"linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", cholesky},
    {"linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, "
     "Tensor info)",
     cholesky},
    {"cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor", cholesky_solve},
    {"_cholesky_solve_helper(Tensor self, Tensor input2, bool upper) -> Tensor", cholesky_solve},
    {"cholesky_inverse(Tensor self, bool upper=False) -> Tensor", cholesky_solve},
    {"linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)", linalg_lu},
    {"linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)", lu_factor},
    {"linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, "
     "Tensor pivots, Tensor info)",
     lu_factor},
    {"_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor "
     "pivots, Tensor info)",
     lu_factor},
    {"lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) "
     "-> (Tensor P, Tensor L, Tensor U)",
     lu_unpack},
    {"lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", lu_solve},
    {"linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) "
     "-> Tensor",
     lu_solve},
    {"linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, "
     "ScalarType? dtype=None) -> Tensor",
     any_norm},
    {"linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, "
     "ScalarType? dtype=None) -> Tensor",
     any_norm},
    {"linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", vecdot},
    {"linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", tensorsolve},
    {"linalg_tensorinv(Tensor self, int ind=2) -> Tensor", tensorinv},
    {"pinverse(Tensor self, float rcond=1e-15) -> Tensor", pinv},
    {"linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor", pinv},
    {"linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool "
     "hermitian=False) -> Tensor",
     pinv},
    {"linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool "
     "hermitian=False) -> Tensor",
     pinv},
    {"matrix_exp(Tensor self) -> Tensor", matrix_exp},
    {"linalg_matrix_exp(Tensor self) -> Tensor", matrix_exp},
};

}  // namespace

std::span<const Row> decomposition_rows() { return kDecompositionsRows; }

}  // namespace tombolo::pytorch
