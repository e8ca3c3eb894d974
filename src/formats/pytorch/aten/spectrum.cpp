// Decompositions by orthogonal matrices, and what follows from singular values.

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/pytorch/aten/complex.h"
#include "formats/pytorch/aten/matrices.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

Value* every_other(C& c, Value* values) {
  return c.slice(values, c.rank(values) - 1, SymInt(0), SymInt(INT64_MAX), 2);
}

/// From the largest, in the type of the matrix.
Value* singular_values(C& c, Value* a, bool pairs) {
  Value* values = singular_of(c, pairs ? embedded(c, a) : a, false).values;
  return c.cast(pairs ? every_other(c, values) : values, c.dtype(a));
}

/// The symmetric matrix that one triangle says: the lower one, or the upper one.
Value* symmetric(C& c, Value* a, bool upper) {
  Value* half = c.op("Trilu", {a}, {{"upper", upper}});
  Value* rest = c.op("Trilu", {a, c.b.int_scalar(upper ? 1 : -1)}, {{"upper", upper}});
  return c.add(half, c.swap(rest, -1, -2));
}
Value* hermitian(C& c, Value* z, bool upper) {
  // An imaginary part is minus its mirror image, and nothing on the diagonal.
  Value* rest = c.op("Trilu", {c.im(z), c.b.int_scalar(upper ? 1 : -1)}, {{"upper", upper}});
  return c.pair(symmetric(c, c.re(z), upper), c.sub(rest, c.swap(rest, -1, -2)));
}

/// Eigenvalues of a symmetric or Hermitian matrix, from the least, in its type.
Value* symmetric_eigenvalues(C& c, Value* a, bool upper, bool pairs) {
  Value* whole = pairs ? embedded(c, hermitian(c, a, upper)) : symmetric(c, a, upper);
  Value* values = eigen_of(c, whole).values;
  return c.cast(pairs ? every_other(c, values) : values, c.dtype(a));
}

void qr(C& c) {
  const char* name = c.has_arg("A") ? "A" : "self";
  const bool pairs = c.is_complex(name);
  Value* a = c.x(name);
  const std::string mode = c.has_arg("mode") ? c.text("mode")
                           : c.flag("some")  ? "reduced"
                                             : "complete";
  const DType type = c.type(name);
  const Orthogonal result =
      pairs ? factored_pairs(c, a, mode == "complete") : factored(c, a, mode == "complete");
  SymInts nothing = {SymInt(0)};
  if (pairs) nothing.emplace_back(2);
  c.out(mode == "r" ? c.full(nothing, 0, c.dtype(a)) : c.cast(result.q, c.dtype(a)), type);
  c.out(c.cast(result.r, c.dtype(a)), type);
}

/// Q = H_0 H_1 .. of reflections I - tau v v^T, as LAPACK keeps them below the diagonal.
void householder_product(C& c) {
  const char *name = c.has_arg("tau") ? "input" : "self",
             *factors = c.has_arg("tau") ? "tau" : "input2";
  if (!real_only(c, name)) return;
  Value *a = c.x(name), *tau = wide(c, c.x(factors));
  Value* w = wide(c, a);
  const int64_t r = c.rank(w);
  const SymInt n = c.size(w, r - 2), m = c.size(w, r - 1), count = c.size(tau, r - 2);
  Value* rows = c.unsqueeze(c.range(n), {1});
  Value* eye = c.cast(c.op("Equal", {rows, c.range(m)}), DType::kFloat64);
  const Values done =
      loop(c, count, {c.expand(eye, c.sizes(w))}, [&](Value* i, const Values& state) {
        Value* at = c.sub(c.int_value(c.sub(count, SymInt(1))), i);  // the last one first
        Value* v = c.where(c.op("Greater", {rows, at}), column_of(c, w, at), c.like(0, w));
        v = c.where(c.op("Equal", {rows, at}), c.like(1, w), v);
        Value* factor =
            c.unsqueeze(c.op("Gather", {tau, c.unsqueeze(at, {0})}, {{"axis", r - 2}}), {r - 2});
        Value* share = c.mul(factor, c.op("MatMul", {c.swap(v, -1, -2), state[0]}));
        return Values{c.sub(state[0], c.op("MatMul", {v, share}))};
      });
  c.out(c.cast(done[0], c.dtype(a)));
}

void eigh(C& c) {
  const char* name = c.has_arg("A") ? "A" : "self";
  const bool pairs = c.is_complex(name), upper = c.text("UPLO") == "U" || c.text("UPLO") == "u";
  const bool vectors =
      c.schema().results.size() == 2 && (!c.has_arg("compute_v") || c.flag("compute_v"));
  Value* a = c.x(name);
  if (!vectors) {
    c.out(symmetric_eigenvalues(c, a, upper, pairs));
    if (c.schema().results.size() == 2 && pairs)
      c.out(c.full({SymInt(0), SymInt(2)}, 0, c.dtype(a)), c.type(name));
    else if (c.schema().results.size() == 2)
      c.out(c.full({SymInt(0)}, 0, c.dtype(a)));
    return;
  }
  if (pairs) {
    const Eigen result = eigen_of_pairs(c, hermitian(c, a, upper));
    c.out(c.cast(result.values, c.dtype(a)));
    return c.out(c.cast(result.vectors, c.dtype(a)), c.type(name));
  }
  const Eigen result = eigen_of(c, symmetric(c, a, upper));
  c.out(c.cast(result.values, c.dtype(a)));
  c.out(c.cast(result.vectors, c.dtype(a)));
}

/// Columns [.., n, k] that are orthogonal, and more of them up to n.
Value* completed(C& c, Value* u, bool pairs) {
  const int64_t r = c.rank(u) - (pairs ? 1 : 0);
  const SymInt n = c.size(u, r - 2), k = c.size(u, r - 1);
  if (n.dim.equals(k.dim)) return u;
  Value* q = pairs ? factored_pairs(c, u, true).q : factored(c, u, true).q;
  return c.concat({u, c.slice(q, r - 1, k, n)}, r - 1);
}

void svd(C& c) {
  const char* name = c.has_arg("A") ? "A" : "self";
  const bool pairs = c.is_complex(name), old = c.name() == "svd";
  const bool vectors = !c.has_arg("compute_uv") || c.flag("compute_uv");
  const bool whole = old ? !c.flag("some") : c.flag("full_matrices");
  Value* a = c.x(name);
  const DType type = c.dtype(a);
  if (!vectors) {
    SymInts lead = lead_sizes(c, a, pairs ? 3 : 2);
    const auto zeros = [&](int64_t axis) {
      SymInts sizes = lead;
      const SymInt n = c.size(a, axis - (pairs ? 1 : 0));
      sizes.push_back(n);
      sizes.push_back(n);
      if (!old) sizes = {SymInt(0)};
      if (pairs) sizes.emplace_back(2);
      c.out(c.full(sizes, 0, type), c.type(name));
    };
    zeros(-2);
    c.out(singular_values(c, a, pairs));
    return zeros(-1);
  }
  const Singular result = pairs ? singular_of_pairs(c, a) : singular_of(c, a, true);
  if (c.failed()) return;
  Value* u = whole ? completed(c, result.u, pairs) : result.u;
  Value* v = whole ? completed(c, result.v, pairs) : result.v;
  if (!old) v = pairs ? adjoint(c, v) : c.swap(v, -1, -2);
  c.out(c.cast(u, type), c.type(name));
  c.out(c.cast(result.values, type));
  c.out(c.cast(v, type), c.type(name));
}

void svdvals(C& c) { c.out(singular_values(c, c.x("A"), c.is_complex("A"))); }

/// A double of an argument that is a number, a tensor or not given.
Value* threshold(C& c, const char* name, Value* fallback) {
  if (!c.has_arg(name) || !c.given(name)) return fallback;
  return c.operand(name, DType::kFloat64);
}

void matrix_rank(C& c) {
  const char* name = c.has_arg("input") ? "input" : "self";
  const bool pairs = c.is_complex(name);
  Value* a = c.x(name);
  const int64_t r = c.rank(a) - (pairs ? 1 : 0);
  const SymInt n = c.size(a, r - 2), m = c.size(a, r - 1);
  Value* values = c.flag("hermitian") ? c.op("Abs", {symmetric_eigenvalues(c, a, false, pairs)})
                                      : singular_values(c, a, pairs);
  values = c.cast(values, DType::kFloat64);
  Value *zero = c.scalar(0, DType::kFloat64), *absolute = nullptr, *relative = nullptr;
  if (c.has_arg("tol")) {
    absolute = threshold(c, "tol", zero);
    relative = zero;
  } else {
    const double eps = c.dtype(a) == DType::kFloat64 ? std::numeric_limits<double>::epsilon()
                                                     : std::numeric_limits<float>::epsilon();
    absolute = threshold(c, "atol", zero);
    Value* usual = c.mul(c.scalar(eps, DType::kFloat64),
                         c.cast(c.int_value(c.maximum(n, m)), DType::kFloat64));
    // Where only an absolute threshold is given there is no relative one.
    usual = c.where(c.op("Greater", {absolute, zero}), zero, usual);
    relative = threshold(c, "rtol", usual);
  }
  Value* largest = c.reduce("ReduceMax", values, {c.rank(values) - 1}, false);
  Value* least = c.op("Max", {absolute, c.mul(relative, largest)});
  Value* counts = c.op("Greater", {values, c.unsqueeze(least, {-1})});
  c.out(c.reduce("ReduceSum", c.cast(counts, DType::kInt64), {-1}, false));
}

void cond(C& c) {
  const Arg self = c.arg("self"), p = c.arg("p");
  const bool by_size = p.is_none() || (p.is_number() && std::abs(c.real("p")) == 2);
  if (!by_size) {
    const char* norm =
        p.kind == Arg::Kind::kString ? "linalg_matrix_norm.str_ord" : "linalg_matrix_norm";
    Value* inverse = c.lower("linalg_inv", {self});
    Value* of_self = c.lower(norm, {self, p});
    return c.out(c.mul(of_self, c.lower(norm, {Arg(c.cell(inverse, c.type("self"))), p})));
  }
  Value* values = singular_values(c, c.x("self"), c.is_complex("self"));
  Value* largest = c.select(values, -1, SymInt(0));
  Value* least = c.select(values, -1, SymInt(-1));
  const bool turned = !p.is_none() && c.real("p") < 0;
  c.out(turned ? c.div(least, largest) : c.div(largest, least));
}

/// X with X X = A, for A that is symmetric and positive.
void matrix_sqrth(C& c) {
  Value* a = symmetric(c, c.x("self"), false);
  const Eigen e = eigen_of(c, a);
  Value* roots = c.op("Sqrt", {c.op("Max", {e.values, c.like(0, e.values)})});
  Value* scaled = c.mul(e.vectors, c.unsqueeze(roots, {-2}));
  c.out(c.cast(c.op("MatMul", {scaled, c.swap(e.vectors, -1, -2)}), c.dtype(a)));
}

/// A = U H with U orthogonal and H symmetric and positive.
void polar(C& c) {
  Value* a = c.x("A");
  const Singular s = singular_of(c, a, true);
  Value* vh = c.swap(s.v, -1, -2);
  c.out(c.cast(c.op("MatMul", {s.u, vh}), c.dtype(a)));
  c.out(c.cast(c.op("MatMul", {c.mul(s.v, c.unsqueeze(s.values, {-2})), vh}), c.dtype(a)));
}

/// Norms of matrices: of their columns and rows, or of their singular values.
void matrix_norm(C& c) {
  const bool pairs = c.is_complex("self");
  Value* a = c.x("self");
  const int64_t r = c.rank(a) - (pairs ? 1 : 0);
  Ints dims = {-2, -1};
  if (c.has_arg("dim") && c.given("dim")) dims = c.ints("dim");
  if (dims.size() != 2) return c.refuse("a norm over other than two axes");
  const int64_t rows = c.axis(dims[0], r), columns = c.axis(dims[1], r);
  if (c.has_arg("dtype") && c.given("dtype")) a = c.cast(a, C::real_of(*c.dtype("dtype")));
  const bool named = c.arg("ord").kind == Arg::Kind::kString;
  const bool nuclear = c.name().starts_with("nuclear") || (named && c.text("ord") == "nuc");
  Value* result = nullptr;
  if (nuclear || (!named && std::abs(c.real("ord")) == 2)) {
    Ints perm;
    for (int64_t i = 0; i < r; ++i)
      if (i != rows && i != columns) perm.push_back(i);
    perm.insert(perm.end(), {rows, columns});
    if (pairs) perm.push_back(r);
    Value* values = singular_values(c, c.transpose(a, perm), pairs);
    const int64_t last = c.rank(values) - 1;
    if (c.known(values, last) == 0) {
      SymInts sizes = lead_sizes(c, values, 1);
      sizes.emplace_back(1);
      values = c.full(sizes, 0, c.dtype(values));
    }
    result = c.reduce(nuclear             ? "ReduceSum"
                      : c.real("ord") > 0 ? "ReduceMax"
                                          : "ReduceMin",
                      values, {last}, false);
    if (c.flag("keepdim"))
      result = c.unsqueeze(result, {std::min(rows, columns), std::max(rows, columns)});
    return c.out(result);
  }
  if (pairs) a = complex_abs(c, a);
  if (named) {
    if (c.text("ord") != "fro") return c.refuse("a norm of the order \"" + c.text("ord") + "\"");
    result = c.reduce("ReduceL2", a, {rows, columns}, true);
  } else {
    const double p = c.real("ord");
    const int64_t first = std::isinf(p) ? columns : rows, second = std::isinf(p) ? rows : columns;
    result = c.reduce("ReduceL1", a, {first}, true);
    result = c.reduce(p > 0 ? "ReduceMax" : "ReduceMin", result, {second}, true);
  }
  c.out(c.flag("keepdim") ? result : c.squeeze(result, {rows, columns}));
}

constexpr Row kSpectrumRows[] = {
    {"linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", qr},
    {"qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", qr},
    {"linalg_householder_product(Tensor input, Tensor tau) -> Tensor", householder_product},
    {"orgqr(Tensor self, Tensor input2) -> Tensor", householder_product},
    {"linalg_eigvalsh(Tensor self, str UPLO='L') -> Tensor", eigh},
    {"linalg_eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)", eigh},
    {"_linalg_eigh(Tensor A, str UPLO='L', bool compute_v=True) -> (Tensor eigenvalues, Tensor "
     "eigenvectors)",
     eigh},
    {"linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", svdvals},
    {"linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, "
     "Tensor Vh)",
     svd},
    {"_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) "
     "-> "
     "(Tensor U, Tensor S, Tensor Vh)",
     svd},
    {"svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
     svd},
    {"linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor", matrix_rank},
    {"linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor",
     matrix_rank},
    {"linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, "
     "bool hermitian=False) -> Tensor",
     matrix_rank},
    {"linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool "
     "hermitian=False) -> Tensor",
     matrix_rank},
    {"linalg_cond(Tensor self, Scalar? p=None) -> Tensor", cond},
    {"linalg_cond.p_str(Tensor self, str p) -> Tensor", cond},
    {"linalg_matrix_sqrth(Tensor self) -> Tensor", matrix_sqrth},
    {"linalg_polar(Tensor A) -> (Tensor U, Tensor H)", polar},
    {"linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, "
     "ScalarType? dtype=None) -> Tensor",
     matrix_norm},
    {"linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2,-1], bool "
     "keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     matrix_norm},
    {"nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", matrix_norm},
    {"nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor", matrix_norm},
};

}  // namespace

std::span<const Row> spectrum_rows() { return kSpectrumRows; }

}  // namespace tombolo::pytorch
