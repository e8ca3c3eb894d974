#pragma once

// One call of one Keras layer, as a handler sees it, and the table of handlers.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/common/graph_builder.h"
#include "formats/common/json_view.h"
#include "formats/keras/weights.h"

namespace tombolo::keras {

/// A tensor on its way through the model. The mask (bool [batch, time]) says which steps count;
/// null: all.
struct KerasTensor {
  Value* value = nullptr;
  Value* mask = nullptr;
};

/// An argument of a call: a tensor, a list of arguments, or a constant of the configuration.
struct Arg {
  KerasTensor tensor;
  std::vector<Arg> list;
  Json constant;
  bool is_list = false;
  bool is_tensor() const { return tensor.value != nullptr; }
};

struct LayerCall {
  GraphBuilder& b;
  int keras = 3;  ///< major version that wrote the file
  std::string_view class_name;
  std::string name;
  Json config;
  LayerWeights weights;
  std::vector<Arg> args;
  std::map<std::string, Arg, std::less<>> kwargs;
  std::vector<KerasTensor> inputs;   ///< the tensors among `args`, flattened
  std::vector<KerasTensor> outputs;  ///< set by the handler
  bool mask_set = false;             ///< the handler has decided about masks itself

  Value* x(size_t index = 0) const { return index < inputs.size() ? inputs[index].value : nullptr; }
  /// The mask given as an argument, else the one that came with the first input; or null.
  Value* mask() const {
    const auto given = kwargs.find("mask");
    if (given != kwargs.end() && given->second.is_tensor()) return given->second.tensor.value;
    return inputs.empty() ? nullptr : inputs.front().mask;
  }
  int64_t rank(size_t index = 0) const { return b.rank(x(index)); }
  DType dtype(size_t index = 0) const { return b.dtype(x(index)); }
  Status out(Value* value) {
    outputs.push_back({value, nullptr});
    return ok();
  }
  /// The next weight as a constant of the type in which the layer computes.
  Result<Value*> weight(std::string_view weight_name);
  Result<Tensor> weight_tensor(std::string_view weight_name);
  Value* constant(const Tensor& tensor, std::string_view hint);
  DType compute_type() const;

  bool flag(std::string_view key, bool fallback) const { return config[key].bool_or(fallback); }
  /// A list of `count` integers; a single number stands for all of them.
  Result<std::vector<int64_t>> ints(std::string_view key, size_t count, int64_t fallback) const;
  /// True for channels_first.
  Result<bool> channels_first() const;
  /// The axis as a number from 0; lists must have one element.
  Result<int64_t> axis(std::string_view key, int64_t fallback, int64_t rank) const;
};

/// Refuses attributes that change the result and are not handled.
Error not_supported(const LayerCall& call, std::string_view attribute);

using Handler = Status (*)(LayerCall& call);

/// What becomes of the input's mask.
enum class MaskRule : uint8_t {
  kDrop,
  kPass,   ///< the output has the first input's mask
  kMerge,  ///< the output is masked where all masked inputs are
};

struct LayerRow {
  std::string_view class_name;
  Handler handler;
  MaskRule mask = MaskRule::kDrop;
};

/// The rows of each family; the table is all of them.
std::span<const LayerRow> core_layers();
std::span<const LayerRow> activation_layers();
std::span<const LayerRow> convolution_layers();
std::span<const LayerRow> pooling_layers();
std::span<const LayerRow> normalization_layers();
std::span<const LayerRow> reshaping_layers();
std::span<const LayerRow> merging_layers();
std::span<const LayerRow> recurrent_layers();
std::span<const LayerRow> attention_layers();
std::span<const LayerRow> preprocessing_layers();
std::span<const LayerRow> operation_rows();  ///< keras.ops on symbolic tensors

/// TFOpLambda: a TensorFlow function in a Keras 2 model.
Status tensorflow_operation(LayerCall& call);

/// The row of a class, or null.
const LayerRow* find_layer(std::string_view class_name);
const LayerRow* find_operation(std::string_view class_name);
/// All rows, sorted by name: what `tombolo ops --from keras` lists.
std::vector<const LayerRow*> all_layers();

/// Applies `config["activation"]` (a name, or a serialized layer or function).
Result<Value*> apply_activation(LayerCall& call, Value* x, Json activation);
Result<Value*> apply_activation(LayerCall& call, Value* x, std::string_view name);

/// Runs the handler of another layer's configuration inside this call (wrappers).
Result<Value*> call_inner(LayerCall& call, Json layer, LayerWeights weights, Value* x);

}  // namespace tombolo::keras
