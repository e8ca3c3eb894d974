// QR, eigenvalues of symmetric matrices and singular values, as loops.

#include "formats/pytorch/aten/matrices.h"

#include <cmath>

#include "formats/pytorch/aten/complex.h"

namespace tombolo::pytorch {

using C = AtenContext;

SymInts lead_sizes(C& c, Value* x, int64_t tail) {
  SymInts sizes = c.sizes(x);
  sizes.resize(sizes.size() - static_cast<size_t>(tail));
  return sizes;
}

Value* column_of(C& c, Value* m, Value* i) {
  return c.op("Gather", {m, c.unsqueeze(i, {0})}, {{"axis", c.rank(m) - 1}});  // [.., n, 1]
}
Value* row_of(C& c, Value* m, Value* i) {
  return c.op("Gather", {m, c.unsqueeze(i, {0})}, {{"axis", c.rank(m) - 2}});  // [.., 1, n]
}

Value* identity(C& c, const SymInt& n, DType type) {
  return c.cast(c.op("Equal", {c.unsqueeze(c.range(n), {1}), c.range(n)}), type);
}

Value* identity_like(C& c, Value* a) {
  return c.expand(identity(c, c.size(a, -1), c.dtype(a)), c.sizes(a));
}

Value* wide(C& c, Value* x) { return c.cast(x, DType::kFloat64); }

bool real_only(C& c, std::string_view name) {
  if (!c.is_complex(name)) return true;
  c.refuse("complex numbers");
  return false;
}

Orthogonal factored(C& c, Value* a, bool whole) {
  Value* w = wide(c, a);
  const int64_t r = c.rank(w);
  const SymInt n = c.size(w, r - 2), m = c.size(w, r - 1), k = c.minimum(n, m);
  SymInts square = lead_sizes(c, w, 2);
  square.push_back(n);
  square.push_back(n);
  Value* rows = c.unsqueeze(c.range(n), {1});
  Value* zero = c.like(0, w);
  // Reflections that leave one element of a column after the other: H = I - 2 v v^T / v^T v.
  const Values done = loop(
      c, k, {w, c.expand(identity(c, n, DType::kFloat64), square)},
      [&](Value* i, const Values& state) {
        Value* column = column_of(c, state[0], i);
        Value* here = c.op("Equal", {rows, i});
        Value* below = c.where(c.op("Greater", {rows, i}), column, zero);
        Value* first = row_of(c, column, i);
        Value* rest = c.reduce("ReduceSumSquare", below, {r - 2}, true);
        Value* length = c.op("Sqrt", {c.add(c.mul(first, first), rest)});
        Value* negative = c.op("Less", {sign_bit_proxy(c, first), zero});
        Value* to = c.where(negative, length, c.op("Neg", {length}));
        Value* v = c.where(here, c.sub(first, to), below);
        Value* square_of_v = c.reduce("ReduceSumSquare", v, {r - 2}, true);
        Value* none = c.op("Equal", {rest, zero});  // nothing below it: it stays as it is
        Value* factor =
            c.where(none, zero, c.div(c.like(2, w), c.where(none, c.like(1, w), square_of_v)));
        Value* turned = c.swap(v, -1, -2);
        Value* next =
            c.sub(state[0], c.mul(factor, c.op("MatMul", {v, c.op("MatMul", {turned, state[0]})})));
        Value* q =
            c.sub(state[1], c.mul(factor, c.op("MatMul", {c.op("MatMul", {state[1], v}), turned})));
        return Values{next, q};
      });
  Value* upper = c.op("Trilu", {done[0]}, {{"upper", 1}});
  if (whole) return {done[1], upper};
  return {c.slice(done[1], r - 1, SymInt(0), k), c.slice(upper, r - 2, SymInt(0), k)};
}

Value* stacked(C& c, Value* pairs) { return c.concat({c.re(pairs), c.im(pairs)}, -2); }

Value* unstacked(C& c, Value* x) {
  const int64_t r = c.rank(x);
  const SymInt half = c.floor_div(c.size(x, r - 2), SymInt(2));
  return c.pair(c.slice(x, r - 2, SymInt(0), half), c.slice(x, r - 2, half, SymInt(INT64_MAX)));
}

Value* embedded(C& c, Value* pairs) {
  Value *a = c.re(pairs), *b = c.im(pairs);
  return c.concat({c.concat({a, c.op("Neg", {b})}, -1), c.concat({b, a}, -1)}, -2);
}

Value* adjoint(C& c, Value* pairs) {
  return c.pair(c.swap(c.re(pairs), -1, -2), c.op("Neg", {c.swap(c.im(pairs), -1, -2)}));
}

Orthogonal factored_pairs(C& c, Value* a, bool whole) {
  Value* w = wide(c, a);
  const int64_t r = c.rank(w) - 1;
  const SymInt n = c.size(w, r - 2), m = c.size(w, r - 1), k = c.minimum(n, m);
  SymInts square = lead_sizes(c, w, 3);
  square.push_back(n);
  square.push_back(n);
  Value* eye = c.expand(identity(c, n, DType::kFloat64), square);
  Value* rows = c.unsqueeze(c.range(n), {1});
  Value *zero = c.like(0, w), *one = c.like(1, w);
  const auto product = [&](Value* x, Value* y) {
    const auto part = [&](Value* p, Value* q) { return c.op("MatMul", {p, q}); };
    return c.pair(c.sub(part(c.re(x), c.re(y)), part(c.im(x), c.im(y))),
                  c.add(part(c.re(x), c.im(y)), part(c.im(x), c.re(y))));
  };
  // Reflections I - t v v^H that leave one real element of a column after the other, v being 1
  // there: the matrix is multiplied by their adjoints.
  const Values done =
      loop(c, k, {w, c.pair(eye, c.mul(eye, zero))}, [&](Value* i, const Values& state) {
        Value* here = c.op("Equal", {rows, i});
        Value* behind = c.op("Greater", {rows, i});
        Value *x = column_of(c, c.re(state[0]), i), *y = column_of(c, c.im(state[0]), i);
        Value *first = row_of(c, x, i), *turn = row_of(c, y, i);
        Value *x_below = c.where(behind, x, zero), *y_below = c.where(behind, y, zero);
        Value* rest = c.add(c.reduce("ReduceSumSquare", x_below, {r - 2}, true),
                            c.reduce("ReduceSumSquare", y_below, {r - 2}, true));
        Value* squares = c.add(c.mul(first, first), c.mul(turn, turn));
        Value* length = c.op("Sqrt", {c.add(squares, rest)});
        Value* negative = c.op("Less", {sign_bit_proxy(c, first), zero});
        Value* to = c.where(negative, length, c.op("Neg", {length}));
        // Nothing below it, and real: it stays as it is.
        Value* none = c.op("Equal", {c.add(rest, c.mul(turn, turn)), zero});
        Value* safe = c.where(none, one, to);
        Value* factor = c.pair(c.where(none, zero, c.div(c.sub(safe, first), safe)),
                               c.where(none, zero, c.div(c.op("Neg", {turn}), safe)));
        Value* pivot = c.pair(c.where(none, one, c.sub(first, safe)), turn);
        Value* v = complex_div(c, c.pair(x_below, y_below), pivot);
        v = c.pair(c.where(here, one, c.re(v)), c.im(v));
        Value* against = adjoint(c, v);
        Value* share = complex_mul(c, complex_conj(c, factor), product(against, state[0]));
        Value* turned = complex_mul(c, product(state[1], v), factor);
        return Values{c.sub(state[0], product(v, share)),
                      c.sub(state[1], product(turned, against))};
      });
  const auto upper = [&](Value* x) { return c.op("Trilu", {x}, {{"upper", 1}}); };
  Value* right = c.pair(upper(c.re(done[0])), upper(c.im(done[0])));
  if (whole) return {done[1], right};
  return {c.slice(done[1], r - 1, SymInt(0), k), c.slice(right, r - 2, SymInt(0), k)};
}

namespace {

/// Stacked complex numbers times -i.
Value* turned_back(C& c, Value* x) {
  const int64_t r = c.rank(x);
  const SymInt half = c.floor_div(c.size(x, r - 2), SymInt(2));
  Value *re = c.slice(x, r - 2, SymInt(0), half), *im = c.slice(x, r - 2, half, SymInt(INT64_MAX));
  return c.concat({im, c.op("Neg", {re})}, r - 2);
}

/// Columns turned until they are orthogonal: w -> w V (Hestenes' one-sided Jacobi method). All
/// pairs of a round, of which each column is in one, are turned at once; then they change places
/// as in a tournament, so that in a sweep each meets each other. Of complex columns real and
/// imaginary parts stand below each other (stacked()).
struct Turned {
  Value *columns, *turns;  ///< [.., n, m] and V [.., m, m]
};
Turned jacobi(C& c, Value* w, bool pairs = false) {
  constexpr int64_t kSweeps = 14, kMostColumns = 256;
  const int64_t r = c.rank(w);
  const auto count = c.known(w, r - 1);
  if (!count || *count > kMostColumns) {
    c.refuse("singular or eigenvalues of a matrix of unknown or large size");
    return {w, w};
  }
  SymInts square = lead_sizes(c, w, 2);
  square.emplace_back(*count);
  square.emplace_back(*count);
  Value* v = c.expand(identity(c, SymInt(*count), DType::kFloat64), square);
  if (pairs) v = c.concat({v, c.mul(v, c.like(0, v))}, -2);
  if (*count < 2) return {w, v};
  const int64_t m = *count + *count % 2, half = m / 2;
  if (m != *count) {  // a column of zeros is turned with none
    Ints pads(2 * static_cast<size_t>(r), 0);
    pads.back() = 1;
    w = c.op("Pad", {w, c.b.ints(pads)});
    v = c.op("Pad", {v, c.b.ints(pads)});
  }
  Ints places(static_cast<size_t>(m));
  for (int64_t i = 0; i < half; ++i) {
    places[static_cast<size_t>(i)] = i == 0 ? 0 : i == 1 ? half : i - 1;
    places[static_cast<size_t>(half + i)] = i + 1 < half ? half + i + 1
                                            : half > 1   ? half - 1
                                                         : half;
  }
  Value* order = c.b.ints(places);
  Value *zero = c.like(0, w), *one = c.like(1, w);
  const Values done = loop(c, SymInt(kSweeps * (m - 1)), {w, v}, [&](Value*, const Values& state) {
    const auto part = [&](Value* x, bool second) {
      return c.slice(x, r - 1, SymInt(second ? half : 0), SymInt(second ? m : half));
    };
    Value *left = part(state[0], false), *right = part(state[0], true);
    Value* a = c.reduce("ReduceSumSquare", left, {r - 2}, true);
    Value* b = c.reduce("ReduceSumSquare", right, {r - 2}, true);
    Value* g = c.reduce("ReduceSum", c.mul(left, right), {r - 2}, true);
    Value *phase_re = nullptr, *phase_im = nullptr;
    if (pairs) {  // the right one is turned until the product of both is real
      Value* across = c.reduce("ReduceSum", c.mul(left, turned_back(c, right)), {r - 2}, true);
      Value* length = c.op("Sqrt", {c.add(c.mul(g, g), c.mul(across, across))});
      Value* none = c.op("Equal", {length, zero});
      Value* divisor = c.where(none, one, length);
      phase_re = c.where(none, one, c.div(g, divisor));
      phase_im = c.div(across, divisor);
      g = length;
    }
    // Next to nothing between them is no reason to turn.
    Value* room = c.mul(c.op("Sqrt", {c.mul(a, b)}), c.like(1e-16, w));
    Value* turn = c.op("Greater", {c.op("Abs", {g}), room});
    Value* twice = c.where(turn, c.add(g, g), one);
    Value* zeta = c.div(c.sub(b, a), twice);
    Value* size = c.op("Abs", {zeta});
    Value* t = c.div(one, c.add(size, c.op("Sqrt", {c.add(one, c.mul(zeta, zeta))})));
    t = c.where(c.op("Less", {zeta, zero}), c.op("Neg", {t}), t);
    t = c.where(turn, t, zero);
    Value* cosine = c.div(one, c.op("Sqrt", {c.add(one, c.mul(t, t))}));
    Value* sine = c.mul(cosine, t);
    const auto turned = [&](Value* x) {
      Value *l = part(x, false), *h = part(x, true);
      if (pairs) h = c.add(c.mul(phase_re, h), c.mul(phase_im, turned_back(c, h)));
      Value* both = c.concat(
          {c.sub(c.mul(cosine, l), c.mul(sine, h)), c.add(c.mul(sine, l), c.mul(cosine, h))},
          r - 1);
      return c.op("Gather", {both, order}, {{"axis", r - 1}});
    };
    return Values{turned(state[0]), turned(state[1])};
  });
  return {c.slice(done[0], r - 1, SymInt(0), SymInt(*count)),
          c.slice(done[1], r - 1, SymInt(0), SymInt(*count))};
}

/// Columns of x [.., n, m] in the order of indices [.., m].
Value* in_order(C& c, Value* x, Value* indices) {
  SymInts sizes = c.sizes(x);
  return c.op("GatherElements", {x, c.expand(c.unsqueeze(indices, {-2}), sizes)}, {{"axis", -1}});
}

/// Sorted along the last axis, and where each stood.
std::pair<Value*, Value*> sorted(C& c, Value* values, bool largest) {
  const SymInt count = c.size(values, -1);
  const Values results = c.b.op_many("TopK", {values, c.int_vector(count)}, 2,
                                     {{"axis", -1}, {"largest", largest}, {"sorted", 1}});
  c.b.set_type(results[0], c.dtype(values), SymShape(c.b.shape(values)));
  c.b.set_type(results[1], DType::kInt64, SymShape(c.b.shape(values)));
  return {results[0], results[1]};
}

}  // namespace

namespace {

/// Made positive by a multiple of the identity, its eigenvectors are its singular vectors. `whole`
/// is the matrix, for pairs the embedded one.
Eigen eigen_by_turning(C& c, Value* whole, bool pairs) {
  const int64_t r = c.rank(whole);
  Value* sums = c.reduce("ReduceL1", whole, {r - 1}, true);
  Value* bound = c.reduce("ReduceMax", sums, {r - 2}, true);
  Value* shifted = c.add(whole, c.mul(bound, identity(c, c.size(whole, -1), DType::kFloat64)));
  if (pairs)  // its left half is the matrix, stacked
    shifted = c.slice(shifted, r - 1, SymInt(0), c.floor_div(c.size(whole, -1), SymInt(2)));
  Value* v = jacobi(c, shifted, pairs).turns;
  Value* values = c.reduce("ReduceSum", c.mul(v, c.op("MatMul", {whole, v})), {r - 2}, false);
  const auto [ascending, order] = sorted(c, values, false);
  return {ascending, in_order(c, v, order)};
}

}  // namespace

Eigen eigen_of(C& c, Value* a) { return eigen_by_turning(c, wide(c, a), false); }

Eigen eigen_of_pairs(C& c, Value* a) {
  const Eigen found = eigen_by_turning(c, embedded(c, wide(c, a)), true);
  return {found.values, unstacked(c, found.vectors)};
}

namespace {

/// Columns in this order, divided by their lengths.
Value* unit_columns(C& c, Value* columns, Value* lengths, Value* order) {
  Value* length = c.unsqueeze(lengths, {-2});
  Value* none = c.op("Equal", {length, c.like(0, length)});
  return c.div(in_order(c, columns, order), c.where(none, c.like(1, length), length));
}

/// 1 or -1 of each column, [.., 1, m], of a real square matrix.
Value* signs_of_diagonal(C& c, Value* upper) {
  Value* diagonal = c.mul(upper, identity(c, c.size(upper, -1), DType::kFloat64));
  Value* signs = c.reduce("ReduceSum", diagonal, {c.rank(upper) - 2}, true);
  return c.where(c.op("Less", {signs, c.like(0, signs)}), c.like(-1, signs), c.like(1, signs));
}

}  // namespace

Singular singular_of_pairs(C& c, Value* a) {
  Value* w = wide(c, a);
  const int64_t r = c.rank(w) - 1;
  const auto n = c.known(w, r - 2), m = c.known(w, r - 1);
  if (!n || !m) {
    c.refuse("singular vectors of a complex matrix of unknown size");
    return {w, w, w};
  }
  if (*n < *m) {
    const Singular other = singular_of_pairs(c, adjoint(c, w));
    return {other.v, other.values, other.u};
  }
  const Turned turned = jacobi(c, stacked(c, w), true);
  Value* lengths = c.reduce("ReduceL2", turned.columns, {r - 2}, false);
  const auto [values, order] = sorted(c, lengths, true);
  const Orthogonal q =
      factored_pairs(c, unstacked(c, unit_columns(c, turned.columns, values, order)), false);
  Value* signs = c.unsqueeze(signs_of_diagonal(c, c.re(q.r)), {-1});
  return {c.mul(q.q, signs), values, unstacked(c, in_order(c, turned.turns, order))};
}

Singular singular_of(C& c, Value* a, bool vectors) {
  Value* w = wide(c, a);
  const int64_t r = c.rank(w);
  const auto n = c.known(w, r - 2), m = c.known(w, r - 1);
  if (m && (!n || *n >= *m)) {
    const Turned turned = jacobi(c, w);
    Value* lengths = c.reduce("ReduceL2", turned.columns, {r - 2}, false);
    const auto [values, order] = sorted(c, lengths, true);
    if (!vectors) return {nullptr, values, nullptr};
    // The columns divided by their lengths; made orthogonal once more, as those of the least
    // lengths are what rounding left.
    const Orthogonal q = factored(c, unit_columns(c, turned.columns, values, order), false);
    return {c.mul(q.q, signs_of_diagonal(c, q.r)), values, in_order(c, turned.turns, order)};
  }
  if (!n) {
    c.refuse("singular values of a matrix of unknown size");
    return {w, w, w};
  }
  const Singular other = singular_of(c, c.swap(w, -1, -2), vectors);
  return {other.v, other.values, other.u};
}

}  // namespace tombolo::pytorch
