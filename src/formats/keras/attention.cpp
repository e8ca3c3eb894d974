// Attention layers, written out: MatMul, Softmax, MatMul.

#include <cmath>

#include "formats/keras/layer.h"

namespace tombolo::keras {
namespace {

/// A tensor argument by position or name, or null.
Value* argument(const LayerCall& call, size_t index, std::string_view name) {
  const auto given = call.kwargs.find(name);
  if (given != call.kwargs.end() && given->second.is_tensor()) return given->second.tensor.value;
  if (index < call.args.size() && call.args[index].is_tensor())
    return call.args[index].tensor.value;
  return nullptr;
}

bool truth(const LayerCall& call, std::string_view name) {
  const auto given = call.kwargs.find(name);
  return given != call.kwargs.end() && given->second.constant.bool_or(false);
}

/// A large negative number where `allowed` is false.
Value* bias_of(GraphBuilder& b, Value* allowed, DType type, double low) {
  return b.op("Where", {allowed, b.scalar(0, type), b.scalar(low, type)});
}

/// bool [queries, keys], true at and below the diagonal.
Result<Value*> causal(GraphBuilder& b, const SymDim& queries, const SymDim& keys) {
  if (!queries.is_value() || !keys.is_value() || queries.value() * keys.value() > (1 << 24)) {
    return unsupported("a causal mask over a free length");
  }
  const std::vector<int64_t> dims{queries.value(), keys.value()};
  TRY(Tensor mask, Tensor::allocate(DType::kBool, dims));
  for (int64_t i = 0; i < dims[0]; ++i)
    for (int64_t k = 0; k < dims[1]; ++k) mask.set_int64(i * dims[1] + k, k <= i ? 1 : 0);
  return b.constant(mask, "causal_mask");
}

/// x [batch, time, in] times kernel [in, heads, size] plus bias: [batch, heads, time, size].
Result<Value*> project(LayerCall& call, Value* x, LayerWeights weights, bool use_bias) {
  GraphBuilder& b = call.b;
  TRY(const Tensor kernel, weights.take("kernel"));
  if (kernel.rank() != 3 || b.rank(x) != 3) return unsupported("attention over several axes");
  const int64_t heads = kernel.dim(1), size = kernel.dim(2);
  const std::vector<int64_t> flat{kernel.dim(0), heads * size};
  Value* y = b.op("MatMul", {x, call.constant(kernel.reshaped(flat), "kernel")});
  if (use_bias) {
    TRY(const Tensor bias, weights.take("bias"));
    if (bias.size() != heads * size) return parse_error("wrong bias shape");
    y = b.op("Add", {y, call.constant(bias.reshaped(std::vector<int64_t>{heads * size}), "bias")});
  }
  return b.transpose(b.reshape(y, {0, b.dim(y, 1).constant().value_or(-1), heads, size}),
                     {0, 2, 1, 3});
}

Status multi_head_attention(LayerCall& call) {
  GraphBuilder& b = call.b;
  Value* query = argument(call, 0, "query");
  Value* value = argument(call, 1, "value");
  Value* key = argument(call, 2, "key");
  if (!query || !value) return parse_error("query or value is missing");
  if (!key) key = value;
  for (const std::string_view name : {"attention_axes", "output_shape"}) {
    const Json given = call.config[name];
    if (!given.is_null() && !(given.size() == 1 && given.at(0).int_or(0) == 1)) {
      if (name == "attention_axes") return not_supported(call, name);
    }
  }
  for (const std::string_view name : {"use_gate", "sliding_window"}) {
    if (call.config[name].bool_or(false)) return not_supported(call, name);
  }
  if (truth(call, "return_attention_scores")) return unsupported("return_attention_scores");
  const bool use_bias = call.flag("use_bias", true);
  const int64_t queries =
      call.config[call.class_name == "GroupQueryAttention" ? "num_query_heads" : "num_heads"]
          .int_or(1);
  Json depth_config = call.config["key_dim"];
  if (depth_config.is_null()) depth_config = call.config["head_dim"];
  const double depth = depth_config.double_or(1);
  TRY(Value * q, project(call, query, call.weights.sub("query_dense", "query"), use_bias));
  TRY(Value * k, project(call, key, call.weights.sub("key_dense", "key"), use_bias));
  TRY(Value * v, project(call, value, call.weights.sub("value_dense", "value"), use_bias));
  const int64_t groups = b.dim(k, 1).constant().value_or(0);
  if (groups < 1 || queries % groups != 0) return parse_error("heads do not divide");
  if (groups != queries) {  // grouped queries: each key head serves several
    std::vector<int64_t> repeat;
    for (int64_t i = 0; i < queries; ++i) repeat.push_back(i / (queries / groups));
    k = b.op("Gather", {k, b.ints(repeat)}, {{"axis", 1}});
    v = b.op("Gather", {v, b.ints(repeat)}, {{"axis", 1}});
  }
  const DType type = b.dtype(q);
  q = b.op("Mul", {q, b.scalar(1.0 / std::sqrt(depth), type)});
  Value* scores = b.op("MatMul", {q, b.transpose(k, {0, 1, 3, 2})});
  // Masks: [batch, queries, keys] given, causal, and those of padded sequences.
  Value* allowed = nullptr;
  const auto allow = [&](Value* mask) { allowed = allowed ? b.op("And", {allowed, mask}) : mask; };
  if (Value* given = argument(call, 99, "attention_mask")) {
    given = b.cast(given, DType::kBool);
    allow(b.rank(given) == 3 ? b.unsqueeze(given, {1}) : given);
  }
  if (truth(call, "use_causal_mask")) {
    TRY(Value * mask, causal(b, b.dim(scores, 2), b.dim(scores, 3)));
    allow(mask);
  }
  const auto step_mask = [&](std::string_view name, size_t index) -> Value* {
    const auto given = call.kwargs.find(name);
    if (given != call.kwargs.end() && given->second.is_tensor()) return given->second.tensor.value;
    return index < call.args.size() && call.args[index].is_tensor() ? call.args[index].tensor.mask
                                                                    : nullptr;
  };
  if (Value* mask = step_mask("value_mask", 1)) allow(b.unsqueeze(mask, {1, 2}));
  if (Value* mask = step_mask("key_mask", 2)) allow(b.unsqueeze(mask, {1, 2}));
  if (Value* mask = step_mask("query_mask", 0)) allow(b.unsqueeze(mask, {1, 3}));
  if (allowed) {
    scores =
        b.op("Add", {scores, bias_of(b, allowed, type, type == DType::kFloat16 ? -3e4 : -3e38)});
  }
  Value* y = b.op("MatMul", {b.op("Softmax", {scores}, {{"axis", -1}}), v});
  y = b.transpose(y, {0, 2, 1, 3});
  const int64_t width = queries * b.dim(v, 3).constant().value_or(0);
  y = b.reshape(y, {0, b.dim(y, 1).constant().value_or(-1), width});
  LayerWeights weights = call.weights.sub("output_dense", "attention_output");
  TRY(const Tensor kernel, weights.take("kernel"));
  if (kernel.rank() < 2 || kernel.size() % std::max<int64_t>(width, 1) != 0) {
    return parse_error("wrong kernel shape");
  }
  if (kernel.rank() != 3) return not_supported(call, "output_shape");
  y = b.op("MatMul", {y, call.constant(kernel.reshaped(std::vector<int64_t>{width, kernel.dim(2)}),
                                       "kernel")});
  if (use_bias) {
    TRY(const Tensor bias, weights.take("bias"));
    y = b.op("Add", {y, call.constant(bias, "bias")});
  }
  return call.out(y);
}

/// Attention (dot) and AdditiveAttention: inputs query, value[, key].
template <bool kAdditive>
Status attention(LayerCall& call) {
  GraphBuilder& b = call.b;
  if (call.inputs.size() < 2 || call.inputs.size() > 3)
    return parse_error("wrong number of inputs");
  Value* query = call.x(0);
  Value* value = call.x(1);
  Value* key = call.inputs.size() == 3 ? call.x(2) : value;
  if (call.rank(0) != 3 || b.rank(key) != 3)
    return unsupported("attention over other than sequences");
  if (truth(call, "return_attention_scores")) return unsupported("return_attention_scores");
  const auto given = call.kwargs.find("mask");
  const bool has_mask =
      given != call.kwargs.end() && (given->second.is_tensor() || !given->second.list.empty());
  if (has_mask && given->second.is_tensor()) return unsupported("a mask argument");
  const DType type = call.dtype();
  Value* scale = nullptr;
  if (call.flag("use_scale", kAdditive)) {
    TRY(scale, call.weight("scale"));
  }
  Value* scores;
  if (kAdditive) {
    Value* sum = b.op("Tanh", {b.op("Add", {b.unsqueeze(query, {2}), b.unsqueeze(key, {1})})});
    if (scale) sum = b.op("Mul", {sum, scale});
    scores = b.op("ReduceSum", {sum, b.ints({-1})}, {{"keepdims", 0}});
  } else {
    if (call.config["score_mode"].string_or("dot") != "dot")
      return not_supported(call, "score_mode");
    scores = b.op("MatMul", {query, b.transpose(key, {0, 2, 1})});
    if (scale) scores = b.op("Mul", {scores, scale});
  }
  Value* allowed = nullptr;
  Value* value_mask = call.inputs[1].mask;
  Value* query_mask = call.inputs[0].mask;
  if (has_mask) {
    const auto& list = given->second.list;
    if (list.size() > 0 && list[0].is_tensor()) query_mask = list[0].tensor.value;
    if (list.size() > 1 && list[1].is_tensor()) value_mask = list[1].tensor.value;
  }
  if (value_mask) allowed = b.unsqueeze(value_mask, {1});
  if (truth(call, "use_causal_mask")) {
    TRY(Value * mask, causal(b, b.dim(scores, 1), b.dim(scores, 2)));
    allowed = allowed ? b.op("And", {allowed, mask}) : mask;
  }
  if (allowed)
    scores =
        b.op("Add", {scores, bias_of(b, allowed, type, type == DType::kFloat16 ? -6e4 : -1e9)});
  Value* y = b.op("MatMul", {b.op("Softmax", {scores}, {{"axis", -1}}), value});
  if (query_mask) y = b.op("Mul", {y, b.unsqueeze(b.cast(query_mask, type), {2})});
  CHECK_OK(call.out(y));
  call.mask_set = true;
  call.outputs[0].mask = query_mask;
  return ok();
}

constexpr LayerRow kAttentionRows[] = {
    {"MultiHeadAttention", multi_head_attention, MaskRule::kPass},
    {"GroupQueryAttention", multi_head_attention, MaskRule::kPass},
    {"GroupedQueryAttention", multi_head_attention, MaskRule::kPass},
    {"Attention", attention<false>},
    {"AdditiveAttention", attention<true>},
};

}  // namespace

std::span<const LayerRow> attention_layers() { return kAttentionRows; }

}  // namespace tombolo::keras
