// Quantised tensors and modules. A quantised tensor is its integers with scale and zero point; an
// operator on it is DequantizeLinear, the operator on real numbers, QuantizeLinear: what ONNX calls
// the Q/DQ form, which runtimes fuse again.

#include <cmath>

#include "formats/pytorch/script/builtins.h"

namespace tombolo::script {

namespace {

using AKind = Arg::Kind;
using pytorch::Quantization;
using QuantizationRef = std::shared_ptr<const Quantization>;

constexpr const char* kPacked = "packed weights";

std::optional<double> known_number(Interpreter& in, const Item& item) {
  if (item.is_tensor()) {
    const Tensor* constant = in.context().b.constant_value(in.context().read(item.arg.tensor));
    if (constant && constant->size() == 1) return constant->get_double(0);
    return std::nullopt;
  }
  if (!item.is_number() || item.arg.computed) return std::nullopt;
  if (item.arg.kind == AKind::kFloat) return item.arg.real;
  if (!item.arg.integer.is_number()) return std::nullopt;
  return static_cast<double>(item.arg.integer.dim.value());
}

/// ONNX's type of a quantised type's integers.
Result<DType> stored_type(const Item& item) {
  if (item.is_arg(AKind::kDType)) return item.arg.dtype;
  if (item.is_arg(AKind::kInt) && item.arg.integer.is_number()) {
    const torch::ElementType* type = torch::element_type_of_number(item.arg.integer.dim.value());
    if (type && type->quantised && bytes_of(type->dtype) != 0) return type->dtype;
  }
  return unsupported("quantisation to this type");
}

Result<QuantizationRef> per_tensor(Interpreter& in, const Item& scale, const Item& zero,
                                   DType type) {
  AtenContext& c = in.context();
  auto made = std::make_shared<Quantization>();
  const auto known_scale = known_number(in, scale), known_zero = known_number(in, zero);
  made->scale = known_scale ? c.b.scalar(*known_scale, DType::kFloat32)
                : scale.is_tensor()
                    ? c.reshape(c.cast(c.read(scale.arg.tensor), DType::kFloat32), {})
                    : c.operand_of(scale.arg, DType::kFloat32);
  if (known_zero) {
    TRY(Tensor point, Tensor::allocate(type, {}));
    point.set_int64(0, static_cast<int64_t>(*known_zero));
    made->zero_point = c.b.constant(point, "zero_point");
  } else {
    made->zero_point = zero.is_tensor() ? c.reshape(c.cast(c.read(zero.arg.tensor), type), {})
                                        : c.operand_of(zero.arg, type);
  }
  return QuantizationRef(std::move(made));
}

Answer quantize_per_tensor(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 4 || !args[0].is_tensor()) return not_mine();
  TRY(DType type, stored_type(args[3]));
  TRY(QuantizationRef how, per_tensor(in, args[1], args[2], type));
  TRY(Item item, in.requantized(args[0], how));
  return answer(item);
}
Answer quantize_per_channel(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 5 || !args[1].is_tensor() || !args[2].is_tensor()) return not_mine();
  TRY(DType type, stored_type(args[4]));
  AtenContext& c = in.context();
  auto made = std::make_shared<Quantization>();
  made->scale = c.cast(c.read(args[1].arg.tensor), DType::kFloat32);
  made->zero_point = c.cast(c.read(args[2].arg.tensor), type);
  made->axis = static_cast<int64_t>(known_number(in, args[3]).value_or(0));
  TRY(Item item, in.requantized(args[0], made));
  return answer(item);
}
Answer dequantize(Interpreter& in, Items& args, NamedItems&) {
  if (args.empty()) return not_mine();
  TRY(Item item, in.dequantized(args[0]));
  return answer(item);
}
Answer int_repr(Interpreter& in, Items& args, NamedItems&) {
  if (args.empty() || !args[0].is_tensor() || !args[0].arg.tensor->quantization) return not_mine();
  return answer(Item(Arg(in.context().cell(in.context().read(args[0].arg.tensor)))));
}
Answer is_quantized(Interpreter&, Items& args, NamedItems&) {
  if (args.empty() || !args[0].is_tensor()) return not_mine();
  return answer(Item(Arg(args[0].arg.tensor->quantization != nullptr)));
}
Answer q_scale(Interpreter& in, Items& args, NamedItems&) {
  if (args.empty() || !args[0].is_tensor() || !args[0].arg.tensor->quantization) return not_mine();
  Value* scale = args[0].arg.tensor->quantization->scale;
  if (const Tensor* constant = in.context().b.constant_value(scale);
      constant && constant->size() == 1)
    return answer(Item(Arg(constant->get_double(0))));
  Arg arg;
  arg.kind = AKind::kFloat;
  arg.computed = in.context().cast(scale, DType::kFloat64);
  return answer(Item(std::move(arg)));
}
Answer q_zero_point(Interpreter& in, Items& args, NamedItems&) {
  if (args.empty() || !args[0].is_tensor() || !args[0].arg.tensor->quantization) return not_mine();
  Value* point = args[0].arg.tensor->quantization->zero_point;
  if (const Tensor* constant = in.context().b.constant_value(point);
      constant && constant->size() == 1)
    return answer(Item(Arg(constant->get_int64(0))));
  return answer(Item(Arg(SymInt(SymDim(), in.context().cast(point, DType::kInt64)))));
}

// ---- packed weights ----

Item packed(std::map<std::string, Item, std::less<>> parts) {
  Item object = Item::of(Item::Kind::kObject, std::make_shared<Box>());
  object.box->type_name = kPacked;
  object.box->attributes = std::move(parts);
  return object;
}
Item part(const Item& object, std::string_view name) {
  const auto found = object.box->attributes.find(name);
  return found == object.box->attributes.end() ? Item() : found->second;
}

/// Packed weights as their parts, whether the program packed them or the archive holds them.
Result<Item> unpack(Interpreter& in, const Item& object) {
  if (object.kind != Item::Kind::kObject)
    return unsupported(kind_of(object) + " as packed weights");
  if (object.box->type_name == kPacked) return object;
  const auto found = object.box->attributes.find("__state__");
  if (found == object.box->attributes.end())
    return unsupported("packed weights of class " + object.box->type_name);
  Item state = found->second;
  if (state.kind == Item::Kind::kLazy) {
    TRY(state, in.lazy(*state.lazy, object.box->path));
  }
  // All tensors and integers of the state, in order, however they are nested.
  Items tensors;
  std::vector<int64_t> numbers;
  bool in_tensor = false;
  std::vector<Item> stack = {state};
  Items flat;
  const auto walk = [&](const Item& item, const auto& self) -> void {
    if (item.is_sequence()) {
      for (const Item& inner : item.box->items) self(inner, self);
    } else {
      flat.push_back(item);
    }
  };
  walk(state, walk);
  Item weight, bias;
  for (const Item& item : flat) {
    if (item.is_arg(AKind::kInt)) {
      numbers.push_back(item.arg.integer.dim.value());
    } else if (item.is_tensor() && item.arg.tensor->quantization) {
      weight = item;
    } else if (item.is_tensor() && item.arg.tensor->dtype == DType::kInt16) {
      // Version 2 kept its numbers in a tensor.
      in_tensor = true;
      const Constant* constant = in.context().read(item.arg.tensor)->initializer();
      if (constant == nullptr) return unsupported("packed weights whose form is unknown");
      TRY(Tensor values, constant->value(in.context().b.storage()));
      for (int64_t i = 0; i < values.size(); ++i) numbers.push_back(values.get_int64(i));
    } else if (item.is_tensor() && is_float(item.arg.tensor->dtype)) {
      bias = item;
    }
  }
  if (!weight.is_tensor()) return unsupported("packed weights whose form is unknown");
  std::map<std::string, Item, std::less<>> parts = {{"weight", weight}, {"bias", bias}};
  const bool convolution = object.box->type_name.find("Conv") != std::string::npos;
  if (convolution) {
    // [version,] spatial dims, stride, padding, dilation, output padding, groups, transposed
    size_t at = !in_tensor && numbers.size() > 1 && numbers[0] == 3 && state.is_sequence() &&
                        !state.box->items.empty() && state.box->items[0].is_arg(AKind::kInt)
                    ? 1
                    : 0;
    const int64_t spatial = at < numbers.size() ? numbers[at++] : 0;
    if (spatial < 1 || spatial > 3 || numbers.size() < at + static_cast<size_t>(4 * spatial) + 2)
      return unsupported("packed weights whose form is unknown");
    for (const char* name : {"stride", "padding", "dilation", "output_padding"}) {
      Items list;
      for (int64_t i = 0; i < spatial; ++i) list.emplace_back(Arg(numbers[at++]));
      parts[name] = Item::list(std::move(list));
    }
    parts["groups"] = Item(Arg(numbers[at++]));
    parts["transposed"] = Item(Arg((numbers[at] & 1) != 0));
  }
  return packed(std::move(parts));
}

Answer linear_prepack(Interpreter&, Items& args, NamedItems&) {
  if (args.empty()) return not_mine();
  return answer(packed({{"weight", args[0]}, {"bias", args.size() > 1 ? args[1] : Item()}}));
}
Answer conv_prepack(Interpreter&, Items& args, NamedItems&) {
  if (args.size() < 6) return not_mine();
  // Transposed ones have output_padding before dilation.
  const bool transposed = args.size() == 7;
  return answer(packed({{"weight", args[0]},
                        {"bias", args[1]},
                        {"stride", args[2]},
                        {"padding", args[3]},
                        {"output_padding", transposed ? args[4] : Item()},
                        {"dilation", args[transposed ? 5 : 4]},
                        {"groups", args[transposed ? 6 : 5]},
                        {"transposed", Item(Arg(transposed))}}));
}
Answer unpack_weights(Interpreter& in, Items& args, NamedItems&) {
  if (args.empty()) return not_mine();
  TRY(Item object, unpack(in, args[0]));
  return answer(Item::tuple({part(object, "weight"), part(object, "bias")}));
}

/// The result of an operator on real numbers, with the activation that is part of it, quantised.
Answer finish(Interpreter& in, Item item, const Item& scale, const Item& zero, const Item& like,
              bool relu) {
  if (relu) {
    TRY(item, in.aten("relu", {item}));
  }
  const DType type =
      like.is_tensor() && like.arg.tensor->quantization ? like.arg.tensor->dtype : DType::kUInt8;
  TRY(QuantizationRef how, per_tensor(in, scale, zero, type));
  TRY(Item quantised, in.requantized(item, how));
  return answer(quantised);
}

template <bool Relu>
Answer linear(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 4) return not_mine();
  TRY(Item object, unpack(in, args[1]));
  TRY(Item x, in.dequantized(args[0]));
  TRY(Item weight, in.dequantized(part(object, "weight")));
  TRY(Item y, in.aten("linear", {x, weight, part(object, "bias")}));
  return finish(in, y, args[2], args[3], args[0], Relu);
}

Result<Item> convolve(Interpreter& in, const Item& x, const Item& object) {
  TRY(Item weight, in.dequantized(part(object, "weight")));
  const auto zeros = [&](const Item& list) {
    return list.is_sequence()
               ? list
               : Item::list(Items(part(object, "stride").box->items.size(), Item(Arg(0))));
  };
  return in.aten("convolution",
                 {x, weight, part(object, "bias"), part(object, "stride"), part(object, "padding"),
                  part(object, "dilation"), part(object, "transposed"),
                  zeros(part(object, "output_padding")), part(object, "groups")});
}
template <bool Relu>
Answer conv(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() == 8) {
    // Before 1.5 stride, padding, dilation and groups were in the call.
    TRY(Item object, unpack(in, args[1]));
    TRY(Item x, in.dequantized(args[0]));
    std::map<std::string, Item, std::less<>> parts = object.box->attributes;
    parts["stride"] = args[2];
    parts["padding"] = args[3];
    parts["dilation"] = args[4];
    parts["groups"] = args[5];
    TRY(Item y, convolve(in, x, packed(std::move(parts))));
    return finish(in, y, args[6], args[7], args[0], Relu);
  }
  if (args.size() != 4) return not_mine();
  TRY(Item object, unpack(in, args[1]));
  TRY(Item x, in.dequantized(args[0]));
  TRY(Item y, convolve(in, x, object));
  return finish(in, y, args[2], args[3], args[0], Relu);
}

template <bool Relu>
Answer linear_dynamic(Interpreter& in, Items& args, NamedItems& named) {
  if (args.size() < 2 || !args[0].is_tensor()) return not_mine();
  AtenContext& c = in.context();
  bool reduce_range = args.size() > 2 && known_number(in, args[2]).value_or(0) != 0;
  for (const auto& [name, item] : named)
    if (name == "reduce_range") reduce_range = known_number(in, item).value_or(0) != 0;
  TRY(Item object, unpack(in, args[1]));
  TRY(Item weight, in.dequantized(part(object, "weight")));
  // The input is quantised to the range that it has: 8 bits, or 7.
  Value* x = c.read(args[0].arg.tensor);
  Value* zero = c.b.scalar(0, DType::kFloat32);
  Value* low = c.op("Min", {c.op("ReduceMin", {x}, {{"keepdims", int64_t{0}}}), zero});
  Value* high = c.op("Max", {c.op("ReduceMax", {x}, {{"keepdims", int64_t{0}}}), zero});
  Value* levels = c.b.scalar(reduce_range ? 127 : 255, DType::kFloat32);
  Value* scale = c.div(c.sub(high, low), levels);
  scale = c.where(c.op("Equal", {scale, zero}), c.b.scalar(0.1, DType::kFloat32), scale);
  Value* point = c.op("Round", {c.op("Neg", {c.div(low, scale)})});
  point = c.op("Clip", {point, zero, levels});
  Value* steps = c.add(c.op("Round", {c.div(x, scale)}), point);
  steps = c.op("Clip", {steps, zero, levels});
  Value* again = c.mul(c.sub(steps, point), scale);
  TRY(Item y, in.aten("linear", {Item(Arg(c.cell(again))), weight, part(object, "bias")}));
  if (Relu) {
    TRY(y, in.aten("relu", {y}));
  }
  return answer(y);
}

/// An operator of two tensors, or of a tensor and a number, with the output's scale and zero point.
template <bool Relu>
Answer binary(Interpreter& in, Items& args, const char* name) {
  if (args.size() < 2) return not_mine();
  TRY(Item a, in.dequantized(args[0]));
  TRY(Item b, in.dequantized(args[1]));
  TRY(Item y, in.aten(name, {a, b}));
  if (args.size() >= 4) return finish(in, y, args[2], args[3], args[0], Relu);
  return not_mine();
}
template <bool Relu>
Answer add(Interpreter& in, Items& args, NamedItems&) {
  return binary<Relu>(in, args, "add");
}
template <bool Relu>
Answer mul(Interpreter& in, Items& args, NamedItems&) {
  return binary<Relu>(in, args, "mul");
}
Answer matmul(Interpreter& in, Items& args, NamedItems&) {
  return binary<false>(in, args, "matmul");
}

/// A product with a number keeps the integers where the number is positive: the scale changes.
Answer mul_scalar(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() < 2 || !args[0].is_tensor() || !args[0].arg.tensor->quantization)
    return not_mine();
  const auto factor = known_number(in, args[1]);
  if (!factor || *factor <= 0)
    return unsupported("a quantised product with a number that is not positive");
  AtenContext& c = in.context();
  auto how = std::make_shared<Quantization>(*args[0].arg.tensor->quantization);
  how->scale = c.mul(how->scale, c.b.scalar(*factor, DType::kFloat32));
  Ref cell = c.cell(c.read(args[0].arg.tensor), args[0].arg.tensor->dtype);
  cell->quantization = std::move(how);
  return answer(Item(Arg(cell)));
}

template <bool Relu>
Answer cat(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() < 2 || !args[0].is_sequence() || args[0].box->items.empty()) return not_mine();
  Items parts;
  for (const Item& item : args[0].box->items) {
    TRY(Item real, in.dequantized(item));
    parts.push_back(std::move(real));
  }
  TRY(Item y, in.aten("cat", {Item::list(parts), args[1]}));
  if (args.size() >= 4 && !args[2].is_none())
    return finish(in, y, args[2], args[3], args[0].box->items[0], Relu);
  TRY(Item again, in.requantized(y, args[0].box->items[0].arg.tensor->quantization));
  return answer(again);
}

/// (x, scale, zero point) of functions of one tensor.
Answer pointwise(Interpreter& in, Items& args, const char* name, size_t extra) {
  if (args.size() < 3 + extra) return not_mine();
  TRY(Item x, in.dequantized(args[0]));
  Items plain = {x};
  for (size_t i = 0; i < extra; ++i) plain.push_back(args[1 + i]);
  TRY(Item y, in.aten(name, std::move(plain)));
  return finish(in, y, args[args.size() - 2], args[args.size() - 1], args[0], false);
}
Answer hardswish(Interpreter& in, Items& args, NamedItems&) {
  return pointwise(in, args, "hardswish", 0);
}
Answer sigmoid(Interpreter& in, Items& args, NamedItems&) {
  return pointwise(in, args, "sigmoid", 0);
}
Answer elu(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() < 3) return not_mine();
  TRY(Item x, in.dequantized(args[0]));
  Items plain = {x};
  for (size_t i = 3; i < args.size(); ++i) plain.push_back(args[i]);
  TRY(Item y, in.aten("elu", std::move(plain)));
  return finish(in, y, args[1], args[2], args[0], false);
}
Answer leaky_relu(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 5) return not_mine();
  TRY(Item x, in.dequantized(args[0]));
  TRY(Item y, in.aten("leaky_relu", {x, args[1]}));
  return finish(in, y, args[3], args[4], args[0], false);
}
Answer softmax(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 4) return not_mine();
  TRY(Item x, in.dequantized(args[0]));
  TRY(Item y, in.aten("softmax.int", {x, args[1]}));
  return finish(in, y, args[2], args[3], args[0], false);
}
Answer relu6(Interpreter& in, Items& args, NamedItems&) {
  TRY(Item item, in.aten("relu6", {args[0]}));
  return answer(item);
}
/// (x, weight, bias, mean, variance, eps, scale, zero point)
template <bool Relu>
Answer batch_norm(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 8) return not_mine();
  TRY(Item x, in.dequantized(args[0]));
  TRY(Item y, in.aten("batch_norm", {x, args[1], args[2], args[3], args[4], Item(Arg(false)),
                                     Item(Arg(0.0)), args[5], Item(Arg(false))}));
  return finish(in, y, args[6], args[7], args[0], Relu);
}
/// Rows of quantised weights: picked as integers, then made numbers.
Result<Item> rows_of(Interpreter& in, const Item& weights, const Item& places) {
  TRY(Item object, unpack(in, weights));
  const Ref& weight = part(object, "weight").arg.tensor;
  AtenContext& c = in.context();
  Value* indices = c.cast(c.read(places.arg.tensor), DType::kInt64);
  const auto rows = [&](Value* of) { return c.op("Gather", {of, indices}, {{"axis", 0}}); };
  const auto column = [&](Value* of) {
    Value* picked = c.cast(rows(of), DType::kFloat32);
    return c.unsqueeze(picked, {c.rank(picked)});
  };
  Value* stored = c.cast(rows(c.read(weight)), DType::kFloat32);
  const pytorch::Quantization& how = *weight->quantization;
  return Item(Arg(c.cell(c.mul(c.sub(stored, column(how.zero_point)), column(how.scale)))));
}

/// (weights, indices)
Answer embedding_byte(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() < 2 || !args[1].is_tensor()) return not_mine();
  TRY(Item rows, rows_of(in, args[0], args[1]));
  return answer(rows);
}

/// (weights, indices, offsets, scale gradients, mode, pruned, factors of samples, mapping, last
/// offset given): the sum of each bag, whatever the mode says.
Answer embedding_bag_byte(Interpreter& in, Items& args, NamedItems& named) {
  static constexpr const char* kNames[] = {"weight",
                                           "indices",
                                           "offsets",
                                           "scale_grad_by_freq",
                                           "mode",
                                           "pruned_weights",
                                           "per_sample_weights",
                                           "compressed_indices_mapping",
                                           "include_last_offset"};
  Items all(std::size(kNames));
  for (size_t i = 0; i < args.size() && i < all.size(); ++i) all[i] = args[i];
  for (const auto& [name, item] : named)
    for (size_t i = 0; i < all.size(); ++i)
      if (name == kNames[i]) all[i] = item;
  if (!all[1].is_tensor()) return not_mine();
  if (known_number(in, all[5]).value_or(0) != 0)
    return unsupported("pruned weights of an embedding");
  const Item &factors = all[6], &offsets = all[2];
  if (in.context().rank(in.context().read(all[1].arg.tensor)) == 2) {
    // Each row of indices is a bag.
    TRY(Item rows, rows_of(in, all[0], all[1]));
    if (factors.is_tensor()) {
      TRY(Item column, in.aten("unsqueeze", {factors, Item(Arg(-1))}));
      TRY(rows, in.aten("mul", {rows, column}));
    }
    TRY(Item sums, in.aten("sum.dim_IntList", {rows, Item::list({Item(Arg(1))})}));
    return answer(sums);
  }
  if (!offsets.is_tensor()) return not_mine();
  TRY(Item object, unpack(in, all[0]));
  TRY(Item weight, in.dequantized(part(object, "weight")));
  const bool last = known_number(in, all[8]).value_or(0) != 0;
  TRY(Item results,
      in.aten("embedding_bag", {weight, all[1], offsets, Item(Arg(false)), Item(Arg(0)),
                                Item(Arg(false)), factors, Item(Arg(last))}));
  return answer(results.box->items[0]);
}

/// (x, normalized shape, weight, bias, eps, scale, zero point)
Answer layer_norm(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 7) return not_mine();
  TRY(Item x, in.dequantized(args[0]));
  TRY(Item y, in.aten("layer_norm", {x, args[1], args[2], args[3], args[4]}));
  return finish(in, y, args[5], args[6], args[0], false);
}
Answer group_norm(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 7) return not_mine();
  TRY(Item x, in.dequantized(args[0]));
  TRY(Item y, in.aten("group_norm", {x, args[1], args[2], args[3], args[4]}));
  return finish(in, y, args[5], args[6], args[0], false);
}

constexpr BuiltinRow kQuantizedRows[] = {
    {"is_quantized", is_quantized},
    {"quantize_per_tensor", quantize_per_tensor},
    {"quantize_per_channel", quantize_per_channel},
    {"dequantize", dequantize},
    {"int_repr", int_repr},
    {"q_scale", q_scale},
    {"q_zero_point", q_zero_point},
    {"quantized::linear_prepack", linear_prepack},
    {"quantized::conv1d_prepack", conv_prepack},
    {"quantized::conv2d_prepack", conv_prepack},
    {"quantized::conv3d_prepack", conv_prepack},
    {"quantized::conv_prepack", conv_prepack},
    {"quantized::conv_transpose1d_prepack", conv_prepack},
    {"quantized::conv_transpose2d_prepack", conv_prepack},
    {"quantized::embedding_byte", embedding_byte},
    {"quantized::embedding_bag_byte", embedding_bag_byte},
    {"quantized::linear_unpack", unpack_weights},
    {"quantized::conv1d_unpack", unpack_weights},
    {"quantized::conv2d_unpack", unpack_weights},
    {"quantized::conv3d_unpack", unpack_weights},
    {"quantized::linear", linear<false>},
    {"quantized::linear_relu", linear<true>},
    {"quantized::linear_dynamic", linear_dynamic<false>},
    {"quantized::linear_relu_dynamic", linear_dynamic<true>},
    {"quantized::conv1d", conv<false>},
    {"quantized::conv1d_relu", conv<true>},
    {"quantized::conv2d", conv<false>},
    {"quantized::conv2d_relu", conv<true>},
    {"quantized::conv3d", conv<false>},
    {"quantized::conv3d_relu", conv<true>},
    {"quantized::conv_transpose1d", conv<false>},
    {"quantized::conv_transpose2d", conv<false>},
    {"quantized::add", add<false>},
    {"quantized::add_relu", add<true>},
    {"quantized::mul", mul<false>},
    {"quantized::mul_relu", mul<true>},
    {"quantized::mul_scalar", mul_scalar},
    {"quantized::matmul", matmul},
    {"quantized::cat", cat<false>},
    {"quantized::cat_relu", cat<true>},
    {"quantized::hardswish", hardswish},
    {"quantized::sigmoid", sigmoid},
    {"quantized::elu", elu},
    {"quantized::leaky_relu", leaky_relu},
    {"quantized::softmax", softmax},
    {"quantized::relu6", relu6},
    {"quantized::batch_norm1d", batch_norm<false>},
    {"quantized::batch_norm2d", batch_norm<false>},
    {"quantized::batch_norm2d_relu", batch_norm<true>},
    {"quantized::batch_norm3d", batch_norm<false>},
    {"quantized::layer_norm", layer_norm},
    {"quantized::group_norm", group_norm},
};

}  // namespace

std::span<const BuiltinRow> quantized_builtins() { return kQuantizedRows; }

Result<Item> Interpreter::dequantized(const Item& item) {
  if (!item.is_tensor() || !item.arg.tensor->quantization) return item;
  const pytorch::Quantization& how = *item.arg.tensor->quantization;
  Value* stored = c.read(item.arg.tensor);
  Value* real = nullptr;
  if (c.b.dtype(how.zero_point) == DType::kFloat32) {
    // ONNX's zero points are integers.
    pytorch::SymInts along(static_cast<size_t>(c.rank(stored)), SymInt(1));
    if (how.axis >= 0) along[static_cast<size_t>(how.axis)] = c.size(how.scale, 0);
    real = c.mul(c.sub(c.cast(stored, DType::kFloat32), c.reshape(how.zero_point, along)),
                 c.reshape(how.scale, along));
  } else if (how.axis >= 0) {
    real = c.op("DequantizeLinear", {stored, how.scale, how.zero_point}, {{"axis", how.axis}});
  } else if (c.b.dtype(stored) == DType::kInt32) {
    real = c.mul(c.cast(c.sub(stored, how.zero_point), DType::kFloat32), how.scale);
  } else {
    real = c.op("DequantizeLinear", {stored, how.scale, how.zero_point});
  }
  return Item(Arg(c.cell(real)));
}

Result<Item> Interpreter::requantized(const Item& item,
                                      const std::shared_ptr<const pytorch::Quantization>& how) {
  if (!item.is_tensor()) return unsupported(kind_of(item) + " to be quantised");
  const DType type = c.b.dtype(how->zero_point);
  Value* real = c.read(item.arg.tensor);
  Value* stored = nullptr;
  if (type == DType::kInt32) {
    stored =
        c.add(c.cast(c.op("Round", {c.div(real, how->scale)}), DType::kInt32), how->zero_point);
  } else if (how->axis >= 0) {
    stored = c.op("QuantizeLinear", {real, how->scale, how->zero_point}, {{"axis", how->axis}});
  } else {
    stored = c.op("QuantizeLinear", {real, how->scale, how->zero_point});
  }
  Ref cell = c.cell(stored, type);
  cell->quantization = how;
  return Item(Arg(cell));
}

}  // namespace tombolo::script
