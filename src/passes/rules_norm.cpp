// Normalisations that exporters spell out.

#include <algorithm>
#include <optional>

#include "passes/evaluate.h"
#include "passes/passes.h"
#include "passes/rule.h"

namespace tombolo::passes {
namespace {

/// LayerNormalization and RMSNormalization compute in float32 by default: a double would lose.
bool is_single_or_less(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

/// The axes of the named inputs are the same run up to the last one; its first.
std::optional<int64_t> trailing_axis(Match& match, std::initializer_list<const char*> names) {
  const auto rank = match.rewriter.rank(match.value("x"));
  if (!rank || *rank == 0) return std::nullopt;
  std::optional<std::vector<int64_t>> common;
  for (const char* name : names) {
    auto axes = match.rewriter.ints(match.value(name));
    if (!axes || axes->empty()) return std::nullopt;
    for (int64_t& axis : *axes)
      if (axis < 0) axis += static_cast<int64_t>(*rank);
    std::sort(axes->begin(), axes->end());
    if (common && *common != *axes) return std::nullopt;
    common = std::move(axes);
  }
  const int64_t first = common->front();
  for (size_t i = 0; i < common->size(); ++i)
    if ((*common)[i] != first + static_cast<int64_t>(i)) return std::nullopt;
  if (common->back() + 1 != static_cast<int64_t>(*rank)) return std::nullopt;
  return first;
}

/// The lengths of x's axes from `axis` on, where they are numbers.
std::optional<std::vector<int64_t>> normalised_dims(Match& match, int64_t axis) {
  const SymShape* shape = match.rewriter.shape(match.value("x"));
  if (shape == nullptr) return std::nullopt;
  std::vector<int64_t> dims;
  for (size_t i = static_cast<size_t>(axis); i < shape->size(); ++i) {
    if (!(*shape)[i].is_value()) return std::nullopt;
    dims.push_back((*shape)[i].value());
  }
  return dims;
}

/// Binds `to` to the factor `from`, as a tensor of exactly the normalised shape.
bool bind_parameter(Match& match, const char* from, const char* to,
                    const std::vector<int64_t>& dims) {
  Value* value = match.value(from);
  const auto own = match.rewriter.dims(value);
  if (!own || match.rewriter.dtype(value) != match.dtype("x")) return false;
  if (*own == dims) {
    match.bind(to, value);
    return true;
  }
  // [1, 1, C] for [C]: a constant gets its axes taken away; other shapes broadcast otherwise.
  if (own->size() <= dims.size() || !match.rewriter.is_constant(value)) return false;
  const size_t extra = own->size() - dims.size();
  const auto rank = match.rewriter.rank(match.value("x"));
  if (!rank || own->size() > *rank) return false;
  for (size_t i = 0; i < extra; ++i)
    if ((*own)[i] != 1) return false;
  if (!std::equal(dims.begin(), dims.end(), own->begin() + static_cast<std::ptrdiff_t>(extra)))
    return false;
  const Tensor* tensor = match.rewriter.constant(value);
  if (tensor == nullptr) return false;
  match.bind(to, match.rewriter.initializer(match.graph(), tensor->reshaped(dims), value->name()));
  return true;
}

bool bind_ones(Match& match, const char* name, const std::vector<int64_t>& dims) {
  if (element_count(dims) > (1 << 20)) return false;
  auto ones = filled(match.dtype("x"), dims, 1);
  if (!ones) return false;
  match.bind(name, match.rewriter.initializer(match.graph(), *ones, "scale"));
  return true;
}

bool set_epsilon(Match& match) {
  const auto epsilon = match.rewriter.scalar(match.value("eps"));
  const auto rank = match.rewriter.rank(match.value("eps"));
  const auto other = match.rewriter.rank(match.value("x"));
  if (!epsilon || *epsilon < 0 || !(*epsilon < 1) || !rank || !other || *rank > *other)
    return false;
  match.set("epsilon", static_cast<float>(*epsilon));
  return true;
}

bool layer_norm_from(Match& match, std::optional<int64_t> axis, bool scaled, bool shifted) {
  if (!is_single_or_less(match.dtype("x")) || !axis || !set_epsilon(match)) return false;
  const auto dims = normalised_dims(match, *axis);
  if (!dims) return false;
  const auto rank = static_cast<int64_t>(*match.rewriter.rank(match.value("x")));
  match.set("axis", *axis - rank);
  if (scaled ? !bind_parameter(match, "w", "scale", *dims) : !bind_ones(match, "scale", *dims))
    return false;
  return !shifted || bind_parameter(match, "b", "bias", *dims);
}
bool layer_norm(Match& match, bool scaled, bool shifted) {
  return layer_norm_from(match, trailing_axis(match, {"axes", "axes2"}), scaled, shifted);
}
bool layer_norm_full(Match& match) { return layer_norm(match, true, true); }
bool layer_norm_scale(Match& match) { return layer_norm(match, true, false); }
/// The first axis of means by GlobalAveragePool: over all but two.
std::optional<int64_t> pooled_axis(const Match& match) {
  const auto rank = match.rewriter.rank(match.value("x"));
  return rank && *rank > 2 ? std::optional<int64_t>(2) : std::nullopt;
}
bool layer_norm_pooled(Match& match) {
  return layer_norm_from(match, pooled_axis(match), true, true);
}
bool layer_norm_pooled_scale(Match& match) {
  return layer_norm_from(match, pooled_axis(match), true, false);
}
bool layer_norm_plain(Match& match) {
  // What follows may still bring the scale: a Mul or Add by a constant waits for the full pattern.
  return layer_norm(match, false, false);
}

bool rms_norm(Match& match) {
  if (!is_single_or_less(match.dtype("x"))) return false;
  const auto axis = trailing_axis(match, {"axes"});
  if (!axis || !set_epsilon(match)) return false;
  const auto dims = normalised_dims(match, *axis);
  if (!dims) return false;
  const auto rank = static_cast<int64_t>(*match.rewriter.rank(match.value("x")));
  match.set("axis", *axis - rank);
  return bind_parameter(match, "w", "scale", *dims);
}
bool rms_norm_plain(Match& match) {
  if (!is_single_or_less(match.dtype("x"))) return false;
  const auto axis = trailing_axis(match, {"axes"});
  if (!axis || !set_epsilon(match)) return false;
  const auto dims = normalised_dims(match, *axis);
  if (!dims) return false;
  const auto rank = static_cast<int64_t>(*match.rewriter.rank(match.value("x")));
  match.set("axis", *axis - rank);
  return bind_ones(match, "scale", *dims);
}
/// x was cast up to float32 for the statistics, and down again before the scale.
bool rms_norm_cast(Match& match) {
  const DType dtype = match.dtype("x");
  if (dtype != DType::kFloat16 && dtype != DType::kBFloat16) return false;
  if (match.get_int("up", 0) != static_cast<int64_t>(DType::kFloat32) ||
      match.get_int("down", 0) != static_cast<int64_t>(dtype))
    return false;
  return rms_norm(match);
}

// d = x - mean(x), v = mean(d^2) + eps: the ways to write d^2, and d / sqrt(v).
#define MEAN "u = ReduceMean (x, axes) d = Sub (x, u) "
#define POOL_MEAN "u = GlobalAveragePool (x) d = Sub (x, u) "
#define POOL_SQUARE "q = Mul (d, d) v = GlobalAveragePool (q) e = Add (v, eps) "
// What Keras adds up: x * k and -mean * k + b.
#define NEGATED \
  "s = Sqrt (e) i = Reciprocal (s) k = Mul (i, w) f = Mul (x, k) z = Neg (u) g = Mul (z, k) "
#define POW "q = Pow (d, two) v = ReduceMean (q, axes2) e = Add (v, eps) "
#define SQUARE "q = Mul (d, d) v = ReduceMean (q, axes2) e = Add (v, eps) "
// Flax: mean(x^2) - mean(x)^2, which rounding may make negative.
#define MOMENTS                                                                               \
  "q = Mul (x, x) t = ReduceMean (q, axes2) o = Mul (u, u) r = Sub (t, o) v = Max (r, zero) " \
  "e = Add (v, eps) "
#define DIV "s = Sqrt (e) n = Div (d, s) "
#define RSQRT "s = Sqrt (e) i = Reciprocal (s) n = Mul (d, i) "
#define RSQRT1 "s = Sqrt (e) i = Div (one, s) n = Mul (d, i) "
#define PARAMS "(x, axes, axes2, eps, w, b) => (y)"
#define SCALED "(x, axes, axes2, eps, w) => (y)"
#define PLAIN "(x, axes, axes2, eps) => (n)"
#define TWO "<float two = {2.0}>"
#define ONE "<float one = {1.0}>"
#define ZERO "<float zero = {0.0}>"
#define BOTH "<float two = {2.0}, float one = {1.0}>"

constexpr RewriteRule kLayerNorm[] = {
    {.name = "layer-norm",
     .patterns =
         {
             "p " PARAMS TWO "{" MEAN POW DIV "m = Mul (n, w) y = Add (m, b) }",
             "p " PARAMS "{" MEAN SQUARE DIV "m = Mul (n, w) y = Add (m, b) }",
             "p " PARAMS TWO "{" MEAN POW RSQRT "m = Mul (n, w) y = Add (m, b) }",
             "p " PARAMS "{" MEAN SQUARE RSQRT "m = Mul (n, w) y = Add (m, b) }",
             "p " PARAMS BOTH "{" MEAN POW RSQRT1 "m = Mul (n, w) y = Add (m, b) }",
             "p " PARAMS ONE "{" MEAN SQUARE RSQRT1 "m = Mul (n, w) y = Add (m, b) }",
             // Keras: x * k + (b - mean * k), k = w / sqrt(v)
             "p " PARAMS "{" MEAN SQUARE
             "s = Sqrt (e) i = Reciprocal (s) k = Mul (i, w) f = Mul (x, k) g = Mul (u, k)"
             " h = Sub (b, g) y = Add (f, h) }",
             "p " PARAMS TWO "{" MEAN POW
             "s = Sqrt (e) i = Reciprocal (s) k = Mul (i, w) f = Mul (x, k) g = Mul (u, k)"
             " h = Sub (b, g) y = Add (f, h) }",
             "p " PARAMS "{" MEAN SQUARE NEGATED "h = Add (g, b) y = Add (f, h) }",
             // d * (w / sqrt(v)) + b
             "p " PARAMS "{" MEAN SQUARE
             "s = Sqrt (e) i = Reciprocal (s) k = Mul (i, w) f = Mul (d, k) y = Add (f, b) }",
             "p " PARAMS TWO "{" MEAN POW
             "s = Sqrt (e) i = Reciprocal (s) k = Mul (i, w) f = Mul (d, k) y = Add (f, b) }",
         },
     .replacement = "r (x, scale, bias) => (y) { y = LayerNormalization <axis = @axis,"
                    " epsilon = @epsilon> (x, scale, bias) }",
     .condition = layer_norm_full},
    {.name = "layer-norm-scale",
     .patterns =
         {
             "p " SCALED TWO "{" MEAN POW DIV "y = Mul (n, w) }",
             "p " SCALED "{" MEAN SQUARE DIV "y = Mul (n, w) }",
             "p " SCALED TWO "{" MEAN POW RSQRT "y = Mul (n, w) }",
             "p " SCALED "{" MEAN SQUARE RSQRT "y = Mul (n, w) }",
             "p " SCALED "{" MEAN SQUARE NEGATED "y = Add (f, g) }",
         },
     .replacement = "r (x, scale) => (y) { y = LayerNormalization <axis = @axis,"
                    " epsilon = @epsilon> (x, scale) }",
     .condition = layer_norm_scale},
    {.name = "layer-norm-pooled",
     .patterns = {"p (x, eps, w, b) => (y) {" POOL_MEAN POOL_SQUARE NEGATED
                  "h = Add (g, b) y = Add (f, h) }"},
     .replacement = "r (x, scale, bias) => (y) { y = LayerNormalization <axis = @axis,"
                    " epsilon = @epsilon> (x, scale, bias) }",
     .condition = layer_norm_pooled},
    {.name = "layer-norm-pooled-scale",
     .patterns = {"p (x, eps, w) => (y) {" POOL_MEAN POOL_SQUARE NEGATED "y = Add (f, g) }"},
     .replacement = "r (x, scale) => (y) { y = LayerNormalization <axis = @axis,"
                    " epsilon = @epsilon> (x, scale) }",
     .condition = layer_norm_pooled_scale},
};

constexpr RewriteRule kPlainLayerNorm[] = {
    {.name = "layer-norm-plain",
     .patterns =
         {
             "p " PLAIN TWO "{" MEAN POW DIV "}",
             "p " PLAIN "{" MEAN SQUARE DIV "}",
             "p " PLAIN TWO "{" MEAN POW RSQRT "}",
             "p " PLAIN "{" MEAN SQUARE RSQRT "}",
             "p " PLAIN ZERO "{" MEAN MOMENTS DIV "}",
             "p " PLAIN ZERO "{" MEAN MOMENTS RSQRT "}",
         },
     .replacement = "r (x, scale) => (y) { y = LayerNormalization <axis = @axis,"
                    " epsilon = @epsilon> (x, scale) }",
     .condition = layer_norm_plain},
};

/// An Add of a constant behind a LayerNormalization without bias.
bool late_bias(Match& match) {
  const Node* norm = nullptr;
  for (const Node* node : match.nodes)
    if (node->op_type() == "LayerNormalization") norm = node;
  const auto rank = match.rewriter.rank(match.value("x"));
  if (norm == nullptr || !rank) return false;
  int64_t axis = match.get_int("axis", -1);
  if (axis < 0) axis += static_cast<int64_t>(*rank);
  const auto dims = normalised_dims(match, axis);
  return dims && bind_parameter(match, "b", "bias", *dims);
}
/// LayerNormalization whose scale is all ones takes the Mul behind it.
bool late_scale(Match& match) {
  const auto rank = match.rewriter.rank(match.value("x"));
  const Tensor* old = match.rewriter.constant(match.value("old"));
  if (old == nullptr || !rank || !is_float(old->dtype())) return false;
  for (int64_t i = 0; i < old->size(); ++i)
    if (old->get_double(i) != 1) return false;
  int64_t axis = match.get_int("axis", -1);
  if (axis < 0) axis += static_cast<int64_t>(*rank);
  const auto dims = normalised_dims(match, axis);
  return dims && bind_parameter(match, "w", "scale", *dims);
}

/// d = x - mean(x) over the axes that are normalised: two LayerNormalizations of one input share
/// it.
bool centred(Match& match) {
  const Rewriter& rewriter = match.rewriter;
  const Node* sub = rewriter.producer(match.value("d"), "Sub");
  const Node* mean = sub != nullptr ? rewriter.producer(sub->input(1), "ReduceMean") : nullptr;
  if (mean == nullptr || mean->input(0) == nullptr || mean->input(0) != sub->input(0) ||
      mean->input(1) == nullptr || AttributeReader(*mean).get_int("keepdims", 1) == 0 ||
      !is_single_or_less(match.dtype("d")))
    return false;
  match.bind("x", sub->input(0));
  match.bind("axes", mean->input(1));
  const auto axis = trailing_axis(match, {"axes"});
  const auto rank = static_cast<int64_t>(rewriter.rank(sub->input(0)).value_or(0));
  const int64_t own = match.get_int("axis", -1);
  return axis && *axis == (own < 0 ? own + rank : own);
}

constexpr RewriteRule kLate[] = {
    {.name = "layer-norm-centred",
     .patterns = {"p (d, scale) => (y) { y = RMSNormalization <axis = @axis,"
                  " epsilon = @epsilon> (d, scale) }"},
     .replacement = "r (x, scale) => (y) { y = LayerNormalization <axis = @axis,"
                    " epsilon = @epsilon> (x, scale) }",
     .condition = centred},
    {.name = "layer-norm-late-scale",
     .patterns = {"p (x, old, w) => (y) { n = LayerNormalization <axis = @axis,"
                  " epsilon = @epsilon> (x, old) y = Mul (n, w) }"},
     .replacement = "r (x, scale) => (y) { y = LayerNormalization <axis = @axis,"
                    " epsilon = @epsilon> (x, scale) }",
     .condition = late_scale},
    {.name = "layer-norm-late-bias",
     .patterns = {"p (x, scale, b) => (y) { n = LayerNormalization <axis = @axis,"
                  " epsilon = @epsilon> (x, scale) y = Add (n, b) }"},
     .replacement = "r (x, scale, bias) => (y) { y = LayerNormalization <axis = @axis,"
                    " epsilon = @epsilon> (x, scale, bias) }",
     .condition = late_bias},
};

#define RMS_IN "(x, axes, eps, w) => (y)"
#define RMS_POW "q = Pow (x, two) v = ReduceMean (q, axes) e = Add (v, eps) s = Sqrt (e) "
#define RMS_MUL "q = Mul (x, x) v = ReduceMean (q, axes) e = Add (v, eps) s = Sqrt (e) "
#define RMS_UP                                                                                   \
  "c = Cast <to = @up> (x) q = Pow (c, two) v = ReduceMean (q, axes) e = Add (v, eps) s = Sqrt " \
  "(e) "

constexpr RewriteRule kRmsNorm[] = {
    {.name = "rms-norm",
     .patterns =
         {
             "p " RMS_IN TWO "{" RMS_POW "n = Div (x, s) y = Mul (n, w) }",
             "p " RMS_IN "{" RMS_MUL "n = Div (x, s) y = Mul (n, w) }",
             "p " RMS_IN TWO "{" RMS_POW "i = Reciprocal (s) n = Mul (x, i) y = Mul (n, w) }",
             "p " RMS_IN "{" RMS_MUL "i = Reciprocal (s) n = Mul (x, i) y = Mul (n, w) }",
             "p " RMS_IN BOTH "{" RMS_POW "i = Div (one, s) n = Mul (x, i) y = Mul (n, w) }",
             "p " RMS_IN ONE "{" RMS_MUL "i = Div (one, s) n = Mul (x, i) y = Mul (n, w) }",
         },
     .replacement = "r (x, scale) => (y) { y = RMSNormalization <axis = @axis,"
                    " epsilon = @epsilon> (x, scale) }",
     .condition = rms_norm},
    {.name = "rms-norm-cast",
     .patterns =
         {
             "p " RMS_IN TWO "{" RMS_UP
             "i = Reciprocal (s) m = Mul (c, i) n = Cast <to = @down> (m) y = Mul (n, w) }",
             "p " RMS_IN BOTH "{" RMS_UP
             "i = Div (one, s) m = Mul (c, i) n = Cast <to = @down> (m) y = Mul (n, w) }",
             "p " RMS_IN TWO "{" RMS_UP "m = Div (c, s) n = Cast <to = @down> (m) y = Mul (n, w) }",
         },
     .replacement = "r (x, scale) => (y) { y = RMSNormalization <axis = @axis,"
                    " epsilon = @epsilon> (x, scale) }",
     .condition = rms_norm_cast},
};

// clang-format off
#define RMS_PLAIN "(x, axes, eps) => (n)"
constexpr RewriteRule kPlainRmsNorm[] = {
    {.name = "rms-norm-plain",
     .patterns =
         {
             "p " RMS_PLAIN TWO "{" RMS_POW "n = Div (x, s) }",
             "p " RMS_PLAIN "{" RMS_MUL "n = Div (x, s) }",
             "p " RMS_PLAIN TWO "{" RMS_POW "i = Reciprocal (s) n = Mul (x, i) }",
             "p " RMS_PLAIN "{" RMS_MUL "i = Reciprocal (s) n = Mul (x, i) }",
             "p " RMS_PLAIN BOTH "{" RMS_POW "i = Div (one, s) n = Mul (x, i) }",
             "p " RMS_PLAIN ONE "{" RMS_MUL "i = Div (one, s) n = Mul (x, i) }",
         },
     .replacement = "r (x, scale) => (y) { y = RMSNormalization <axis = @axis,"
                    " epsilon = @epsilon> (x, scale) }",
     .condition = rms_norm_plain},
};
// clang-format on

/// Reshape to [N, groups, ...], InstanceNormalization without parameters, Reshape back, then one
/// factor and one addend a channel: what torch exports for GroupNorm.
bool group_norm(Match& match) {
  const Rewriter& rewriter = match.rewriter;
  const SymShape* x = rewriter.shape(match.value("x"));
  if (x == nullptr || x->size() < 3 || !(*x)[1].is_value()) return false;
  if (!rewriter.same_shape(match.value("x"), match.value("back"))) return false;
  const int64_t channels = (*x)[1].value();
  const Tensor* scale = rewriter.constant(match.value("s1"));
  const Tensor* bias = rewriter.constant(match.value("b0"));
  if (scale == nullptr || bias == nullptr) return false;
  for (int64_t i = 0; i < scale->size(); ++i)
    if (scale->get_double(i) != 1) return false;
  for (int64_t i = 0; i < bias->size(); ++i)
    if (bias->get_double(i) != 0) return false;
  const int64_t groups = scale->size();
  const SymShape* grouped = rewriter.shape(match.value("grouped"));
  if (groups <= 0 || channels % groups != 0 || grouped == nullptr || grouped->size() < 3 ||
      !(*grouped)[0].equals((*x)[0]) || (*grouped)[1].constant() != groups)
    return false;
  for (const auto& [from, to] : {std::pair("w", "scale"), std::pair("b", "bias")}) {
    const auto dims = rewriter.dims(match.value(from));
    const Tensor* tensor = rewriter.constant(match.value(from));
    if (!dims || tensor == nullptr || tensor->size() != channels || dims->size() > x->size() ||
        tensor->dtype() != rewriter.dtype(match.value("x")))
      return false;
    const size_t channel_axis = dims->size() + 1 - x->size();  // may wrap: then not a channel
    for (size_t i = 0; i < dims->size(); ++i)
      if ((*dims)[i] != 1 && i != channel_axis) return false;
    if (channel_axis >= dims->size()) return false;
    const int64_t flat[] = {channels};
    match.bind(to, match.rewriter.initializer(match.graph(), tensor->reshaped(flat), from));
  }
  match.set("groups", groups);
  return true;
}

constexpr RewriteRule kGroupNorm[] = {
    {.name = "group-norm",
     .patterns = {"p (x, s, t, s1, b0, w, b) => (y) { grouped = Reshape (x, s)"
                  " n = InstanceNormalization <epsilon = @epsilon> (grouped, s1, b0)"
                  " back = Reshape (n, t) m = Mul (back, w) y = Add (m, b) }"},
     .replacement = "r (x, scale, bias) => (y) { y = GroupNormalization <epsilon = @epsilon,"
                    " num_groups = @groups> (x, scale, bias) }",
     .condition = group_norm},
};

}  // namespace

Result<size_t> recognise_norms(Rewriter& rewriter) {
  size_t count = 0;
  for (const std::span<const RewriteRule> rules :
       {std::span<const RewriteRule>(kLayerNorm), std::span<const RewriteRule>(kRmsNorm),
        std::span<const RewriteRule>(kGroupNorm), std::span<const RewriteRule>(kPlainLayerNorm),
        std::span<const RewriteRule>(kPlainRmsNorm), std::span<const RewriteRule>(kLate)}) {
    TRY(const size_t found, apply_rules(rewriter, rules));
    count += found;
  }
  return count;
}

}  // namespace tombolo::passes
