// Preprocessing layers that compute on numbers.

#include <algorithm>

#include "formats/keras/layer.h"

namespace tombolo::keras {
namespace {

/// A number or (nested) list of numbers as a float constant; rank 0 or 1.
Result<Value*> numbers(LayerCall& call, Json value, double fallback, std::string_view hint) {
  if (value.is_null() || value.as_double()) {
    return call.b.scalar(value.double_or(fallback), call.compute_type());
  }
  while (value.is_array() && value.size() == 1 && value.at(0).is_array()) value = value.at(0);
  std::vector<float> list;
  for (size_t i = 0; i < value.size(); ++i) {
    const auto number = value.at(i).as_double();
    if (!number) return unsupported(std::string(hint) + " is not a list of numbers");
    list.push_back(static_cast<float>(*number));
  }
  const std::vector<int64_t> dims{static_cast<int64_t>(list.size())};
  return call.constant(Tensor::of(DType::kFloat32, dims, std::span<const float>(list)), hint);
}

Status rescaling(LayerCall& call) {
  GraphBuilder& b = call.b;
  TRY(Value * scale, numbers(call, call.config["scale"], 1, "scale"));
  TRY(Value * offset, numbers(call, call.config["offset"], 0, "offset"));
  Value* x = b.cast(call.x(), call.compute_type());
  return call.out(b.op("Add", {b.op("Mul", {x, scale}), offset}));
}

/// (x - mean) / max(sqrt(variance), 1e-7), or its inverse. Statistics are along `axis`, which may
/// be several axes or none.
Status normalization(LayerCall& call) {
  GraphBuilder& b = call.b;
  Value* x = b.cast(call.x(), call.compute_type());
  Tensor statistics[2];
  constexpr std::string_view kNames[2] = {"mean", "variance"};
  for (size_t i = 0; i < 2; ++i) {
    const Json given = call.config[kNames[i]];
    if (given.is_null()) {
      TRY(statistics[i], call.weight_tensor(kNames[i]));
    } else {
      TRY(Value * value, numbers(call, given, 0, kNames[i]));
      statistics[i] = *b.constant_value(value);
    }
  }
  const Json axis = call.config["axis"];
  std::vector<int64_t> axes;
  if (axis.is_array())
    axes = axis.as_ints().value_or(axes);
  else if (!axis.is_null())
    axes.push_back(axis.int_or(-1));
  Dims dims;
  for (int64_t i = 0; i < call.rank(); ++i) dims.push_back(1);
  for (int64_t one : axes) {
    if (one < 0) one += call.rank();
    if (one < 1 || one >= call.rank()) return not_supported(call, "axis");
    const auto size = b.dim(x, one).constant();
    if (!size) return unsupported("statistics along a free size");
    dims[static_cast<uint32_t>(one)] = *size;
  }
  Value* values[2];
  for (size_t i = 0; i < 2; ++i) {
    TRY(Tensor full, Tensor::allocate(DType::kFloat32, dims.span()));
    const int64_t count = statistics[i].size();
    if (count != 1 && count != full.size())
      return parse_error("the statistics do not fit the axis");
    for (int64_t k = 0; k < full.size(); ++k) {
      full.set_double(k, statistics[i].get_double(count == 1 ? 0 : k));
    }
    values[i] = call.constant(full, kNames[i]);
  }
  Value* deviation = b.op("Max", {b.op("Sqrt", {values[1]}), b.scalar(1e-7, call.compute_type())});
  if (call.flag("invert", false)) {
    return call.out(b.op("Add", {values[0], b.op("Mul", {x, deviation})}));
  }
  return call.out(b.op("Div", {b.op("Sub", {x, values[0]}), deviation}));
}

Status category_encoding(LayerCall& call) {
  GraphBuilder& b = call.b;
  const int64_t tokens = call.config["num_tokens"].int_or(0);
  const std::string_view mode = call.config["output_mode"].string_or("multi_hot");
  if (tokens < 1) return not_supported(call, "num_tokens");
  if (call.inputs.size() > 1 || call.kwargs.count("count_weights")) {
    return unsupported("count_weights are not supported");
  }
  Value* x = b.cast(call.x(), DType::kInt64);
  if (mode == "one_hot" && call.rank() > 1 && b.dim(x, -1).constant() == 1) {
    x = b.squeeze(x, {-1});
  }
  const DType type = call.compute_type();
  TRY(Tensor ends, Tensor::allocate(type, std::vector<int64_t>{2}));
  ends.set_double(0, 0);
  ends.set_double(1, 1);
  Value* hot = b.op("OneHot", {x, b.ints({tokens}), b.constant(ends, "off_on")}, {{"axis", -1}});
  SymShape shape = b.shape(x);
  shape.emplace_back(tokens);
  b.set_type(hot, type, shape);
  if (mode == "one_hot") return call.out(hot);
  if (call.rank() < 2) return unsupported("encoding of single tokens");
  if (mode == "multi_hot") {
    return call.out(b.op("ReduceMax", {hot, b.ints({-2})}, {{"keepdims", 0}}));
  }
  if (mode == "count") {
    return call.out(b.op("ReduceSum", {hot, b.ints({-2})}, {{"keepdims", 0}}));
  }
  return not_supported(call, "output_mode");
}

/// The number of boundaries at or below x.
Status discretization(LayerCall& call) {
  GraphBuilder& b = call.b;
  if (call.config["output_mode"].string_or("int") != "int") {
    return not_supported(call, "output_mode");
  }
  const Json bins = call.config["bin_boundaries"];
  if (!bins.is_array()) return unsupported("boundaries that were learned are not supported");
  TRY(Value * list, numbers(call, bins, 0, "bin_boundaries"));
  Value* x = b.unsqueeze(b.cast(call.x(), DType::kFloat32), {-1});
  Value* above = b.cast(b.op("GreaterOrEqual", {x, list}), DType::kInt64);
  return call.out(b.op("ReduceSum", {above, b.ints({-1})}, {{"keepdims", 0}}));
}

/// Random augmentation does nothing at inference.
Status unchanged(LayerCall& call) { return call.out(call.x()); }

constexpr LayerRow kPreprocessingRows[] = {
    {"Rescaling", rescaling},
    {"Normalization", normalization},
    {"CategoryEncoding", category_encoding},
    {"Discretization", discretization},
    {"RandomFlip", unchanged},
    {"RandomRotation", unchanged},
    {"RandomZoom", unchanged},
    {"RandomTranslation", unchanged},
    {"RandomContrast", unchanged},
    {"RandomBrightness", unchanged},
};

}  // namespace

std::span<const LayerRow> preprocessing_layers() { return kPreprocessingRows; }

}  // namespace tombolo::keras
