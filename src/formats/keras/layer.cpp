#include "formats/keras/layer.h"

#include <algorithm>

#include "base/float_formats.h"

namespace tombolo::keras {
namespace {

using Family = std::span<const LayerRow> (*)();
constexpr Family kFamilies[] = {core_layers,         activation_layers,    convolution_layers,
                                pooling_layers,      normalization_layers, reshaping_layers,
                                merging_layers,      recurrent_layers,     attention_layers,
                                preprocessing_layers};

}  // namespace

const LayerRow* find_layer(std::string_view class_name) {
  for (const Family family : kFamilies)
    for (const LayerRow& row : family())
      if (row.class_name == class_name) return &row;
  return nullptr;
}

const LayerRow* find_operation(std::string_view class_name) {
  for (const LayerRow& row : operation_rows())
    if (row.class_name == class_name) return &row;
  return nullptr;
}

std::vector<const LayerRow*> all_layers() {
  std::vector<const LayerRow*> rows;
  for (const Family family : kFamilies)
    for (const LayerRow& row : family()) rows.push_back(&row);
  std::sort(rows.begin(), rows.end(),
            [](const LayerRow* a, const LayerRow* b) { return a->class_name < b->class_name; });
  return rows;
}

Error not_supported(const LayerCall& call, std::string_view attribute) {
  return unsupported(std::string(attribute) + " = " + call.config[attribute].to_string() +
                     " is not supported");
}

DType LayerCall::compute_type() const {
  // A policy such as mixed_float16 keeps variables in one type and computes in another.
  const Json policy = config["dtype"];
  std::string_view name = policy.string_or("");
  if (policy.is_object()) name = policy["config"]["name"].string_or("");
  if (name == "mixed_float16") return DType::kFloat16;
  if (name == "mixed_bfloat16") return DType::kBFloat16;
  return dtype_from_user_name(name).value_or(DType::kFloat32);
}

Result<Tensor> LayerCall::weight_tensor(std::string_view weight_name) {
  return weights.take(weight_name);
}

Value* LayerCall::constant(const Tensor& tensor, std::string_view hint) {
  const DType to = compute_type();
  if (tensor.dtype() == to || !is_float(tensor.dtype())) return b.constant(tensor, hint);
  auto converted = Tensor::allocate(to, tensor.dims().span());
  if (!converted) return b.cast(b.constant(tensor, hint), to);
  for (int64_t i = 0; i < tensor.size(); ++i) converted->set_double(i, tensor.get_double(i));
  return b.constant(*converted, hint);
}

Result<Value*> LayerCall::weight(std::string_view weight_name) {
  TRY(const Tensor tensor, weight_tensor(weight_name));
  return constant(tensor, weight_name);
}

Result<std::vector<int64_t>> LayerCall::ints(std::string_view key, size_t count,
                                             int64_t fallback) const {
  const Json value = config[key];
  if (value.is_null()) return std::vector<int64_t>(count, fallback);
  if (const auto number = value.as_int()) return std::vector<int64_t>(count, *number);
  const auto list = value.as_ints();
  if (list && list->size() == count) return *list;
  if (list && list->size() == 1) return std::vector<int64_t>(count, list->front());
  return parse_error(std::string(key) + " is " + value.to_string() + ", not " +
                     std::to_string(count) + " integers");
}

Result<bool> LayerCall::channels_first() const {
  const std::string_view format = config["data_format"].string_or("channels_last");
  if (format != "channels_first" && format != "channels_last") {
    return parse_error("data_format is " + config["data_format"].to_string());
  }
  return format == "channels_first";
}

Result<int64_t> LayerCall::axis(std::string_view key, int64_t fallback, int64_t rank_) const {
  Json value = config[key];
  if (value.is_array() && value.size() == 1) value = value.at(0);
  if (!value.is_null() && !value.as_int()) return not_supported(*this, key);
  int64_t axis = value.int_or(fallback);
  if (axis < 0) axis += rank_;
  if (axis < 0 || axis >= rank_) return parse_error(std::string(key) + " is out of range");
  return axis;
}

Result<Value*> call_inner(LayerCall& call, Json layer, LayerWeights weights, Value* x) {
  const std::string_view class_name = layer["class_name"].string_or("");
  const LayerRow* row = find_layer(class_name);
  if (!row)
    return unsupported("the wrapped layer " + std::string(class_name) + " is not supported");
  LayerCall inner{call.b, call.keras, class_name, call.name, layer["config"], std::move(weights)};
  inner.inputs = {{x, nullptr}};
  inner.args = {Arg{{x, nullptr}, {}, {}, false}};
  CHECK_OK(row->handler(inner));
  if (inner.outputs.size() != 1) return unsupported("a wrapped layer with several outputs");
  return inner.outputs.front().value;
}

}  // namespace tombolo::keras
