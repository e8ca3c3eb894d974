// Matrix products and what is made of them.

#include <algorithm>
#include <cmath>
#include <map>

#include "formats/pytorch/aten/complex.h"
#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

/// MatMul of two tensors of one type; complex ones as four real products.
Value* product(C& c, Value* a, Value* b, DType type) {
  if (is_complex(type)) {
    Value *ar = c.re(a), *ai = c.im(a), *br = c.re(b), *bi = c.im(b);
    return c.pair(c.sub(c.op("MatMul", {ar, br}), c.op("MatMul", {ai, bi})),
                  c.add(c.op("MatMul", {ar, bi}), c.op("MatMul", {ai, br})));
  }
  const bool narrow = is_integer(type) && bits_of(type) < 32;
  if (type == DType::kBool || narrow)
    return c.cast(c.op("MatMul", {c.cast(a, DType::kInt32), c.cast(b, DType::kInt32)}), type);
  return c.op("MatMul", {a, b});
}

bool is_one(const Arg& a) {
  return a.is_none() || (a.kind == Arg::Kind::kInt && a.integer.is(1)) ||
         (a.kind == Arg::Kind::kFloat && !a.computed && a.real == 1);
}
bool is_zero(const Arg& a) {
  return (a.kind == Arg::Kind::kInt && a.integer.is(0)) ||
         (a.kind == Arg::Kind::kFloat && !a.computed && a.real == 0);
}

Value* times(C& c, Value* x, const Arg& factor, DType type) {
  if (is_one(factor)) return x;
  Value* f = c.operand_of(factor, type);
  return is_complex(type) ? complex_mul(c, x, f) : c.mul(x, f);
}

void linear(C& c) {
  const DType type = c.type("input");
  Value *x = c.x("input"), *w = c.x("weight"), *bias = c.opt("bias");
  if (is_complex(type)) {
    Value* y = product(c, x, c.rank(w) == 2 ? w : c.swap(w, 0, 1), type);
    return c.out(bias ? c.add(y, bias) : y, type);
  }
  if (c.rank(w) == 1) {
    Value* y = c.op("MatMul", {x, w});
    return c.out(bias ? c.add(y, bias) : y);
  }
  if (c.rank(x) == 2 && is_float(type)) return c.out(c.op("Gemm", {x, w, bias}, {{"transB", 1}}));
  Value* y = product(c, x, c.swap(w, 0, 1), type);
  c.out(bias ? c.add(y, bias) : y);
}

void matmul(C& c) {
  const std::string_view second = c.has_arg("mat2")     ? "mat2"
                                  : c.has_arg("vec")    ? "vec"
                                  : c.has_arg("tensor") ? "tensor"
                                  : c.has_arg("vec2")   ? "vec2"
                                                        : "other";
  const char* first = c.has_arg("input") ? "input" : "self";
  const DType type = c.promote({first, second});
  c.out(product(c, c.operand(first, type), c.operand(second, type), type), type);
}

void vdot(C& c) {
  const DType type = c.promote({"self", "other"});
  Value* a = c.operand("self", type);
  if (is_complex(type)) a = complex_conj(c, a);
  c.out(product(c, a, c.operand("other", type), type), type);
}

/// beta * self + alpha * (a @ b), summed over the batch for addbmm.
void add_product(C& c) {
  const bool vectors = c.has_arg("vec");
  const char* first = c.has_arg("mat1")     ? "mat1"
                      : c.has_arg("batch1") ? "batch1"
                      : c.has_arg("vec1")   ? "vec1"
                                            : "mat";
  const char* second = vectors               ? "vec"
                       : c.has_arg("mat2")   ? "mat2"
                       : c.has_arg("batch2") ? "batch2"
                                             : "vec2";
  const DType type = c.type(first);
  const Arg &beta = c.arg("beta"), &alpha = c.arg("alpha");
  Value *self = c.x("self"), *a = c.x(first), *y = c.x(second);
  if (c.name() == "addmm" && is_float(type) && !beta.computed && !alpha.computed) {
    Attrs attrs;
    if (!is_one(alpha)) attrs.emplace_back("alpha", c.real("alpha"));
    if (!is_one(beta)) attrs.emplace_back("beta", c.real("beta"));
    // A transposed weight is read as it lies.
    Node* flipped = y->producer();
    if (flipped && flipped->op_type() == "Transpose" && flipped->input(0) &&
        c.rank(flipped->input(0)) == 2) {
      y = flipped->input(0);
      attrs.emplace_back("transB", 1);
    }
    if (is_zero(beta)) return c.out(c.op("Gemm", {a, y}, attrs));
    return c.out(c.op("Gemm", {a, y, self}, attrs));
  }
  Value* p = nullptr;
  if (c.name() == "addr") {
    a = c.unsqueeze(a, {1});
    y = c.unsqueeze(y, {0});
    p = is_complex(type) ? complex_mul(c, a, y) : c.mul(a, y);
  } else {
    p = product(c, a, y, type);
  }
  if (c.name() == "addbmm") p = c.reduce("ReduceSum", p, {0}, false);
  p = times(c, p, alpha, type);
  if (is_zero(beta)) return c.out(p, type);
  c.out(c.add(times(c, self, beta, type), p), type);
}

void outer(C& c) {
  const char* second = c.has_arg("vec2") ? "vec2" : "other";
  const DType type = c.promote({"self", second});
  Value *a = c.unsqueeze(c.operand("self", type), {1}),
        *y = c.unsqueeze(c.operand(second, type), {0});
  c.out(is_complex(type) ? complex_mul(c, a, y) : c.mul(a, y), type);
}

void inner(C& c) {
  const DType type = c.promote({"self", "other"});
  Value *a = c.operand("self", type), *y = c.operand("other", type);
  const int64_t extra = is_complex(type) ? 1 : 0;
  if (c.rank(a) == extra || c.rank(y) == extra)
    return c.out(extra ? complex_mul(c, a, y) : c.mul(a, y), type);
  c.out(c.lower("tensordot", {Arg(c.cell(a, type)), Arg(c.cell(y, type)), Arg::ints(Ints{-1}),
                              Arg::ints(Ints{-1})}),
        type);
}

void tensordot(C& c) {
  const DType type = c.promote({"self", "other"});
  Value *a = c.operand("self", type), *y = c.operand("other", type);
  if (is_complex(type)) {
    Value* parts[2][2];
    for (int i = 0; i < 2; ++i)
      for (int k = 0; k < 2; ++k)
        parts[i][k] = c.lower(
            "tensordot", {Arg(c.cell(i ? c.im(a) : c.re(a))), Arg(c.cell(k ? c.im(y) : c.re(y))),
                          c.arg("dims_self"), c.arg("dims_other")});
    return c.out(c.pair(c.sub(parts[0][0], parts[1][1]), c.add(parts[0][1], parts[1][0])), type);
  }
  Ints da, dy;
  for (const int64_t d : c.ints("dims_self")) da.push_back(c.axis(d, c.rank(a)));
  for (const int64_t d : c.ints("dims_other")) dy.push_back(c.axis(d, c.rank(y)));
  for (size_t i = 0; i < da.size() && i < dy.size(); ++i) {
    // An axis of one element is repeated along the other's: its factor is the other's sum.
    const auto na = c.known(a, da[i]), ny = c.known(y, dy[i]);
    if (na == 1 && ny && ny != 1) y = c.reduce("ReduceSum", y, {dy[i]}, true);
    if (ny == 1 && na && na != 1) a = c.reduce("ReduceSum", a, {da[i]}, true);
  }
  Ints pa, py = dy;
  SymInts shape, sa, sy;
  for (int64_t i = 0; i < c.rank(a); ++i)
    if (std::find(da.begin(), da.end(), i) == da.end()) {
      pa.push_back(i);
      shape.push_back(c.size(a, i));
    }
  pa.insert(pa.end(), da.begin(), da.end());
  for (int64_t i = 0; i < c.rank(y); ++i)
    if (std::find(dy.begin(), dy.end(), i) == dy.end()) {
      py.push_back(i);
      shape.push_back(c.size(y, i));
    }
  SymInt inside(1), rows(1), columns(1);
  for (const int64_t d : da) inside = c.mul(inside, c.size(a, d));
  for (int64_t i = 0; i < c.rank(a); ++i)
    if (std::find(da.begin(), da.end(), i) == da.end()) rows = c.mul(rows, c.size(a, i));
  for (int64_t i = 0; i < c.rank(y); ++i)
    if (std::find(dy.begin(), dy.end(), i) == dy.end()) columns = c.mul(columns, c.size(y, i));
  Value* left = c.reshape(c.transpose(a, pa), {rows, inside});
  Value* right = c.reshape(c.transpose(y, py), {inside, columns});
  c.out(c.reshape(product(c, left, right, type), shape));
}

void einsum(C& c) {
  std::string equation = c.text("equation");
  std::erase(equation, ' ');
  const Args list = {c.arg("tensors")};
  const DType type = c.promote(list);
  if (is_complex(type)) return c.refuse("complex numbers");
  Values inputs;
  for (const Ref& ref : c.tensors("tensors")) inputs.push_back(c.operand_of(Arg(ref), type));
  c.out(c.op("Einsum", inputs, {{"equation", equation}}));
}

void cross(C& c) {
  const DType type = c.promote({"self", "other"});
  if (is_complex(type)) return c.refuse("complex numbers");
  Value *a = c.operand("self", type), *y = c.operand("other", type);
  SymInts sa = c.sizes(a), sy = c.sizes(y);
  for (size_t i = 0; i < sa.size() && i < sy.size(); ++i) {
    if (sa[i].is(1)) sa[i] = sy[i];
    if (sy[i].is(1)) sy[i] = sa[i];
  }
  a = c.expand(a, sa);
  y = c.expand(y, sy);
  int64_t dim = -1;
  if (c.given("dim")) {
    dim = c.axis(c.integer("dim"), c.rank(a));
  } else {
    for (int64_t i = 0; i < c.rank(a) && dim < 0; ++i)
      if (c.known(a, i) == 3) dim = i;
    if (dim < 0) return c.refuse("no axis of length 3");
  }
  const auto turned = [&](Value* v, Ints order) {
    return c.op("Gather", {v, c.b.ints(order)}, {{"axis", dim}});
  };
  c.out(c.sub(c.mul(turned(a, {1, 2, 0}), turned(y, {2, 0, 1})),
              c.mul(turned(a, {2, 0, 1}), turned(y, {1, 2, 0}))));
}

void kron(C& c) {
  const DType type = c.promote({"self", "other"});
  const int64_t extra = is_complex(type) ? 1 : 0;
  Value *a = c.operand("self", type), *y = c.operand("other", type);
  const int64_t ra = c.rank(a) - extra, ry = c.rank(y) - extra, r = std::max(ra, ry);
  Ints fa, fy, ua, uy;
  for (int64_t i = ra; i < r; ++i) fa.push_back(i - ra);
  for (int64_t i = ry; i < r; ++i) fy.push_back(i - ry);
  a = c.unsqueeze(a, fa);
  y = c.unsqueeze(y, fy);
  SymInts shape;
  for (int64_t i = 0; i < r; ++i) {
    shape.push_back(c.mul(c.size(a, i), c.size(y, i)));
    ua.push_back(2 * i + 1);
    uy.push_back(2 * i);
  }
  if (extra) shape.emplace_back(2);
  a = c.unsqueeze(a, ua);
  y = c.unsqueeze(y, uy);
  c.out(c.reshape(extra ? complex_mul(c, a, y) : c.mul(a, y), shape), type);
}

void chain_matmul(C& c) {
  Value* result = nullptr;
  DType type = DType::kUndefined;
  for (const Ref& ref : c.tensors(c.has_arg("matrices") ? "matrices" : "tensors")) {
    type = ref->dtype;
    Value* one = c.read(ref);
    result = result ? product(c, result, one, type) : one;
  }
  if (!result) return c.refuse("nothing to multiply");
  c.out(result, type);
}

void matrix_power(C& c) {
  Value* x = c.x("self");
  const DType type = c.type("self");
  int64_t n = c.integer("n");
  const int64_t r = c.rank(x) - (is_complex(type) ? 1 : 0);
  if (n < 0) {
    x = c.lower("linalg_inv_ex", {c.arg("self")});
    n = -n;
  }
  if (n == 0) {
    Value* eye = c.lower("eye", {Arg(c.size(x, r - 1))});
    if (is_complex(type)) eye = c.to_complex(eye, type);
    return c.out(c.expand(c.cast(eye, c.dtype(x)), c.sizes(x)), type);
  }
  Value* result = nullptr;
  for (; n > 0; n >>= 1) {
    if (n & 1) result = result ? product(c, result, x, type) : x;
    if (n > 1) x = product(c, x, x, type);
  }
  c.out(result, type);
}

/// x1^T A x2 + b, for every output.
void bilinear(C& c) {
  Value *a = c.x("input1"), *y = c.x("input2"), *w = c.x("weight"), *bias = c.opt("bias");
  const bool one_axis = c.rank(a) == 1;
  if (one_axis) {
    a = c.unsqueeze(a, {0});
    y = c.unsqueeze(y, {0});
  }
  Value* r = c.op("Einsum", {a, w, y}, {{"equation", "...i,oij,...j->...o"}});
  if (bias) r = c.add(r, bias);
  c.out(one_axis ? c.squeeze(r, {0}) : r);
}

void trilinear(C& c) {
  // The product of three expanded tensors, summed.
  Values parts;
  for (const auto& [name, expand] :
       {std::pair{"i1", "expand1"}, std::pair{"i2", "expand2"}, std::pair{"i3", "expand3"}})
    parts.push_back(c.unsqueeze(c.x(name), c.ints(expand)));
  Value* p = c.mul(c.mul(parts[0], parts[1]), parts[2]);
  c.out(c.reduce("ReduceSum", p, c.ints("sumdim"), false));
}

// ---- distances ----

Value* norm_over_last(C& c, Value* d, double p) {
  return c.lower("linalg_vector_norm", {Arg(c.cell(d)), Arg(p), Arg::ints(Ints{-1})});
}

void cdist(C& c) {
  Value *a = c.x("x1"), *y = c.x("x2");
  Value* d = c.sub(c.unsqueeze(a, {-2}), c.unsqueeze(y, {-3}));
  c.out(norm_over_last(c, d, c.has_arg("p") ? c.real("p") : 2));
}

void pdist(C& c) {
  Value* x = c.x("self");
  const auto n = c.known(x, 0);
  if (!n || *n > 512) return c.refuse("distances of an unknown number of rows");
  Ints first, second;
  for (int64_t i = 0; i < *n; ++i)
    for (int64_t k = i + 1; k < *n; ++k) {
      first.push_back(i);
      second.push_back(k);
    }
  Value* d = c.sub(c.op("Gather", {x, c.b.ints(first)}, {{"axis", 0}}),
                   c.op("Gather", {x, c.b.ints(second)}, {{"axis", 0}}));
  c.out(norm_over_last(c, d, c.real("p")));
}

void pairwise_distance(C& c) {
  Value *a = c.x("x1"), *y = c.x("x2");
  Value* d = c.add(c.sub(a, y), c.like(c.real("eps"), a));
  Value* r = norm_over_last(c, d, c.real("p"));
  c.out(c.flag("keepdim") ? c.unsqueeze(r, {-1}) : r);
}

void cosine_similarity(C& c) {
  const DType type = c.promote({"x1", "x2"});
  Value *a = c.operand("x1", type), *y = c.operand("x2", type);
  const int64_t r = std::max(c.rank(a), c.rank(y)), dim = c.axis(c.integer("dim"), r);
  Value* zero_a = c.mul(a, c.like(0, a));
  Value* zero_y = c.mul(y, c.like(0, y));
  Value *wa = c.add(a, zero_y), *wy = c.add(y, zero_a);
  Value* eps = c.like(c.real("eps"), a);
  const auto unit = [&](Value* v) {
    return c.div(v, c.op("Max", {c.reduce("ReduceL2", v, {dim}, true), eps}));
  };
  c.out(c.reduce("ReduceSum", c.mul(unit(wa), unit(wy)), {dim}, false));
}

/// Runs of rows, each with a matrix of its own: mixtures of experts. `offs` says where runs end.
void grouped_product(C& c) {
  const bool own = c.has_arg("mat2");
  Value *x = c.x(own ? "self" : "input"), *w = c.x(own ? "mat2" : "weight");
  Value* ends = c.opt("offs");
  if (own && c.given("bias")) return c.refuse("a grouped product with a bias");
  if (c.rank(x) == 3 && c.rank(w) == 3 && ends == nullptr) return c.out(c.op("MatMul", {x, w}));
  const auto count = c.known(w, 0);
  if (c.rank(x) != 2 || c.rank(w) != 3 || ends == nullptr || !count || *count > 1024)
    return c.refuse(
        "a grouped product of other ranks than 2 and 3, or of an unknown number of groups");
  ends = c.cast(ends, DType::kInt64);
  Values parts;
  SymInt start(0);
  for (int64_t i = 0; i < *count; ++i) {
    const SymInt end(SymDim(), c.select(ends, 0, SymInt(i)));
    parts.push_back(c.op("MatMul", {c.slice(x, 0, start, end), c.select(w, 0, SymInt(i))}));
    start = end;
  }
  // Rows behind the last run are zeros.
  parts.push_back(c.full({c.sub(c.size(x, 0), start), c.size(w, 2)}, 0, c.dtype(x)));
  Value* y = c.concat(parts, 0);
  c.out(c.cast(y, c.dtype("out_dtype").value_or(c.dtype(x))));
}

/// Products whose result has a wider type: its operands are brought to it first.
void product_in(C& c) {
  const DType type = c.dtype("out_dtype").value_or(c.default_float);
  Args args;
  for (const SchemaArg& one : c.schema().args) {
    if (one.name == "out_dtype") continue;
    const Arg& given = c.arg(one.name);
    args.push_back(given.is_tensor() ? Arg(c.cell(c.cast(c.x(one.name), type))) : given);
  }
  const std::string_view name = c.name();
  c.out(c.lower(name.substr(0, name.find('.')), std::move(args)));
}

void activated_product(C& c) {
  Value* y = c.lower("addmm",
                     {c.arg("self"), c.arg("mat1"), c.arg("mat2"), c.arg("beta"), c.arg("alpha")});
  c.out(c.op(c.flag("use_gelu") ? "Gelu" : "Relu", {y}));
}

constexpr Row kLinearRows[] = {
    {"linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", linear},
    {"matmul(Tensor self, Tensor other) -> Tensor", matmul},
    {"linalg_matmul(Tensor self, Tensor other) -> Tensor", matmul},
    {"mm(Tensor self, Tensor mat2) -> Tensor", matmul},
    {"bmm(Tensor self, Tensor mat2) -> Tensor", matmul},
    {"mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor", product_in},
    {"bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor", product_in},
    {"addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype, *, Scalar beta=1, "
     "Scalar alpha=1) -> Tensor",
     product_in},
    {"baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, *, Scalar "
     "beta=1, Scalar alpha=1) -> Tensor",
     product_in},
    {"_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, "
     "bool use_gelu=False) -> Tensor",
     activated_product},
    {"_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? "
     "out_dtype=None) -> Tensor",
     grouped_product},
    {"transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor",
     grouped_product},
    {"mv(Tensor self, Tensor vec) -> Tensor", matmul},
    {"dot(Tensor self, Tensor tensor) -> Tensor", matmul},
    {"vdot(Tensor self, Tensor other) -> Tensor", vdot},
    {"__matmul__(Tensor self, Tensor other) -> Tensor", matmul},
    {"addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     add_product},
    {"addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     add_product},
    {"addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> "
     "Tensor",
     add_product},
    {"baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> "
     "Tensor",
     add_product},
    {"addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     add_product},
    {"outer(Tensor self, Tensor vec2) -> Tensor", outer},
    {"ger(Tensor self, Tensor vec2) -> Tensor", outer},
    {"inner(Tensor self, Tensor other) -> Tensor", inner},
    {"tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
     tensordot},
    {"einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor", einsum},
    {"cross(Tensor self, Tensor other, int? dim=None) -> Tensor", cross},
    {"linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", cross},
    {"kron(Tensor self, Tensor other) -> Tensor", kron},
    {"chain_matmul(Tensor[] matrices) -> Tensor", chain_matmul},
    {"linalg_multi_dot(Tensor[] tensors) -> Tensor", chain_matmul},
    {"matrix_power(Tensor self, int n) -> Tensor", matrix_power},
    {"linalg_matrix_power(Tensor self, int n) -> Tensor", matrix_power},
    {"bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
     bilinear},
    {"_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, "
     "int[] sumdim, int unroll_dim=1) -> Tensor",
     trilinear},
    {"cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor", cdist},
    {"_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor", cdist},
    {"_euclidean_dist(Tensor x1, Tensor x2) -> Tensor", cdist},
    {"pdist(Tensor self, float p=2) -> Tensor", pdist},
    {"_pdist_forward(Tensor self, float p=2) -> Tensor", pdist},
    {"pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> "
     "Tensor",
     pairwise_distance},
    {"cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
     cosine_similarity},
};

}  // namespace

std::span<const Row> linear_rows() { return kLinearRows; }

}  // namespace tombolo::pytorch
