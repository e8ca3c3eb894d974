// Calls with complex tensors of operators whose own handlers know real ones only: linear ones run
// on both components, products on the four pairs of components, a few are written out. What is in
// none of the lists here is refused: a pair must not be taken for an axis more.

#include <algorithm>
#include <array>

#include "formats/pytorch/aten/complex.h"
#include "formats/pytorch/aten/listed.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

/// Handlers that take pairs themselves.
constexpr std::string_view kAware[] = {"_assert_scalar",
                                       "_assert_tensor_metadata",
                                       "_conj",
                                       "_conj_copy",
                                       "_conj_physical",
                                       "_efficientzerotensor",
                                       "_fft_c2c",
                                       "_fft_c2r",
                                       "_linalg_det",
                                       "_linalg_eigh",
                                       "_linalg_slogdet",
                                       "_linalg_solve_ex",
                                       "_linalg_svd",
                                       "_lu_with_info",
                                       "_neg_view",
                                       "_reshape_alias",
                                       "_shape_as_tensor",
                                       "_to_copy",
                                       "_unsafe_index",
                                       "_unsafe_view",
                                       "abs",
                                       "absolute",
                                       "acos",
                                       "acosh",
                                       "add",
                                       "addbmm",
                                       "addcdiv",
                                       "addcmul",
                                       "addmm",
                                       "addmv",
                                       "addr",
                                       "alias",
                                       "alias_copy",
                                       "all",
                                       "angle",
                                       "any",
                                       "arange",
                                       "arccos",
                                       "arccosh",
                                       "arcsin",
                                       "arcsinh",
                                       "arctan",
                                       "arctanh",
                                       "argwhere",
                                       "as_strided",
                                       "as_strided_copy",
                                       "asin",
                                       "asinh",
                                       "atan",
                                       "atanh",
                                       "atleast_1d",
                                       "atleast_2d",
                                       "atleast_3d",
                                       "baddbmm",
                                       "bmm",
                                       "broadcast_to",
                                       "cat",
                                       "chain_matmul",
                                       "channel_shuffle",
                                       "cholesky",
                                       "chunk",
                                       "clone",
                                       "column_stack",
                                       "combinations",
                                       "complex",
                                       "concat",
                                       "concatenate",
                                       "conj",
                                       "conj_physical",
                                       "contiguous",
                                       "copy",
                                       "cos",
                                       "cosh",
                                       "count_nonzero",
                                       "cumprod",
                                       "cumulative_trapezoid",
                                       "data",
                                       "detach",
                                       "detach_copy",
                                       "diag",
                                       "diag_embed",
                                       "diagflat",
                                       "diagonal",
                                       "diagonal_copy",
                                       "diff",
                                       "dist",
                                       "div",
                                       "divide",
                                       "dot",
                                       "dropout",
                                       "dsplit",
                                       "dstack",
                                       "empty",
                                       "empty_like",
                                       "empty_permuted",
                                       "empty_strided",
                                       "eq",
                                       "equal",
                                       "exp",
                                       "exp2",
                                       "expand",
                                       "expand_as",
                                       "expand_copy",
                                       "expm1",
                                       "feature_dropout",
                                       "fft_fft",
                                       "fft_fft2",
                                       "fft_fftn",
                                       "fft_fftshift",
                                       "fft_hfft",
                                       "fft_hfft2",
                                       "fft_hfftn",
                                       "fft_ifft",
                                       "fft_ifft2",
                                       "fft_ifftn",
                                       "fft_ifftshift",
                                       "fft_ihfft",
                                       "fft_irfft",
                                       "fft_irfft2",
                                       "fft_irfftn",
                                       "fft_rfft",
                                       "fill",
                                       "flatten",
                                       "flip",
                                       "fliplr",
                                       "flipud",
                                       "float_power",
                                       "full",
                                       "full_like",
                                       "gather",
                                       "ge",
                                       "ger",
                                       "gradient",
                                       "gt",
                                       "hsplit",
                                       "hstack",
                                       "imag",
                                       "index",
                                       "index_select",
                                       "inner",
                                       "inverse",
                                       "is_complex",
                                       "is_floating_point",
                                       "is_nonzero",
                                       "is_same_size",
                                       "isfinite",
                                       "isinf",
                                       "isnan",
                                       "isreal",
                                       "istft",
                                       "item",
                                       "kron",
                                       "le",
                                       "lerp",
                                       "lift_fresh",
                                       "lift_fresh_copy",
                                       "linalg_cholesky",
                                       "linalg_cholesky_ex",
                                       "linalg_cond",
                                       "linalg_det",
                                       "linalg_diagonal",
                                       "linalg_eigh",
                                       "linalg_eigvalsh",
                                       "linalg_inv",
                                       "linalg_inv_ex",
                                       "linalg_lu",
                                       "linalg_lu_factor",
                                       "linalg_lu_factor_ex",
                                       "linalg_lu_solve",
                                       "linalg_matmul",
                                       "linalg_matrix_norm",
                                       "linalg_matrix_power",
                                       "linalg_matrix_rank",
                                       "linalg_multi_dot",
                                       "linalg_norm",
                                       "linalg_qr",
                                       "linalg_slogdet",
                                       "linalg_solve",
                                       "linalg_solve_ex",
                                       "linalg_solve_triangular",
                                       "linalg_svd",
                                       "linalg_svdvals",
                                       "linalg_vector_norm",
                                       "linear",
                                       "log",
                                       "log10",
                                       "log1p",
                                       "log2",
                                       "logaddexp",
                                       "logcumsumexp",
                                       "logdet",
                                       "logical_and",
                                       "logical_not",
                                       "logical_or",
                                       "logical_xor",
                                       "logspace",
                                       "lt",
                                       "lu_solve",
                                       "lu_unpack",
                                       "mH",
                                       "mT",
                                       "masked_fill",
                                       "matmul",
                                       "matrix_H",
                                       "matrix_power",
                                       "mm",
                                       "moveaxis",
                                       "movedim",
                                       "mul",
                                       "multiply",
                                       "mv",
                                       "nan_to_num",
                                       "narrow",
                                       "narrow_copy",
                                       "ne",
                                       "neg",
                                       "negative",
                                       "new_empty",
                                       "new_empty_strided",
                                       "new_full",
                                       "new_ones",
                                       "new_zeros",
                                       "nonzero",
                                       "nonzero_numpy",
                                       "norm",
                                       "not_equal",
                                       "nuclear_norm",
                                       "numpy_T",
                                       "ones",
                                       "ones_like",
                                       "outer",
                                       "permute",
                                       "permute_copy",
                                       "pixel_shuffle",
                                       "pixel_unshuffle",
                                       "positive",
                                       "pow",
                                       "prod",
                                       "put",
                                       "qr",
                                       "ravel",
                                       "real",
                                       "reciprocal",
                                       "repeat",
                                       "reshape",
                                       "resize",
                                       "resize_as",
                                       "resolve_conj",
                                       "resolve_neg",
                                       "roll",
                                       "rot90",
                                       "rsqrt",
                                       "rsub",
                                       "scalar_tensor",
                                       "select",
                                       "select_copy",
                                       "sgn",
                                       "sigmoid",
                                       "sin",
                                       "sinc",
                                       "sinh",
                                       "size",
                                       "slice",
                                       "slice_copy",
                                       "slice_scatter",
                                       "slogdet",
                                       "split",
                                       "split_copy",
                                       "split_with_sizes",
                                       "split_with_sizes_copy",
                                       "sqrt",
                                       "square",
                                       "squeeze",
                                       "squeeze_copy",
                                       "stack",
                                       "std",
                                       "std_mean",
                                       "stft",
                                       "sub",
                                       "subtract",
                                       "svd",
                                       "swapaxes",
                                       "swapdims",
                                       "sym_numel",
                                       "sym_size",
                                       "sym_storage_offset",
                                       "sym_stride",
                                       "t",
                                       "t_copy",
                                       "tan",
                                       "tanh",
                                       "tensor_split",
                                       "tile",
                                       "to",
                                       "trace",
                                       "transpose",
                                       "transpose_copy",
                                       "trapezoid",
                                       "trapz",
                                       "triangular_solve",
                                       "tril",
                                       "triu",
                                       "true_divide",
                                       "type_as",
                                       "unbind",
                                       "unbind_copy",
                                       "unflatten",
                                       "unsafe_chunk",
                                       "unsafe_split",
                                       "unsafe_split_with_sizes",
                                       "unsqueeze",
                                       "unsqueeze_copy",
                                       "var",
                                       "var_mean",
                                       "vdot",
                                       "view",
                                       "view_as_complex",
                                       "view_as_real",
                                       "view_as_real_copy",
                                       "view_copy",
                                       "vsplit",
                                       "vstack",
                                       "where",
                                       "xlogy",
                                       "zero",
                                       "zeros",
                                       "zeros_like"};

/// The same for both components: what moves, adds or averages elements. Numbers among the arguments
/// are values; real tensors of floats are values too, and those of integers and bools say where.
constexpr std::string_view kLinear[] = {"_chunk_cat",
                                        "_unsafe_index_put",
                                        "_unsafe_masked_index",
                                        "_unsafe_masked_index_put_accumulate",
                                        "as_strided_scatter",
                                        "broadcast_tensors",
                                        "block_diag",
                                        "cartesian_prod",
                                        "col2im",
                                        "constant_pad_nd",
                                        "cumsum",
                                        "diagonal_scatter",
                                        "im2col",
                                        "index_add",
                                        "index_copy",
                                        "index_fill",
                                        "index_put",
                                        "linspace",
                                        "masked_scatter",
                                        "masked_select",
                                        "mean",
                                        "meshgrid",
                                        "nansum",
                                        "pad",
                                        "_pad_circular",
                                        "_pad_enum",
                                        "reflection_pad1d",
                                        "reflection_pad2d",
                                        "reflection_pad3d",
                                        "repeat_interleave",
                                        "replication_pad1d",
                                        "replication_pad2d",
                                        "replication_pad3d",
                                        "reshape_as",
                                        "scatter",
                                        "scatter_add",
                                        "select_scatter",
                                        "sum",
                                        "sum_to_size",
                                        "take",
                                        "take_along_dim",
                                        "unfold",
                                        "unfold_copy",
                                        "view_as"};

/// Linear in each of two tensors; a third one is added.
constexpr std::string_view kBilinear[] = {
    "_convolution",     "conv1d",           "conv2d",      "conv3d", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "convolution", "cross",  "einsum",
    "linalg_cross",     "linalg_vecdot",    "tensordot"};

bool has_complex(const Arg& arg) {
  if (arg.is_tensor()) return tombolo::is_complex(arg.tensor->dtype);
  for (const Arg& part : arg.list)
    if (has_complex(part)) return true;
  return false;
}

/// One component of an argument.
Arg component(C& c, const Arg& arg, std::string_view type, std::string_view name, bool imaginary) {
  if (arg.is_tensor()) {
    Value* value = c.read(arg.tensor);
    if (tombolo::is_complex(arg.tensor->dtype))
      return Arg(c.cell(imaginary ? c.im(value) : c.re(value)));
    if (!imaginary || !tombolo::is_float(arg.tensor->dtype)) return arg;
    return Arg(c.cell(c.full(c.sizes(value), 0, c.dtype(value))));
  }
  switch (arg.kind) {
    case Arg::Kind::kList: {
      std::vector<Arg> parts;
      for (const Arg& part : arg.list) parts.push_back(component(c, part, type, name, imaginary));
      return Arg(std::move(parts));
    }
    case Arg::Kind::kComplex:
      if (name == "alpha") c.refuse("a complex factor");
      return Arg(imaginary ? arg.imaginary : arg.real);
    case Arg::Kind::kDType:
      return Arg(C::real_of(arg.dtype));
    case Arg::Kind::kInt:
      if (type.starts_with("ScalarType") && arg.integer.is_number())
        if (const auto made = dtype_from_c10(arg.integer.dim.value()))
          return Arg(C::real_of(*made));
      break;
    default:
      break;
  }
  // Not `alpha`, which multiplies.
  const bool value = arg.is_number() && !type.starts_with("ScalarType") && name != "alpha" &&
                     (type.starts_with("Scalar") || name == "value");
  return value && imaginary ? Arg(0) : arg;
}

Arg joined(C& c, const Arg& re, const Arg& im) {
  if (re.kind == Arg::Kind::kList) {
    std::vector<Arg> parts;
    for (size_t i = 0; i < re.list.size() && i < im.list.size(); ++i)
      parts.push_back(joined(c, re.list[i], im.list[i]));
    return Arg(std::move(parts));
  }
  if (!re.is_tensor() || !im.is_tensor() || !tombolo::is_float(re.tensor->dtype)) return re;
  Value *a = c.read(re.tensor), *b = c.read(im.tensor);
  return Arg(c.cell(c.pair(a, b), C::complex_of(c.dtype(a))));
}

std::vector<Arg> on_components(C& c, const Operator& op, const Args& args) {
  std::array<Args, 2> results;
  for (const bool imaginary : {false, true}) {
    std::vector<Arg> parts;
    for (size_t i = 0; i < args.size(); ++i)
      parts.push_back(
          component(c, args[i], op.schema.args[i].type, op.schema.args[i].name, imaginary));
    results[imaginary] = c.lower_all(op.schema.name, std::move(parts));
  }
  Args made;
  for (size_t i = 0; i < results[0].size() && i < results[1].size(); ++i)
    made.push_back(joined(c, results[0][i], results[1][i]));
  // What is broadcast keeps its type.
  const bool keeps =
      op.schema.name.starts_with("broadcast_tensors") || op.schema.name.starts_with("meshgrid");
  if (keeps && !made.empty() && !args.empty())
    for (size_t i = 0; i < args[0].list.size() && i < made[0].list.size(); ++i)
      if (!has_complex(args[0].list[i])) made[0].list[i] = results[0][0].list[i];
  if (op.row->kind != RowKind::kValue && !args.empty() && args[0].is_tensor())
    for (const Arg& result : made)
      if (result.is_tensor()) c.may_share(args[0].tensor, result.tensor);
  return made;
}

std::vector<Arg> on_products(C& c, const Operator& op, const Args& args) {
  const bool listed_operands = op.schema.name.starts_with("einsum");
  std::vector<size_t> tensors;
  if (!listed_operands)
    for (size_t i = 0; i < args.size(); ++i)
      if (args[i].is_tensor()) tensors.push_back(i);
  const size_t operands = listed_operands ? args[1].list.size() : tensors.size();
  if (listed_operands && operands == 1) return on_components(c, op, args);
  if (operands < 2 || (listed_operands && operands > 2)) {
    c.refuse("a product of more than two complex tensors");
    return {};
  }
  const auto term = [&](bool first, bool second, bool with_third) -> Value* {
    Args parts = args;
    const auto take = [&](Arg& arg, bool imaginary) {
      arg = component(c, arg, "Tensor", "", imaginary);
    };
    if (listed_operands) {
      take(parts[1].list[0], first);
      take(parts[1].list[1], second);
    } else {
      take(parts[tensors[0]], first);
      take(parts[tensors[1]], second);
      for (size_t i = 2; i < tensors.size(); ++i) {
        if (with_third) {
          take(parts[tensors[i]], second);
        } else {
          parts[tensors[i]] = Arg();
        }
      }
    }
    return c.lower(op.schema.name, std::move(parts));
  };
  const Arg& a = listed_operands ? args[1].list[0] : args[tensors[0]];
  const Arg& b = listed_operands ? args[1].list[1] : args[tensors[1]];
  const bool both = has_complex(a) && has_complex(b);
  const bool conjugated = op.schema.name == "linalg_vecdot";
  Value *re = term(false, false, true), *im = nullptr;
  if (has_complex(b) || operands > 2) im = term(false, true, true);
  if (both) {
    Value* product = term(true, true, false);
    re = conjugated ? c.add(re, product) : c.sub(re, product);
  }
  if (has_complex(a)) {
    Value* product = term(true, false, false);
    if (conjugated) product = c.op("Neg", {product});
    im = im ? c.add(im, product) : product;
  }
  if (im == nullptr) im = c.mul(re, c.like(0, re));
  return {Arg(c.cell(c.pair(re, im), C::complex_of(c.dtype(re))))};
}

/// Functions of a matrix A + iB: those of the real matrix (A -B; B A), whose blocks they consist
/// of.
std::vector<Arg> by_embedding(C& c, std::string_view name, const Arg& self) {
  if (!self.is_tensor()) return {Arg()};  // a step before it was refused
  Value* z = c.read(self.tensor);
  Value *a = c.re(z), *b = c.im(z);
  Value* top = c.concat({a, c.op("Neg", {b})}, -1);
  Value* bottom = c.concat({b, a}, -1);
  std::vector<Arg> results = c.lower_all(name, {Arg(c.cell(c.concat({top, bottom}, -2)))});
  for (Arg& result : results) {
    Value* made = c.read(result.tensor);
    const SymInt all = c.size(made, -2), rows = c.floor_div(all, SymInt(2)),
                 columns = c.floor_div(c.size(made, -1), SymInt(2));
    Value* left = c.slice(made, -1, SymInt(0), columns);
    result = Arg(c.cell(c.pair(c.slice(left, -2, SymInt(0), rows), c.slice(left, -2, rows, all)),
                        self.tensor->dtype));
  }
  if (results.empty()) results.emplace_back();
  return results;
}

Arg reduced(C& c, Value* losses, const Arg& reduction) {
  const int64_t kind = reduction.is_none() ? 1 : reduction.integer.dim.constant().value_or(1);
  if (kind == 0) return Arg(c.cell(losses));
  return Arg(c.cell(c.lower(kind == 1 ? "mean" : "sum", {Arg(c.cell(losses))})));
}

/// What is written in other operators; nothing where the operator is none of these.
std::optional<std::vector<Arg>> written_out(C& c, const Operator& op, const Args& args) {
  const std::string_view full = op.schema.name, name = full.substr(0, full.find('.'));
  const auto argument = [&](std::string_view which) {
    const int at = op.schema.find(which);
    return at >= 0 ? args[static_cast<size_t>(at)] : Arg();
  };
  const auto call = [&](std::string_view overload, std::vector<Arg> list) {
    const std::vector<Arg> results = c.lower_all(overload, std::move(list));
    return results.empty() ? Arg() : results.front();
  };
  const Arg self = args.empty() ? Arg() : args[0];
  const auto one = [](Arg result) { return std::vector<Arg>{std::move(result)}; };
  if (name == "silu") return one(call("mul.Tensor", {self, call("sigmoid", {self})}));
  if (name == "ldexp" && argument("other").is_tensor())
    return one(call("mul.Tensor", {self, call("pow.Scalar", {Arg(2.0), argument("other")})}));
  if (name == "matrix_exp" || name == "linalg_matrix_exp") return by_embedding(c, full, self);
  const auto transposed = [&](const Arg& a) {
    return call("transpose.int", {a, Arg(-1), Arg(-2)});
  };
  const auto hermitian = [&] {  // what the lower triangle says
    const Arg below = call("tril", {self, Arg(-1)});
    const Arg whole = call("add.Tensor", {below, call("conj_physical", {transposed(below)})});
    Value* diagonal = c.read(call("sub.Tensor", {call("tril", {self}), below}).tensor);
    diagonal = c.pair(c.re(diagonal), c.mul(c.im(diagonal), c.like(0, diagonal)));
    return call("add.Tensor", {whole, Arg(c.cell(diagonal, self.tensor->dtype))});
  };
  if (name == "pinverse" || name == "linalg_pinv") {
    const Arg matrix = argument("hermitian").integer.is(1) ? hermitian() : self;
    return one(by_embedding(c, "pinverse", matrix).front());
  }
  if (name == "linalg_matrix_sqrth") return by_embedding(c, full, hermitian());
  if (name == "linalg_polar") return by_embedding(c, full, self);
  if (name == "cholesky_inverse" || name == "cholesky_solve") {
    const bool upper = argument("upper").integer.is(1);
    const Arg factor = name == "cholesky_solve" ? argument("input2") : self;
    const Arg half = call(upper ? "triu" : "tril", {factor});
    const Arg other = call("conj_physical", {transposed(half)});
    const Arg matrix = upper ? call("matmul", {other, half}) : call("matmul", {half, other});
    if (name == "cholesky_inverse") return one(call("linalg_inv", {matrix}));
    return one(call("linalg_solve", {matrix, self}));
  }
  if (name == "renorm") {
    Arg others(std::vector<Arg>{});
    const int64_t rank = c.rank(c.read(self.tensor)) - 1;
    const int64_t dim = c.axis(argument("dim").integer.dim.constant().value_or(0), rank);
    for (int64_t i = 0; i < rank; ++i)
      if (i != dim) others.list.emplace_back(i);
    const Arg length =
        call("linalg_vector_norm", {call("abs", {self}), argument("p"), others, Arg(true)});
    Value* norm = c.read(length.tensor);
    Value* limit = c.operand_of(argument("maxnorm"), c.dtype(norm));
    Value* factor = c.where(c.op("Greater", {norm, limit}),
                            c.div(limit, c.add(norm, c.like(1e-7, norm))), c.like(1, norm));
    return one(call("mul.Tensor", {self, Arg(c.cell(factor))}));
  }
  if (name == "rms_norm") {
    Arg axes(std::vector<Arg>{});
    const auto count = static_cast<int64_t>(argument("normalized_shape").list.size());
    for (int64_t i = -count; i < 0; ++i) axes.list.emplace_back(i);
    const Arg eps = argument("eps").is_none()
                        ? Arg(self.tensor->dtype == DType::kComplex128 ? 2.220446049250313e-16
                                                                       : 1.1920928955078125e-07)
                        : argument("eps");
    const Arg mean = call("mean.dim", {call("mul.Tensor", {self, self}), axes, Arg(true)});
    const Arg y = call("mul.Tensor", {self, call("rsqrt", {call("add.Scalar", {mean, eps})})});
    return one(argument("weight").is_none() ? y : call("mul.Tensor", {y, argument("weight")}));
  }
  if (name == "linalg_vander" || name == "vander") {
    const auto count = argument("N").is_none() ? c.known(c.read(self.tensor), -2)
                                               : argument("N").integer.dim.constant();
    if (!count || *count < 1 || *count > 64) return std::nullopt;
    const Arg x = c.rank(c.read(self.tensor)) > 1 ? self : call("unsqueeze", {self, Arg(0)});
    std::vector<Arg> powers = {call("ones_like", {x})};
    for (int64_t i = 1; i < *count; ++i)
      powers.push_back(i == 1 ? x : call("mul.Tensor", {powers.back(), x}));
    if (name == "vander" && !argument("increasing").integer.is(1))
      std::reverse(powers.begin(), powers.end());
    return one(call("stack", {Arg(std::move(powers)), Arg(-1)}));
  }
  if ((name == "linalg_tensorsolve" && argument("dims").is_none()) || name == "linalg_tensorinv") {
    const bool inverse = name == "linalg_tensorinv";
    SymInts sizes = c.sizes(c.read(self.tensor)), shape;
    sizes.pop_back();
    const auto split = inverse ? argument("ind").integer.dim.constant().value_or(2)
                               : c.rank(c.read(argument("other").tensor)) - 1;
    if (split < 0 || split > static_cast<int64_t>(sizes.size())) return std::nullopt;
    SymInt n(1);
    for (size_t i = static_cast<size_t>(split); i < sizes.size(); ++i) {
      shape.push_back(sizes[i]);
      n = c.mul(n, sizes[i]);
    }
    const Arg matrix = call("reshape", {self, Arg::ints(SymInts{n, n})});
    if (!inverse) {
      const Arg column = call("reshape", {argument("other"), Arg::ints(SymInts{n, SymInt(1)})});
      return one(call("reshape", {call("linalg_solve", {matrix, column}), Arg::ints(shape)}));
    }
    for (size_t i = 0; i < static_cast<size_t>(split); ++i) shape.push_back(sizes[i]);
    return one(call("reshape", {call("linalg_inv", {matrix}), Arg::ints(shape)}));
  }
  if ((name == "softmax" || name == "log_softmax" || name == "_softmax") &&
      !argument("dtype").is_none()) {
    std::vector<Arg> real = args;
    real[0] = component(c, self, "Tensor", "", false);
    return c.lower_all(full, std::move(real));
  }
  if (name == "nonzero_static") {
    std::vector<Arg> mask = args;
    mask[0] = call("ne.Scalar", {self, Arg(0)});
    return c.lower_all(full, std::move(mask));
  }
  if (name == "isclose" && !argument("equal_nan").integer.is(1)) {
    const Arg other = argument("other");
    const Arg distance = call("abs", {call("sub.Tensor", {self, other})});
    const Arg room =
        call("add.Scalar",
             {call("mul.Scalar", {call("abs", {other}), argument("rtol")}), argument("atol")});
    const Arg near =
        call("logical_and", {call("le.Tensor", {distance, room}), call("isfinite", {distance})});
    return one(call("logical_or", {near, call("eq.Tensor", {self, other})}));
  }
  if (name == "logsumexp") {
    // Shifted by the largest real part.
    const Arg real = call("real", {self});
    const Arg shift = call("amax", {real, argument("dim"), Arg(true)});
    const Arg sum = call("sum.dim_IntList", {call("exp", {call("sub.Tensor", {self, shift})}),
                                             argument("dim"), argument("keepdim")});
    const Arg back = argument("keepdim").integer.is(1)
                         ? shift
                         : call("amax", {real, argument("dim"), Arg(false)});
    return one(call("add.Tensor", {call("log", {sum}), back}));
  }
  if (name == "l1_loss") {
    const Arg distance = call("abs", {call("sub.Tensor", {self, argument("target")})});
    return one(reduced(c, c.read(distance.tensor), argument("reduction")));
  }
  const auto distance_of = [&](const Arg& a, const Arg& b, const Arg& p, const Arg& eps,
                               const Arg& keep) {
    const Arg moved = call("add.Scalar", {call("sub.Tensor", {a, b}), eps});
    return call("linalg_vector_norm",
                {call("abs", {moved}), p, Arg(std::vector<Arg>{Arg(-1)}), keep});
  };
  if (name == "pairwise_distance")
    return one(
        distance_of(self, argument("x2"), argument("p"), argument("eps"), argument("keepdim")));
  if (name == "triplet_margin_loss") {
    const auto between = [&](const Arg& a, const Arg& b) {
      return distance_of(a, b, argument("p"), argument("eps"), Arg(false));
    };
    const Arg near = between(self, argument("positive"));
    Arg far = between(self, argument("negative"));
    if (argument("swap").integer.is(1))
      far = call("minimum", {far, between(argument("positive"), argument("negative"))});
    const Arg loss = call("add.Scalar", {call("sub.Tensor", {near, far}), argument("margin")});
    return one(reduced(c, c.read(call("clamp_min", {loss, Arg(0)}).tensor), argument("reduction")));
  }
  // Norms of absolute values; those by singular values are not.
  const Arg order = argument("ord");
  const bool by_size = order.is_none() ||
                       (order.kind == Arg::Kind::kString && order.text == "fro") ||
                       (order.is_number() && !order.integer.is(2) && !order.integer.is(-2) &&
                        order.real != 2 && order.real != -2);
  if ((name == "linalg_norm" || name == "linalg_matrix_norm") && by_size) {
    std::vector<Arg> real = args;
    real[0] = call("abs", {self});
    return c.lower_all(full, std::move(real));
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<Arg>> lower_complex(AtenContext& c, const Operator& op,
                                              const std::vector<Arg>& args) {
  const std::string_view full = op.schema.name, name = full.substr(0, full.find('.'));
  bool complex = false, kind = false;
  for (const Arg& arg : args) {
    complex = complex || has_complex(arg);
    kind = kind || (arg.kind == Arg::Kind::kDType && tombolo::is_complex(arg.dtype)) ||
           arg.kind == Arg::Kind::kComplex;
  }
  if (!complex && !kind) return std::nullopt;
  const bool linear = listed(kLinear, name);
  if (!complex && !linear && name != "eye") return std::nullopt;
  if (name == "eye") {
    std::vector<Arg> real;
    for (size_t i = 0; i < args.size(); ++i)
      real.push_back(component(c, args[i], op.schema.args[i].type, op.schema.args[i].name, false));
    Value* made = c.lower(full, std::move(real));
    return std::vector<Arg>{Arg(
        c.cell(c.to_complex(made, C::complex_of(c.dtype(made))), C::complex_of(c.dtype(made))))};
  }
  if (linear) return on_components(c, op, args);
  if (listed(kBilinear, name)) return on_products(c, op, args);
  Args whole = args;
  for (size_t i = 0; i < whole.size(); ++i) {
    // A number in the place of a tensor becomes one; anything else is refused.
    if (op.schema.args[i].type == "Tensor" && !whole[i].is_tensor())
      whole[i] = Arg(c.cell(c.x(op.schema.args[i].name)));
  }
  if (c.failed()) return std::vector<Arg>();
  if (auto done = written_out(c, op, whole)) return done;
  if (listed(kAware, name) || full.find("::") != full.npos) return std::nullopt;
  c.refuse("complex numbers");
  return std::vector<Arg>();
}

}  // namespace tombolo::pytorch
