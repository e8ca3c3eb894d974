#include "ir/symbolic_dim.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

// Canonical form: an integer polynomial over atoms. An atom is a symbol (a dimension, hence never
// negative), or a floor division, minimum or maximum that does not simplify. a % b is written
// a - b * (a // b), so that sums of remainders and quotients cancel. Division is by something that
// is not zero: where it is zero the model has no meaning, so (N*M)//M is N.

namespace tombolo {

namespace {

// Beyond these an expression is unknown: a hostile model must not blow up.
constexpr int kMaxSize = 160;  ///< atoms and terms, counted as a tree
constexpr int kMaxDepth = 16;  ///< nesting of divisions, minima, maxima
constexpr size_t kMaxDegree = 12;
constexpr size_t kMaxParseDepth = 64;
constexpr size_t kMaxText = 2048;

constexpr int64_t kMinusInfinity = std::numeric_limits<int64_t>::min();
constexpr int64_t kInfinity = std::numeric_limits<int64_t>::max();

int64_t floor_of(int64_t a, int64_t b) {  // b > 0
  const int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

struct Atom;
using AtomPtr = std::shared_ptr<const Atom>;

struct Term {
  std::vector<AtomPtr> atoms;  // sorted; a power is a repetition
  int64_t factor = 0;
};

/// Sum of terms, sorted by compare_atoms of their products, and a constant. `bad`: overflow,
/// division by zero or too large; stands for unknown.
struct Poly {
  std::vector<Term> terms;
  int64_t constant = 0;
  bool bad = false;

  Poly() = default;
  Poly(int64_t value) : constant(value) {}
  bool is_constant() const { return terms.empty(); }
};

struct Atom {
  enum class Kind : uint8_t { kSymbol, kFloorDiv, kMin, kMax };
  Kind kind = Kind::kSymbol;
  int size = 1, depth = 1;
  std::string name;
  std::vector<Poly> args;  // FloorDiv: dividend, divisor; Min, Max: two or more, sorted
};

int compare(const Poly& a, const Poly& b);

int compare(const Atom& a, const Atom& b) {
  if (&a == &b) return 0;
  if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1;
  if (a.kind == Atom::Kind::kSymbol) return a.name.compare(b.name);
  if (a.args.size() != b.args.size()) return a.args.size() < b.args.size() ? -1 : 1;
  for (size_t i = 0; i < a.args.size(); ++i)
    if (const int order = compare(a.args[i], b.args[i]); order != 0) return order;
  return 0;
}

/// Graded order: products of more atoms come first. Compatible with multiplication, as division of
/// polynomials needs.
int compare_products(const std::vector<AtomPtr>& a, const std::vector<AtomPtr>& b) {
  if (a.size() != b.size()) return a.size() > b.size() ? -1 : 1;
  for (size_t i = 0; i < a.size(); ++i)
    if (const int order = compare(*a[i], *b[i]); order != 0) return order;
  return 0;
}

int compare(const Poly& a, const Poly& b) {
  if (a.terms.size() != b.terms.size()) return a.terms.size() < b.terms.size() ? -1 : 1;
  for (size_t i = 0; i < a.terms.size(); ++i) {
    if (const int order = compare_products(a.terms[i].atoms, b.terms[i].atoms); order != 0)
      return order;
    if (a.terms[i].factor != b.terms[i].factor)
      return a.terms[i].factor < b.terms[i].factor ? -1 : 1;
  }
  return a.constant == b.constant ? 0 : a.constant < b.constant ? -1 : 1;
}

size_t mix(size_t seed, size_t value) {
  return (seed ^ value) * 0x9e3779b97f4a7c15u + (seed >> 29);
}
size_t hash_of(const Poly& p) {
  size_t hash = mix(2, static_cast<size_t>(p.constant));
  for (const Term& term : p.terms) {
    hash = mix(hash, static_cast<size_t>(term.factor));
    for (const AtomPtr& atom : term.atoms) {
      hash = mix(hash, static_cast<size_t>(atom->kind));
      for (const char c : atom->name) hash = mix(hash, static_cast<unsigned char>(c));
      for (const Poly& arg : atom->args) hash = mix(hash, hash_of(arg));
    }
  }
  return hash;
}

int size_of(const Poly& p) {
  int size = 1;
  for (const Term& term : p.terms)
    for (const AtomPtr& atom : term.atoms) size += 1 + atom->size;
  return size;
}
int depth_of(const Poly& p) {
  int depth = 0;
  for (const Term& term : p.terms)
    for (const AtomPtr& atom : term.atoms) depth = std::max(depth, atom->depth);
  return depth;
}

Poly bad() {
  Poly p;
  p.bad = true;
  return p;
}

/// Marks an expression that is too large.
Poly capped(Poly p) {
  if (!p.bad && size_of(p) > kMaxSize) return bad();
  return p;
}

Poly of_atom(AtomPtr atom) {
  Poly p;
  p.terms.push_back({{std::move(atom)}, 1});
  return p;
}

Poly make_atom(Atom::Kind kind, std::vector<Poly> args) {
  Atom atom;
  atom.kind = kind;
  for (const Poly& arg : args) {
    if (arg.bad) return bad();
    atom.size += size_of(arg);
    atom.depth = std::max(atom.depth, depth_of(arg) + 1);
  }
  if (atom.size > kMaxSize || atom.depth > kMaxDepth) return bad();
  atom.args = std::move(args);
  return of_atom(std::make_shared<const Atom>(std::move(atom)));
}

/// a + factor * b.
Poly add_scaled(const Poly& a, const Poly& b, int64_t factor) {
  if (a.bad || b.bad) return bad();
  Poly out;
  int64_t product;
  if (__builtin_mul_overflow(b.constant, factor, &product) ||
      __builtin_add_overflow(a.constant, product, &out.constant))
    return bad();
  out.terms.reserve(a.terms.size() + b.terms.size());
  size_t i = 0, j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    int order = 0;
    if (i == a.terms.size())
      order = 1;
    else if (j == b.terms.size())
      order = -1;
    else
      order = compare_products(a.terms[i].atoms, b.terms[j].atoms);
    if (order < 0) {
      out.terms.push_back(a.terms[i++]);
      continue;
    }
    if (__builtin_mul_overflow(b.terms[j].factor, factor, &product)) return bad();
    if (order == 0 && __builtin_add_overflow(product, a.terms[i].factor, &product)) return bad();
    if (product != 0) out.terms.push_back({b.terms[j].atoms, product});
    if (order == 0) ++i;
    ++j;
  }
  return capped(std::move(out));
}
Poly plus(const Poly& a, const Poly& b) { return add_scaled(a, b, 1); }
Poly minus(const Poly& a, const Poly& b) { return add_scaled(a, b, -1); }

/// a * (factor * atoms). The order of terms is compatible with multiplication, so it is kept.
Poly times_term(const Poly& a, const std::vector<AtomPtr>& atoms, int64_t factor) {
  if (a.bad) return bad();
  Poly out;
  for (const Term& term : a.terms) {
    Term product;
    if (__builtin_mul_overflow(term.factor, factor, &product.factor)) return bad();
    if (term.atoms.size() + atoms.size() > kMaxDegree) return bad();
    product.atoms.resize(term.atoms.size() + atoms.size());
    std::merge(term.atoms.begin(), term.atoms.end(), atoms.begin(), atoms.end(),
               product.atoms.begin(),
               [](const AtomPtr& x, const AtomPtr& y) { return compare(*x, *y) < 0; });
    if (product.factor != 0) out.terms.push_back(std::move(product));
  }
  int64_t constant;
  if (__builtin_mul_overflow(a.constant, factor, &constant)) return bad();
  if (atoms.empty())
    out.constant = constant;
  else if (constant != 0)
    out.terms.push_back({atoms, constant});
  return capped(std::move(out));
}

Poly times(const Poly& a, const Poly& b) {
  if (a.bad || b.bad) return bad();
  Poly out = times_term(a, {}, b.constant);
  for (const Term& term : b.terms) {
    out = plus(out, times_term(a, term.atoms, term.factor));
    if (out.bad) break;
  }
  return out;
}

// ---- bounds ----

struct Interval {
  int64_t low = kMinusInfinity, high = kInfinity;
};

int64_t saturated_product(int64_t a, int64_t b) {
  int64_t out;
  if (!__builtin_mul_overflow(a, b, &out)) return out;
  return (a < 0) == (b < 0) ? kInfinity : kMinusInfinity;
}
int64_t saturated_sum(int64_t a, int64_t b) {
  int64_t out;
  if (!__builtin_add_overflow(a, b, &out)) return out;
  return a > 0 ? kInfinity : kMinusInfinity;
}
int64_t add_low(int64_t a, int64_t b) {
  return a == kMinusInfinity || b == kMinusInfinity ? kMinusInfinity : saturated_sum(a, b);
}
int64_t add_high(int64_t a, int64_t b) {
  return a == kInfinity || b == kInfinity ? kInfinity : saturated_sum(a, b);
}
Interval scaled(Interval x, int64_t factor) {
  const auto times_factor = [factor](int64_t value) {
    if (value == kInfinity) return factor > 0 ? kInfinity : kMinusInfinity;
    if (value == kMinusInfinity) return factor > 0 ? kMinusInfinity : kInfinity;
    return saturated_product(value, factor);
  };
  Interval out{times_factor(x.low), times_factor(x.high)};
  if (factor < 0) std::swap(out.low, out.high);
  return out;
}

Interval bounds(const Poly& p, int effort);

Interval bounds(const Atom& atom, int effort) {
  switch (atom.kind) {
    case Atom::Kind::kSymbol:
      return {0, kInfinity};
    case Atom::Kind::kFloorDiv: {
      const Interval x = bounds(atom.args[0], effort);
      if (atom.args[1].is_constant()) {
        const int64_t d = atom.args[1].constant;  // positive by construction
        return {x.low == kMinusInfinity ? x.low : floor_of(x.low, d),
                x.high == kInfinity ? x.high : floor_of(x.high, d)};
      }
      const Interval d = bounds(atom.args[1], effort);
      if (d.low >= 0) {  // hence at least 1
        if (x.low >= 0) return {0, x.high};
        if (x.high <= 0) return {x.low, 0};
      }
      return {};
    }
    case Atom::Kind::kMin:
    case Atom::Kind::kMax: {
      Interval out = bounds(atom.args[0], effort);
      for (size_t i = 1; i < atom.args.size(); ++i) {
        const Interval x = bounds(atom.args[i], effort);
        if (atom.kind == Atom::Kind::kMin)
          out = {std::min(out.low, x.low), std::min(out.high, x.high)};
        else
          out = {std::max(out.low, x.low), std::max(out.high, x.high)};
      }
      return out;
    }
  }
  return {};
}

Interval bounds(const Poly& p, int effort) {
  Interval out{p.constant, p.constant};
  for (const Term& term : p.terms) {
    Interval product{1, 1};
    for (const AtomPtr& atom : term.atoms) {
      const Interval x = bounds(*atom, effort);
      if (x.low >= 0 && product.low >= 0) {
        product.low = saturated_product(product.low, x.low);
        product.high = product.high == kInfinity || x.high == kInfinity
                           ? (x.high == 0 || product.high == 0 ? 0 : kInfinity)
                           : saturated_product(product.high, x.high);
      } else if (term.atoms.size() == 1) {
        product = x;
      } else {
        product = {};
      }
    }
    product = scaled(product, term.factor);
    out = {add_low(out.low, product.low), add_high(out.high, product.high)};
  }
  if (effort <= 0 || (out.low != kMinusInfinity && out.high != kInfinity)) return out;
  // An atom is tied to its arguments: x - (d-1) <= d*(x//d) <= x, and min(x, y) <= x. Putting the
  // arguments in its place can cancel against the other terms.
  for (const Term& term : p.terms) {
    if (term.atoms.size() != 1) continue;
    const Atom& atom = *term.atoms[0];
    if (atom.kind == Atom::Kind::kSymbol) continue;
    Poly rest = add_scaled(p, of_atom(term.atoms[0]), -term.factor);
    if (atom.kind == Atom::Kind::kFloorDiv) {
      if (!atom.args[1].is_constant()) continue;
      const int64_t d = atom.args[1].constant;
      if (term.factor % d != 0) continue;
      const int64_t factor = term.factor / d;
      const Poly replaced = add_scaled(rest, atom.args[0], factor);
      if (replaced.bad) continue;
      const Interval x = bounds(replaced, effort - 1);
      const Interval slack = scaled({-(d - 1), 0}, factor);
      out.low = std::max(out.low, add_low(x.low, slack.low));
      out.high = std::min(out.high, add_high(x.high, slack.high));
      continue;
    }
    // The atom is one of its arguments: it lies between the extremes over them; and it is bounded
    // on one side by each of them.
    int64_t low = kInfinity, high = kMinusInfinity;
    bool complete = true;
    for (const Poly& arg : atom.args) {
      const Poly replaced = add_scaled(rest, arg, term.factor);
      if (replaced.bad) {
        complete = false;
        continue;
      }
      const Interval x = bounds(replaced, effort - 1);
      low = std::min(low, x.low);
      high = std::max(high, x.high);
      const bool bounded_above = (atom.kind == Atom::Kind::kMin) == (term.factor > 0);
      if (bounded_above)
        out.high = std::min(out.high, x.high);
      else
        out.low = std::max(out.low, x.low);
    }
    if (complete) {
      out.low = std::max(out.low, low);
      out.high = std::min(out.high, high);
    }
  }
  return out;
}
Interval bounds(const Poly& p) { return bounds(p, 2); }

// ---- division ----

/// `product` without the atoms of `part`; false when they are not all in it.
bool divide_product(const std::vector<AtomPtr>& product, const std::vector<AtomPtr>& part,
                    std::vector<AtomPtr>& rest) {
  rest.clear();
  size_t j = 0;
  for (const AtomPtr& atom : product) {
    if (j < part.size() && compare(*atom, *part[j]) == 0)
      ++j;
    else
      rest.push_back(atom);
  }
  return j == part.size();
}

/// The quotient when `b` divides `a` without remainder as polynomials.
bool divide_exactly(const Poly& a, const Poly& b, Poly& quotient) {
  static const std::vector<AtomPtr> kNone;
  const std::vector<AtomPtr>& lead = b.terms[0].atoms;
  const int64_t factor = b.terms[0].factor;
  Poly rest = a;
  quotient = Poly();
  for (int step = 0; step < kMaxSize; ++step) {
    if (rest.is_constant() && rest.constant == 0) return true;
    if (rest.is_constant()) return false;
    std::vector<AtomPtr> atoms;
    if (rest.terms[0].factor % factor != 0 || !divide_product(rest.terms[0].atoms, lead, atoms))
      return false;
    const Poly part = times_term(Poly(1), atoms, rest.terms[0].factor / factor);
    quotient = plus(quotient, part);
    const size_t before = rest.terms.size();
    rest = minus(rest, times(part, b));
    if (rest.bad || quotient.bad || rest.terms.size() > before + b.terms.size()) return false;
  }
  return false;
}

Poly floor_divide(Poly a, Poly b, int depth = 0);

Poly floor_divide_by_number(const Poly& a, int64_t d, int depth) {
  // a = d*quotient + rest with every factor of `rest` below d.
  Poly quotient, rest;
  quotient.constant = floor_of(a.constant, d);
  rest.constant = a.constant - quotient.constant * d;
  for (const Term& term : a.terms) {
    if (term.factor / d != 0) quotient.terms.push_back({term.atoms, term.factor / d});
    if (term.factor % d != 0) rest.terms.push_back({term.atoms, term.factor % d});
  }
  if (rest.is_constant()) return quotient;
  if (rest.terms[0].factor < 0) {  // floor(x/d) = -floor((d-1-x)/d): one form for both signs
    const Poly flipped = minus(Poly(d - 1), rest);
    return minus(quotient, floor_divide(flipped, Poly(d), depth + 1));
  }
  int64_t common = d;
  for (const Term& term : rest.terms) common = std::gcd(common, term.factor);
  if (common > 1) {
    for (Term& term : rest.terms) term.factor /= common;
    rest.constant = floor_of(rest.constant, common);
    return plus(quotient, floor_divide(rest, Poly(d / common), depth + 1));
  }
  // (x//e + y)//d = (x + e*y)//(d*e)
  for (const Term& term : rest.terms) {
    if (term.factor != 1 || term.atoms.size() != 1) continue;
    const Atom& atom = *term.atoms[0];
    if (atom.kind != Atom::Kind::kFloorDiv || !atom.args[1].is_constant()) continue;
    const int64_t e = atom.args[1].constant;
    int64_t product;
    if (__builtin_mul_overflow(e, d, &product)) break;
    const Poly others = minus(rest, of_atom(term.atoms[0]));
    const Poly merged = add_scaled(atom.args[0], others, e);
    if (merged.bad) break;
    return plus(quotient, floor_divide(merged, Poly(product), depth + 1));
  }
  const Interval range = bounds(rest);
  if (range.low != kMinusInfinity && range.high != kInfinity &&
      floor_of(range.low, d) == floor_of(range.high, d))
    return plus(quotient, Poly(floor_of(range.low, d)));
  return plus(quotient, make_atom(Atom::Kind::kFloorDiv, {std::move(rest), Poly(d)}));
}

Poly floor_divide(Poly a, Poly b, int depth) {
  if (a.bad || b.bad || depth > 64) return bad();
  if (b.is_constant()) {
    int64_t d = b.constant;
    if (d == 0 || d == kMinusInfinity) return bad();
    if (d < 0) {
      a = minus(Poly(), a);
      d = -d;
      if (a.bad) return bad();
    }
    if (d == 1) return a;
    if (a.is_constant()) return Poly(floor_of(a.constant, d));
    return floor_divide_by_number(a, d, depth);
  }
  if (a.is_constant() && a.constant == 0) return a;
  if (b.terms[0].factor < 0) {
    a = minus(Poly(), a);
    b = minus(Poly(), b);
    if (a.bad || b.bad) return bad();
  }
  Poly quotient;
  if (divide_exactly(a, b, quotient)) return quotient;
  quotient = Poly();
  if (b.terms.size() == 1 && b.constant == 0) {
    // Whole multiples leave; then common factors cancel.
    const Term& divisor = b.terms[0];
    Poly rest(a.constant);
    std::vector<AtomPtr> atoms;
    for (const Term& term : a.terms) {
      if (term.factor % divisor.factor == 0 && divide_product(term.atoms, divisor.atoms, atoms))
        quotient = plus(quotient, times_term(Poly(1), atoms, term.factor / divisor.factor));
      else
        rest.terms.push_back(term);
    }
    int64_t common = std::gcd(divisor.factor, rest.constant);
    for (const Term& term : rest.terms) common = std::gcd(common, term.factor);
    std::vector<AtomPtr> shared = rest.constant == 0 ? divisor.atoms : std::vector<AtomPtr>();
    for (const Term& term : rest.terms) {
      std::vector<AtomPtr> both;
      std::set_intersection(shared.begin(), shared.end(), term.atoms.begin(), term.atoms.end(),
                            std::back_inserter(both),
                            [](const AtomPtr& x, const AtomPtr& y) { return compare(*x, *y) < 0; });
      shared = std::move(both);
    }
    if (common > 1 || !shared.empty()) {
      Poly reduced(rest.constant / common);
      for (const Term& term : rest.terms) {
        divide_product(term.atoms, shared, atoms);
        reduced = plus(reduced, times_term(Poly(1), atoms, term.factor / common));
      }
      divide_product(divisor.atoms, shared, atoms);
      const Poly divisor_left = times_term(Poly(1), atoms, divisor.factor / common);
      return plus(quotient, floor_divide(reduced, divisor_left, depth + 1));
    }
    a = std::move(rest);
  }
  // 0 <= a < b
  if (bounds(a).low >= 0 && bounds(minus(b, a)).low > 0) return quotient;
  return plus(quotient, make_atom(Atom::Kind::kFloorDiv, {std::move(a), std::move(b)}));
}

// ---- minimum, maximum ----

Poly extreme(Atom::Kind kind, const Poly& a, const Poly& b) {
  if (a.bad || b.bad) return bad();
  std::vector<Poly> args;
  // max(max(x, y), z) is one maximum of three.
  const auto flatten = [&args, kind](const Poly& p) {
    if (p.constant == 0 && p.terms.size() == 1 && p.terms[0].factor == 1 &&
        p.terms[0].atoms.size() == 1 && p.terms[0].atoms[0]->kind == kind)
      for (const Poly& arg : p.terms[0].atoms[0]->args) args.push_back(arg);
    else
      args.push_back(p);
  };
  flatten(a);
  flatten(b);
  // Drop what another argument dominates.
  for (size_t i = 0; i < args.size(); ++i) {
    for (size_t j = 0; j < args.size(); ++j) {
      if (i == j) continue;
      const Poly difference =
          kind == Atom::Kind::kMax ? minus(args[j], args[i]) : minus(args[i], args[j]);
      if (difference.bad || bounds(difference).low < 0) continue;
      args.erase(args.begin() + static_cast<std::ptrdiff_t>(i));
      --i;
      break;
    }
  }
  if (args.size() == 1) return args[0];
  std::sort(args.begin(), args.end(),
            [](const Poly& x, const Poly& y) { return compare(x, y) < 0; });
  return make_atom(kind, std::move(args));
}

// ---- text ----

std::string text_of(const Poly& p);

/// `alone`: not a factor of a product, so that a division needs no parentheses.
std::string text_of(const Atom& atom, bool alone) {
  switch (atom.kind) {
    case Atom::Kind::kSymbol:
      return atom.name;
    case Atom::Kind::kFloorDiv: {
      const auto operand = [](const Poly& p) {
        const bool simple = p.is_constant()
                                ? p.constant >= 0
                                : p.constant == 0 && p.terms.size() == 1 &&
                                      p.terms[0].factor == 1 && p.terms[0].atoms.size() == 1 &&
                                      p.terms[0].atoms[0]->kind != Atom::Kind::kFloorDiv;
        return simple ? text_of(p) : "(" + text_of(p) + ")";
      };
      const std::string text = operand(atom.args[0]) + "//" + operand(atom.args[1]);
      return alone ? text : "(" + text + ")";
    }
    case Atom::Kind::kMin:
    case Atom::Kind::kMax: {
      // The grammar has two arguments: max(a, max(b, c)).
      const char* name = atom.kind == Atom::Kind::kMin ? "min(" : "max(";
      std::string text;
      for (size_t i = 0; i + 1 < atom.args.size(); ++i) text += name + text_of(atom.args[i]) + ", ";
      text += text_of(atom.args.back());
      return text + std::string(atom.args.size() - 1, ')');
    }
  }
  return "?";
}

std::string text_of(const Poly& p) {
  if (p.is_constant()) return std::to_string(p.constant);
  std::string text;
  const auto add = [&text](const Term& term) {
    const uint64_t factor = term.factor < 0 ? 0 - static_cast<uint64_t>(term.factor)
                                            : static_cast<uint64_t>(term.factor);
    const bool first = text.empty();
    if (first)
      text += term.factor < 0 ? "-" : "";
    else
      text += term.factor < 0 ? " - " : " + ";
    if (factor != 1) text += std::to_string(factor) + "*";
    const bool alone = factor == 1 && term.atoms.size() == 1 && !(first && term.factor < 0);
    for (size_t i = 0; i < term.atoms.size(); ++i) {
      if (i != 0) text += '*';
      text += text_of(*term.atoms[i], alone);
    }
  };
  for (const Term& term : p.terms)
    if (term.factor > 0) add(term);
  if (text.empty() && p.constant > 0) text = std::to_string(p.constant);
  const bool constant_done = !text.empty() && p.terms[0].factor < 0 && p.constant > 0 &&
                             text == std::to_string(p.constant);
  for (const Term& term : p.terms)
    if (term.factor < 0) add(term);
  if (constant_done || p.constant == 0) return text;
  if (p.constant > 0) return text + " + " + std::to_string(p.constant);
  return text + " - " + std::to_string(0 - static_cast<uint64_t>(p.constant));
}

Poly symbol_of(std::string_view name) {
  Atom atom;
  atom.name = std::string(name);
  return of_atom(std::make_shared<const Atom>(std::move(atom)));
}

/// Recursive descent over the grammar of the header. Fails on anything else.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}
  bool parse(Poly& out) {
    if (!sum(out, 0)) return false;
    skip_space();
    return at_ == text_.size();
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool take(std::string_view token) {
    skip_space();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  /// What names consist of in models out there: identifiers, and `::`, `.` and such inside.
  static bool is_name(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '.' || c == ':' || c == '$' || c == '@' || c == '#' ||
           (static_cast<unsigned char>(c) & 0x80);
  }

  bool sum(Poly& out, size_t depth) {
    if (!product(out, depth)) return false;
    for (;;) {
      Poly right;
      if (take("+")) {
        if (!product(right, depth)) return false;
        out = plus(out, right);
      } else if (take("-")) {
        if (!product(right, depth)) return false;
        out = minus(out, right);
      } else {
        return true;
      }
    }
  }
  bool product(Poly& out, size_t depth) {
    if (!unary(out, depth)) return false;
    for (;;) {
      Poly right;
      if (take("*")) {
        if (!unary(right, depth)) return false;
        out = times(out, right);
      } else if (take("//")) {
        if (!unary(right, depth)) return false;
        out = floor_divide(out, right);
      } else if (take("%")) {
        if (!unary(right, depth)) return false;
        out = minus(out, times(right, floor_divide(out, right)));
      } else {
        return true;
      }
    }
  }
  bool unary(Poly& out, size_t depth) {
    if (depth > kMaxParseDepth) return false;
    if (take("-")) {
      if (!unary(out, depth + 1)) return false;
      out = minus(Poly(), out);
      return true;
    }
    if (take("(")) return sum(out, depth + 1) && take(")");
    skip_space();
    const size_t begin = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word.empty()) return false;
    if (is_digit(word[0])) {
      int64_t value = 0;
      for (const char c : word)
        if (!is_digit(c) || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, c - '0', &value))
          return false;
      out = Poly(value);
      return true;
    }
    if ((word == "min" || word == "max") && take("(")) {
      Poly right;
      if (!sum(out, depth + 1) || !take(",") || !sum(right, depth + 1) || !take(")")) return false;
      out = extreme(word == "min" ? Atom::Kind::kMin : Atom::Kind::kMax, out, right);
      return true;
    }
    out = symbol_of(word);
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

struct SymDim::Expression {
  Poly poly;

  static Poly of(const SymDim& dim) {
    if (dim.is_value()) return Poly(dim.value_);
    return dim.is_unknown() ? bad() : dim.expression_->poly;
  }
  static SymDim make(Poly p) {
    if (p.bad) return SymDim();
    if (p.is_constant()) return SymDim(p.constant);
    SymDim dim;
    dim.kind_ = Kind::kExpression;
    dim.expression_ = std::make_shared<const Expression>(Expression{std::move(p)});
    return dim;
  }
};

SymDim SymDim::symbol(std::string_view name) {
  return name.empty() ? SymDim() : Expression::make(symbol_of(name));
}

bool SymDim::names_nothing(std::string_view text) {
  static constexpr std::string_view kNothing[] = {"",     "?",       "*",       "-1", "None",
                                                  "none", "unknown", "dynamic", "any"};
  return std::find(std::begin(kNothing), std::end(kNothing), text) != std::end(kNothing);
}

SymDim SymDim::parse(std::string_view text) {
  // A negative size is a number here, and unknown to who reads it as a declared size.
  if (names_nothing(text) && text != "-1") return SymDim();
  Poly p;
  if (text.size() > kMaxText || !Parser(text).parse(p)) return symbol(text);
  return Expression::make(std::move(p));
}

std::string SymDim::to_string() const {
  if (is_unknown()) return "?";
  return is_value() ? std::to_string(value_) : text_of(expression_->poly);
}

bool SymDim::equals(const SymDim& other) const {
  if (kind_ != other.kind_ || is_unknown()) return false;
  if (is_value()) return value_ == other.value_;
  return expression_ == other.expression_ ||
         compare(expression_->poly, other.expression_->poly) == 0;
}

bool SymDim::differs(const SymDim& other) const {
  if (is_unknown() || other.is_unknown()) return false;
  if (is_value() && other.is_value()) return value_ != other.value_;
  if (expression_ == other.expression_) return false;
  const Poly difference = minus(Expression::of(*this), Expression::of(other));
  if (difference.bad) return false;
  const Interval range = bounds(difference);
  return range.low > 0 || range.high < 0;
}

std::optional<int64_t> SymDim::lower_bound() const {
  if (is_unknown()) return std::nullopt;
  const Interval range = bounds(Expression::of(*this));
  return range.low == kMinusInfinity ? std::nullopt : std::optional(range.low);
}

std::optional<int64_t> SymDim::upper_bound() const {
  if (is_unknown()) return std::nullopt;
  const Interval range = bounds(Expression::of(*this));
  return range.high == kInfinity ? std::nullopt : std::optional(range.high);
}

int SymDim::size() const {
  if (is_unknown()) return kMaxSize + 1;
  return is_value() ? 0 : size_of(expression_->poly);
}

size_t SymDim::hash() const {
  if (is_unknown()) return 0x9e3779b9;
  return is_value() ? mix(1, static_cast<size_t>(value_)) : hash_of(expression_->poly);
}

SymDim operator+(const SymDim& a, const SymDim& b) {
  using E = SymDim::Expression;
  if (b.is_value() && b.value() == 0) return a;
  if (a.is_value() && a.value() == 0) return b;
  return E::make(plus(E::of(a), E::of(b)));
}
SymDim operator-(const SymDim& a, const SymDim& b) {
  using E = SymDim::Expression;
  if (b.is_value() && b.value() == 0) return a;
  return E::make(minus(E::of(a), E::of(b)));
}
SymDim operator*(const SymDim& a, const SymDim& b) {
  using E = SymDim::Expression;
  if ((a.is_value() && a.value() == 0) || (b.is_value() && b.value() == 0)) return 0;
  if (a.is_value() && a.value() == 1) return b;
  if (b.is_value() && b.value() == 1) return a;
  return E::make(times(E::of(a), E::of(b)));
}
SymDim floor_div(const SymDim& a, const SymDim& b) {
  using E = SymDim::Expression;
  return E::make(floor_divide(E::of(a), E::of(b)));
}
SymDim modulo(const SymDim& a, const SymDim& b) { return a - b * floor_div(a, b); }
SymDim min(const SymDim& a, const SymDim& b) {
  using E = SymDim::Expression;
  return E::make(extreme(Atom::Kind::kMin, E::of(a), E::of(b)));
}
SymDim max(const SymDim& a, const SymDim& b) {
  using E = SymDim::Expression;
  return E::make(extreme(Atom::Kind::kMax, E::of(a), E::of(b)));
}
SymDim ceil_div(const SymDim& a, const SymDim& b) {
  // Exact division first: (a + b - 1)//b would hide it for a symbolic b.
  if (b.is_value()) return floor_div(a + b - 1, b);
  return SymDim(0) - floor_div(SymDim(0) - a, b);
}

SymDim::SymDim(const SymDim& other) = default;
SymDim::SymDim(SymDim&& other) noexcept = default;
SymDim& SymDim::operator=(const SymDim& other) = default;
SymDim& SymDim::operator=(SymDim&& other) noexcept = default;
SymDim::~SymDim() = default;

}  // namespace tombolo
