// Quantisation as exported programs write it: quantized_decomposed of PyTorch's own flows,
// torchao's affine operators, and fake quantisation. Weights come out as QuantizeLinear and
// DequantizeLinear, blocked and of 4 bits where they are.

#include <cmath>
#include <limits>
#include <tuple>

#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

/// The bounds fill the type, as a rule; a narrower range is clipped.
Value* bounded(C& c, Value* q, DType type) {
  const double low = static_cast<double>(c.integer("quant_min")),
               high = static_cast<double>(c.integer("quant_max"));
  const double least = type == DType::kInt8 ? -128 : type == DType::kInt16 ? -32768 : 0;
  const double most = type == DType::kInt8    ? 127
                      : type == DType::kUInt8 ? 255
                      : type == DType::kInt16 ? 32767
                                              : 65535;
  if (low <= least && high >= most) return q;
  return c.op("Clip", {q, c.like(low, q), c.like(high, q)});
}

Attrs axis_of(C& c) {
  if (!c.has_arg("axis")) return {};
  return {{"axis", c.integer("axis")}};
}
const char* scale_name(C& c) { return c.has_arg("scales") ? "scales" : "scale"; }
const char* zero_name(C& c) { return c.has_arg("zero_points") ? "zero_points" : "zero_point"; }

void quantize(C& c) {
  Value* x = c.x("input");
  const DType type = c.dtype("dtype").value_or(DType::kInt8);
  if (type == DType::kInt32) return c.refuse("quantisation to int32");
  Value* scale = c.operand(scale_name(c), c.dtype(x));
  Value* zero = c.given(zero_name(c)) ? c.operand(zero_name(c), type) : nullptr;
  if (!zero) zero = c.cast(c.mul(scale, c.like(0, scale)), type);
  c.out(bounded(c, c.op("QuantizeLinear", {x, scale, zero}, axis_of(c)), type));
}

void dequantize(C& c) {
  Value* q = c.x("input");
  const DType out =
      c.has_arg("out_dtype") ? c.dtype("out_dtype").value_or(DType::kFloat32) : DType::kFloat32;
  Value* scale = c.operand(scale_name(c), out);
  Value* zero = c.given(zero_name(c)) ? c.operand(zero_name(c), c.dtype(q)) : nullptr;
  c.out(c.op("DequantizeLinear", {q, scale, zero}, axis_of(c)));
}

void fake_quantize(C& c) {
  Value* x = c.x("self");
  const double low = c.real("quant_min"), high = c.real("quant_max");
  const bool per_channel = c.has_arg("axis");
  Value* scale = c.operand("scale", c.dtype(x));
  Value* zero = c.operand("zero_point", c.dtype(x));
  if (per_channel) {
    Ints after;
    for (int64_t i = c.axis(c.integer("axis"), c.rank(x)) + 1; i < c.rank(x); ++i)
      after.push_back(static_cast<int64_t>(after.size()) + 1);
    scale = c.unsqueeze(scale, after);
    zero = c.unsqueeze(zero, after);
  }
  Value* q = c.add(c.op("Round", {c.div(x, scale)}), zero);
  Value* clipped = c.op("Clip", {q, c.like(low, q), c.like(high, q)});
  c.out(c.mul(c.sub(clipped, zero), scale));
  if (c.schema().results.size() == 2)
    c.out(c.op("And", {c.op("GreaterOrEqual", {q, c.like(low, q)}),
                       c.op("LessOrEqual", {q, c.like(high, q)})}));
}

// ---- blocks: torchao, and groups and tokens of quantized_decomposed ----

/// The range of a quantised tensor: given, or all of its type.
std::pair<double, double> range_of(C& c, DType type) {
  const auto bound = [&](const char* name, double fallback) {
    return c.given(name) ? c.real(name) : fallback;
  };
  const bool is_signed = is_signed_integer(type);
  const double bits = 8.0 * static_cast<double>(bytes_of(type));
  return {bound("quant_min", is_signed ? -std::exp2(bits - 1) : 0),
          bound("quant_max", is_signed ? std::exp2(bits - 1) - 1 : std::exp2(bits) - 1)};
}

/// How elements share a scale: all of them, those with one index on an axis, or runs along an axis.
struct Blocks {
  enum Kind { kTensor, kAxis, kRuns, kOther } kind = kOther;
  int64_t axis = 0, length = 0;
  SymInts scale_sizes;  ///< the tensor's, divided by the blocks
};

Blocks blocks_of(C& c, Value* x, const SymInts& block) {
  Blocks found;
  std::vector<size_t> whole, single, part;
  for (size_t i = 0; i < block.size(); ++i) {
    const SymInt size = c.size(x, static_cast<int64_t>(i));
    const bool all = block[i].dim.equals(size.dim) || block[i].is(-1);
    if (all) {
      whole.push_back(i);
    } else if (block[i].is(1)) {
      single.push_back(i);
    } else {
      part.push_back(i);
    }
    found.scale_sizes.push_back(all ? SymInt(1) : c.floor_div(size, block[i]));
  }
  const auto run_along = [&](size_t i) {
    const SymInt length = block[i].is(-1) ? c.size(x, static_cast<int64_t>(i)) : block[i];
    if (!length.is_number()) return;
    found.kind = Blocks::kRuns;
    found.axis = static_cast<int64_t>(i);
    found.length = length.dim.value();
  };
  if (part.empty() && single.empty()) {
    found.kind = Blocks::kTensor;
  } else if (part.empty() && single.size() == 1) {
    found.kind = Blocks::kAxis;
    found.axis = static_cast<int64_t>(single[0]);
  } else if (part.size() == 1 && whole.empty()) {
    run_along(part[0]);
  } else if (part.empty() && whole.size() == 1) {
    run_along(whole[0]);
  }
  return found;
}

Attrs attributes_of(const Blocks& blocks) {
  if (blocks.kind == Blocks::kTensor) return {};
  if (blocks.kind == Blocks::kAxis) return {{"axis", blocks.axis}};
  return {{"axis", blocks.axis}, {"block_size", blocks.length}};
}

Value* scales_for(C& c, const Blocks& blocks, Value* scale) {
  if (blocks.kind == Blocks::kTensor) return c.reshape(scale, SymInts{});
  if (blocks.kind == Blocks::kAxis) return c.reshape(scale, {SymInt(-1)});
  return c.reshape(scale, blocks.scale_sizes);
}

/// Sizes in which each axis with runs is two: how many, and how long they are.
SymInts split_sizes(C& c, Value* x, const SymInts& block, bool keep) {
  SymInts sizes;
  for (size_t i = 0; i < block.size(); ++i) {
    const SymInt size = c.size(x, static_cast<int64_t>(i));
    const bool all = block[i].dim.equals(size.dim) || block[i].is(-1);
    if (all || block[i].is(1)) {
      sizes.push_back(all && !keep ? SymInt(1) : size);
      continue;
    }
    sizes.push_back(c.floor_div(size, block[i]));
    sizes.push_back(keep ? block[i] : SymInt(1));
  }
  return sizes;
}

bool all_zero(C& c, Value* value) {
  const Tensor* constant = c.b.constant_value(value);
  std::optional<Tensor> held;
  if (constant == nullptr && value->initializer() != nullptr) {
    auto read = value->initializer()->value(c.b.storage());
    if (!read) return false;
    held = *std::move(read);
    constant = &*held;
  }
  if (constant == nullptr || constant->size() > (1 << 24)) return false;
  for (int64_t i = 0; i < constant->size(); ++i)
    if (constant->get_double(i) != 0) return false;
  return true;
}

/// A weight whose numbers fit 4 bits, in 4 bits.
Value* narrowed(C& c, Value* q, double low, double high) {
  const bool is_signed = low < 0;
  if (low < -8 || high > (is_signed ? 7 : 15) || q->initializer() == nullptr) return q;
  auto wide = q->initializer()->value(c.b.storage());
  const DType type = is_signed ? DType::kInt4 : DType::kUInt4;
  if (!wide || !is_integer(wide->dtype())) return q;
  const Ints dims(wide->dims().span().begin(), wide->dims().span().end());
  auto narrow = Tensor::allocate(type, dims);
  if (!narrow) return q;
  for (int64_t i = 0; i < wide->size(); ++i) {
    const int64_t number = wide->get_int64(i);
    if (number < (is_signed ? -8 : 0) || number > (is_signed ? 7 : 15)) return q;
    narrow->set_int64(i, number);
  }
  return c.b.weight(*narrow, std::string(q->name()) + ".4bit");
}

Value* dequantized(C& c, Value* q, const SymInts& block, Value* scale, Value* zero, DType out,
                   double low, double high) {
  const Blocks blocks = blocks_of(c, q, block);
  if (zero && all_zero(c, zero)) zero = nullptr;
  const bool whole_zero = zero == nullptr || is_integer(c.dtype(zero));
  const DType type = c.dtype(q);
  if (blocks.kind != Blocks::kOther && whole_zero && is_integer(type) && bytes_of(type) <= 4 &&
      (is_float(out) && out != DType::kFloat64)) {
    Value* narrow = narrowed(c, q, low, high);
    scale = c.cast(scales_for(c, blocks, scale), out);
    if (zero) zero = c.cast(scales_for(c, blocks, zero), c.dtype(narrow));
    return c.op("DequantizeLinear", {narrow, scale, zero}, attributes_of(blocks));
  }
  const SymInts sizes = c.sizes(q), split = split_sizes(c, q, block, true),
                shared = split_sizes(c, q, block, false);
  Value* y = c.cast(c.reshape(q, split), out);
  if (zero) y = c.sub(y, c.cast(c.reshape(zero, shared), out));
  return c.reshape(c.mul(y, c.cast(c.reshape(scale, shared), out)), sizes);
}

Value* quantized(C& c, Value* x, const SymInts& block, Value* scale, Value* zero, DType type,
                 double low, double high) {
  const SymInts sizes = c.sizes(x), split = split_sizes(c, x, block, true),
                shared = split_sizes(c, x, block, false);
  // Rounded as torch does it, by the reciprocal: QuantizeLinear divides.
  scale = c.reshape(c.cast(scale, c.dtype(x)), shared);
  Value* y = c.op("Round", {c.mul(c.reshape(x, split), c.div(c.like(1, scale), scale))});
  if (zero) y = c.add(y, c.cast(c.reshape(zero, shared), c.dtype(x)));
  y = c.op("Clip", {y, c.like(low, y), c.like(high, y)});
  return c.cast(c.reshape(y, sizes), type);
}

void quantize_affine(C& c) {
  Value* x = c.x("input");
  const DType type = c.dtype("output_dtype").value_or(DType::kInt8);
  const auto [low, high] = range_of(c, type);
  c.out(quantized(c, x, c.syms("block_size"), c.x("scale"), c.opt("zero_point"), type, low, high));
}

void dequantize_affine(C& c) {
  Value* q = c.x("input");
  const auto [low, high] = range_of(c, c.dtype(q));
  c.out(dequantized(c, q, c.syms("block_size"), c.x("scale"), c.opt("zero_point"),
                    c.dtype("output_dtype").value_or(DType::kFloat32), low, high));
}

/// Smallest and largest value of each block, with 0 between them.
std::pair<Value*, Value*> bounds(C& c, Value* x, Ints axes, bool keep) {
  Value* zero = c.like(0, x);
  return {c.op("Min", {c.reduce("ReduceMin", x, axes, keep), zero}),
          c.op("Max", {c.reduce("ReduceMax", x, axes, keep), zero})};
}

/// Of steps from `low` to `high` around 0 that reach the value of the largest size.
Value* symmetric_scale(C& c, Value* least, Value* most, double low, double high, double eps) {
  Value* largest = c.op("Max", {c.op("Neg", {least}), most});
  return c.op("Max", {c.div(largest, c.like((high - low) / 2, most)), c.like(eps, most)});
}

/// Scale and zero point of steps from `low` to `high` that reach from the least to the largest
/// value.
std::pair<Value*, Value*> asymmetric(C& c, Value* least, Value* most, double low, double high,
                                     double eps) {
  Value* scale =
      c.op("Max", {c.div(c.sub(most, least), c.like(high - low, most)), c.like(eps, most)});
  Value* zero = c.sub(c.like(low, most), c.op("Round", {c.div(least, scale)}));
  return {scale, c.op("Clip", {zero, c.like(low, most), c.like(high, most)})};
}

void choose_qparams_affine(C& c) {
  Value* x = c.x("input");
  const SymInts block = c.syms("block_size");
  const DType target = c.dtype("target_dtype").value_or(DType::kInt8), own = c.dtype(x);
  const auto [low, high] = range_of(c, target);
  const SymInts split = split_sizes(c, x, block, true);
  Ints axes;
  int64_t at = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    const SymInt size = c.size(x, static_cast<int64_t>(i));
    const bool all = block[i].dim.equals(size.dim) || block[i].is(-1);
    if (!all && !block[i].is(1)) ++at;
    if (all || !block[i].is(1)) axes.push_back(at);
    ++at;
  }
  const bool keep = c.flag("keepdim");
  const auto [least, most] = bounds(c, c.reshape(x, split), axes, keep);
  const double eps = c.given("eps") ? c.real("eps")
                     : own == DType::kFloat16
                         ? 6.103515625e-05
                         : static_cast<double>(std::numeric_limits<float>::min());
  const std::string kind = c.text("mapping_type");
  Value *scale = nullptr, *zero = nullptr;
  if (kind == "SYMMETRIC") {
    scale = symmetric_scale(c, least, most, low, high, eps);
  } else if (kind == "SYMMETRIC_NO_CLIPPING_ERR") {
    scale = c.op("Max", {c.div(least, c.like(low, x)), c.div(most, c.like(high, x))});
    scale = c.op("Max", {scale, c.like(eps, scale)});
  } else if (kind == "ASYMMETRIC") {
    std::tie(scale, zero) = asymmetric(c, least, most, low, high, eps);
  } else {
    return c.refuse("quantisation parameters of the kind \"" + kind + "\"");
  }
  if (zero == nullptr) {
    zero = c.mul(scale, c.like(0, scale));
    zero = c.add(zero, c.like(std::trunc((high + low + 1) / 2), zero));
  }
  if (keep) {
    const SymInts scales = blocks_of(c, x, block).scale_sizes;
    scale = c.reshape(scale, scales);
    zero = c.reshape(zero, scales);
  }
  c.out(c.cast(scale, c.dtype("scale_dtype").value_or(own)));
  c.out(c.cast(zero,
               c.dtype("zero_point_dtype").value_or(kind == "ASYMMETRIC" ? DType::kInt32 : own)));
}

/// Scale (double) and zero point (int64) of a whole tensor, one element each.
void choose_qparams(C& c) {
  Value* x = c.cast(c.x("input"), DType::kFloat32);
  const double low = c.real("quant_min"), high = c.real("quant_max");
  Ints axes;
  for (int64_t i = 0; i < c.rank(x); ++i) axes.push_back(i);
  const auto [least, most] = bounds(c, x, axes, false);
  Value *scale = nullptr, *zero = nullptr;
  if (c.detail()[0] == 's') {
    scale = symmetric_scale(c, least, most, low, high, c.real("eps"));
    zero = c.scalar(c.dtype("dtype") == DType::kUInt8 ? 128 : 0, DType::kInt64);
  } else {
    std::tie(scale, zero) = asymmetric(c, least, most, low, high, c.real("eps"));
    zero = c.cast(zero, DType::kInt64);
  }
  c.out(c.reshape(c.cast(scale, DType::kFloat64), {SymInt(1)}));
  c.out(c.reshape(zero, {SymInt(1)}));
}

/// Of each row: scale and zero point with a last axis of 1.
void choose_per_token(C& c) {
  Value* x = c.x("input");
  if (c.detail()[0] == 's') {
    Value* largest = c.reduce("ReduceMax", c.op("Abs", {x}), {-1}, true);
    if (c.dtype(x) == DType::kFloat16) largest = c.cast(largest, DType::kFloat32);
    Value* scale = c.div(c.op("Max", {largest, c.like(1e-5, largest)}), c.like(127, largest));
    c.out(scale);
    return c.out(c.mul(scale, c.like(0, scale)));
  }
  const auto [least, most] = bounds(c, x, {-1}, true);
  Value* scale = c.div(c.sub(most, least), c.like(255, x));
  scale = c.op("Max", {scale, c.like(std::numeric_limits<float>::epsilon(), scale)});
  Value *low = c.div(least, scale), *high = c.div(most, scale);
  Value* errors = c.add(c.add(c.like(-128, x), low), c.add(c.like(127, x), high));
  Value* zero = c.where(c.op("Greater", {errors, c.like(0, errors)}), c.sub(c.like(-128, x), low),
                        c.sub(c.like(127, x), high));
  zero = c.op("Round", {c.op("Clip", {zero, c.like(-128, zero), c.like(127, zero)})});
  c.out(c.cast(scale, DType::kFloat64));
  c.out(c.cast(zero, DType::kInt64));
}

/// Runs along the last axis: a token's whole row, or groups of it.
SymInts last_axis_blocks(C& c, Value* x) {
  SymInts block;
  for (int64_t i = 0; i < c.rank(x); ++i) block.push_back(SymInt(1));
  if (block.empty()) return block;
  SymInt last = c.size(x, -1);
  if (c.has_arg("group_size")) {
    const int64_t group = c.integer("group_size");
    if (!last.is_number() || group <= last.dim.value()) last = SymInt(group);
  }
  block.back() = last;
  return block;
}

void quantize_runs(C& c) {
  Value* x = c.x("input");
  const DType type = c.dtype("dtype").value_or(DType::kInt8);
  const auto [low, high] = range_of(c, type);
  c.out(quantized(c, x, last_axis_blocks(c, x), c.x(scale_name(c)), c.opt(zero_name(c)), type, low,
                  high));
}

void dequantize_runs(C& c) {
  Value* q = c.x("input");
  const auto [low, high] = range_of(c, c.dtype(q));
  c.out(dequantized(c, q, last_axis_blocks(c, q), c.x(scale_name(c)), c.opt(zero_name(c)),
                    c.dtype("output_dtype").value_or(DType::kFloat32), low, high));
}

void convert_type(C& c) { c.out(c.cast(c.x("input"), c.dtype("dtype").value_or(DType::kFloat32))); }

void float8_scaled(C& c) {
  const bool back = c.detail()[0] == 'd';
  const DType type = c.dtype(back ? "output_dtype" : "float8_dtype")
                         .value_or(back ? DType::kFloat32 : DType::kFloat8E4M3FN);
  Value* x = c.cast(c.x("tensor"), DType::kFloat32);
  Value* scale = c.cast(c.x("scale"), DType::kFloat32);
  if (c.has_rank(scale) && c.has_rank(x) && c.rank(scale) == c.rank(x))
    for (int64_t i = 0; i < c.rank(x); ++i)
      if (c.known(scale, i) != 1 && !c.size(scale, i).dim.equals(c.size(x, i).dim))
        return c.refuse("float8 with one scale for each block");
  if (back) return c.out(c.cast(c.mul(x, scale), type));
  const double limit = type == DType::kFloat8E5M2 ? 57344 : 448;
  Value* y = c.div(x, scale);
  c.out(c.cast(c.op("Clip", {y, c.like(-limit, y), c.like(limit, y)}), type));
}

void int_matmul(C& c) {
  Value* y = c.op("MatMulInteger",
                  {c.x(c.has_arg("a") ? "a" : "self"), c.x(c.has_arg("b") ? "b" : "mat2")});
  if (!c.has_arg("scales1")) return c.out(y);
  Value* scale = c.x("scales1");
  c.out(c.mul(c.cast(y, c.dtype(scale)), scale));
}

/// A product of matrices of float8 with a scale for each tensor, or for each row and column.
void scaled_matmul(C& c) {
  Value *a = c.cast(c.x("self"), DType::kFloat32), *b = c.cast(c.x("mat2"), DType::kFloat32);
  Value *of_a = c.x("scale_a"), *of_b = c.x("scale_b");
  const auto fits = [&](Value* scale, int64_t axis) {
    return c.rank(scale) < 2 || c.known(scale, axis) == 1;
  };
  if (!fits(of_a, 1) || !fits(of_b, 0)) return c.refuse("a product with scales of blocks");
  if (c.given("scale_result")) return c.refuse("a product whose result is scaled");
  Value* y = c.mul(c.mul(c.op("MatMul", {a, b}), of_a), of_b);
  if (c.given("bias")) y = c.add(y, c.cast(c.x("bias"), DType::kFloat32));
  c.out(c.cast(y, c.dtype("out_dtype").value_or(c.type("self"))));
}

/// self @ mat2.T * scales, of int8 weights.
void weight_int8(C& c) {
  Value *x = c.x("self"), *w = c.cast(c.x("mat2"), c.dtype(x));
  c.out(c.mul(c.op("MatMul", {x, c.swap(w, -1, -2)}), c.x("scales")));
}

constexpr Row kQuantizationRows[] = {
    {"quantized_decomposed::quantize_per_tensor(Tensor input, float scale, int zero_point, int "
     "quant_min, int quant_max, ScalarType dtype) -> Tensor",
     quantize},
    {"quantized_decomposed::quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor "
     "zero_point, int quant_min, int quant_max, ScalarType dtype) -> Tensor",
     quantize},
    {"quantized_decomposed::quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor "
     "zero_point, Tensor quant_min, Tensor quant_max, ScalarType dtype) -> Tensor",
     quantize},
    {"quantized_decomposed::quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, "
     "int axis, int quant_min, int quant_max, ScalarType dtype) -> Tensor",
     quantize},
    {"quantized_decomposed::dequantize_per_tensor(Tensor input, float scale, int zero_point, int "
     "quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
     dequantize},
    {"quantized_decomposed::dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor "
     "zero_point, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) "
     "-> Tensor",
     dequantize},
    {"quantized_decomposed::dequantize_per_channel(Tensor input, Tensor scales, Tensor? "
     "zero_points, int axis, int quant_min, int quant_max, ScalarType dtype, *, ScalarType? "
     "out_dtype=None) -> Tensor",
     dequantize},
    {"quantized_decomposed::dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor "
     "zero_point, Tensor quant_min, Tensor quant_max, ScalarType dtype, *, ScalarType? "
     "out_dtype=None) -> Tensor",
     dequantize},
    {"quantized_decomposed::choose_qparams.tensor(Tensor input, int quant_min, int quant_max, "
     "float "
     "eps, ScalarType dtype) -> (Tensor, Tensor)",
     choose_qparams},
    {"quantized_decomposed::choose_qparams_symmetric.tensor(Tensor input, int quant_min, int "
     "quant_max, float eps, ScalarType dtype) -> (Tensor, Tensor)",
     choose_qparams, "symmetric"},
    {"quantized_decomposed::choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, "
     "Tensor)",
     choose_per_token, "symmetric"},
    {"quantized_decomposed::choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype) -> "
     "(Tensor, Tensor)",
     choose_per_token},
    {"quantized_decomposed::_choose_qparams_per_token_asymmetric_impl(Tensor input, ScalarType "
     "dtype) -> (Tensor, Tensor)",
     choose_per_token},
    {"quantized_decomposed::quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, "
     "int "
     "quant_min, int quant_max, ScalarType dtype) -> Tensor",
     quantize_runs},
    {"quantized_decomposed::dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, "
     "int quant_min, int quant_max, ScalarType dtype, ScalarType output_dtype) -> Tensor",
     dequantize_runs},
    {"quantized_decomposed::quantize_per_channel_group(Tensor input, Tensor scales, Tensor "
     "zero_points, int quant_min, int quant_max, ScalarType dtype, int group_size) -> Tensor",
     quantize_runs},
    {"quantized_decomposed::dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? "
     "zero_points, int quant_min, int quant_max, ScalarType dtype, int group_size, ScalarType "
     "output_dtype) -> Tensor",
     dequantize_runs},
    {"quantized_decomposed::convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor",
     convert_type},
    {"fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int "
     "quant_max) -> Tensor",
     fake_quantize},
    {"fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, "
     "int quant_min, int quant_max) -> Tensor",
     fake_quantize},
    {"fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int "
     "quant_min, int quant_max) -> Tensor",
     fake_quantize},
    {"torchao::choose_qparams_affine(Tensor? input, str mapping_type, SymInt[] block_size, "
     "ScalarType target_dtype, Scalar? quant_min=None, Scalar? quant_max=None, float? eps=None, "
     "ScalarType? scale_dtype=None, ScalarType? zero_point_dtype=None, bool keepdim=False) -> "
     "(Tensor, Tensor)",
     choose_qparams_affine},
    {"torchao::quantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? "
     "zero_point, "
     "ScalarType output_dtype, Scalar? quant_min=None, Scalar? quant_max=None) -> Tensor",
     quantize_affine},
    {"torchao::dequantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? "
     "zero_point, ScalarType input_dtype, Scalar? quant_min=None, Scalar? quant_max=None, "
     "ScalarType? output_dtype=None) -> Tensor",
     dequantize_affine},
    {"torchao::quantize_affine_float8_non_decomposed(Tensor tensor, Tensor scale, ScalarType? "
     "float8_dtype=None) -> Tensor",
     float8_scaled, "q"},
    {"torchao::dequantize_affine_float8_non_decomposed(Tensor tensor, Tensor scale, ScalarType? "
     "output_dtype=None) -> Tensor",
     float8_scaled, "d"},
    {"torchao::int_matmul(Tensor a, Tensor b) -> Tensor", int_matmul},
    {"torchao::int_scaled_matmul(Tensor a, Tensor b, Tensor scales1) -> Tensor", int_matmul},
    {"_int_mm(Tensor self, Tensor mat2) -> Tensor", int_matmul},
    {"_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, "
     "Tensor? scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor",
     scaled_matmul},
    {"_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor", weight_int8},
};

}  // namespace

std::span<const Row> quantization_rows() { return kQuantizationRows; }

}  // namespace tombolo::pytorch
