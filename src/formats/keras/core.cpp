// Dense, Embedding, Flatten, wrappers, and layers that do nothing at inference.

#include "formats/keras/layer.h"

namespace tombolo::keras {
namespace {

Status identity(LayerCall& call) {
  call.outputs = call.inputs;
  call.outputs.resize(1);
  return ok();
}

/// Over the last axis: x W + b.
Status dense(LayerCall& call) {
  GraphBuilder& b = call.b;
  if (!call.config["quantization_config"].is_null()) {
    return not_supported(call, "quantization_config");
  }
  TRY(Value * kernel, call.weight("kernel"));
  Value* bias = nullptr;
  if (call.flag("use_bias", true)) {
    TRY(bias, call.weight("bias"));
  }
  Value* x = b.cast(call.x(), call.compute_type());
  Value* y;
  if (call.rank() == 2) {
    y = b.op("Gemm", {x, kernel, bias});
  } else {
    y = b.op("MatMul", {x, kernel});
    if (bias) y = b.op("Add", {y, bias});
  }
  TRY(y, apply_activation(call, y, call.config["activation"]));
  return call.out(y);
}

Status einsum_dense(LayerCall& call) {
  GraphBuilder& b = call.b;
  TRY(Value * kernel, call.weight("kernel"));
  std::string equation(call.config["equation"].string_or(""));
  const size_t comma = equation.find(','), arrow = equation.find("->");
  if (comma == equation.npos || arrow == equation.npos || arrow < comma) {
    return not_supported(call, "equation");
  }
  // Free leading axes are written "..." by Keras and ONNX alike.
  Value* y = b.op("Einsum", {call.x(), kernel}, {{"equation", equation}});
  std::string in = equation.substr(0, comma),
              weight = equation.substr(comma + 1, arrow - comma - 1),
              out = equation.substr(arrow + 2);
  SymShape shape;
  const auto named = [&](const std::string& labels, const Value* value, char label,
                         bool from_end) -> std::optional<SymDim> {
    const size_t at = labels.find(label);
    if (at == labels.npos) return std::nullopt;
    return b.dim(value, from_end ? static_cast<int64_t>(at) - static_cast<int64_t>(labels.size())
                                 : static_cast<int64_t>(at));
  };
  if (out.substr(0, 3) == "...") {
    const int64_t free = call.rank() - static_cast<int64_t>(in.size()) + 3;
    for (int64_t i = 0; i < free; ++i) shape.push_back(b.dim(call.x(), i));
    out = out.substr(3);
    in = in.substr(in.find("...") == 0 ? 3 : 0);
  }
  for (const char label : out) {
    auto dim = named(weight, kernel, label, false);
    if (!dim) dim = named(in, call.x(), label, true);
    if (!dim) return not_supported(call, "equation");
    shape.push_back(*dim);
  }
  b.set_type(y, call.dtype(), shape);
  if (!call.config["bias_axes"].is_null()) {
    TRY(Value * bias, call.weight("bias"));
    y = b.op("Add", {y, bias});
  }
  TRY(y, apply_activation(call, y, call.config["activation"]));
  return call.out(y);
}

Status embedding(LayerCall& call) {
  GraphBuilder& b = call.b;
  TRY(Value * table, call.weight("embeddings"));
  Value* indices = call.x();
  if (!is_integer(call.dtype())) indices = b.cast(indices, DType::kInt32);
  if (call.dtype() != DType::kInt32 && call.dtype() != DType::kInt64) {
    indices = b.cast(indices, DType::kInt32);
  }
  CHECK_OK(call.out(b.op("Gather", {table, indices})));
  call.mask_set = true;
  if (call.flag("mask_zero", false)) {
    call.outputs[0].mask = b.op("Not", {b.op("Equal", {call.x(), b.scalar(0, call.dtype())})});
  }
  return ok();
}

/// Steps whose features all equal mask_value are zeroed and masked.
Status masking(LayerCall& call) {
  GraphBuilder& b = call.b;
  Value* value = b.scalar(call.config["mask_value"].double_or(0), call.dtype());
  Value* differs = b.cast(b.op("Not", {b.op("Equal", {call.x(), value})}), DType::kInt32);
  Value* any = b.cast(b.op("ReduceMax", {differs, b.ints({-1})}), DType::kBool);
  CHECK_OK(call.out(b.op("Where", {any, call.x(), b.scalar(0, call.dtype())})));
  call.mask_set = true;
  call.outputs[0].mask = b.squeeze(any, {-1});
  return ok();
}

Status flatten(LayerCall& call) {
  GraphBuilder& b = call.b;
  Value* x = call.x();
  TRY(const bool first, call.channels_first());
  if (first && call.rank() > 2) {  // Keras flattens in channels-last order all the same
    std::vector<int64_t> perm{0};
    for (int64_t i = 2; i < call.rank(); ++i) perm.push_back(i);
    perm.push_back(1);
    x = b.transpose(x, perm);
  }
  if (call.rank() == 1) return call.out(b.unsqueeze(x, {1}));
  if (call.rank() == 2) return identity(call);
  return call.out(b.op("Flatten", {x}, {{"axis", 1}}));
}

/// Layers that work on the last axis alone need no detour over a merged batch and time.
bool works_on_last_axis(std::string_view class_name) {
  for (const std::string_view name : {"Dense", "Activation", "ReLU", "LeakyReLU", "ELU", "Dropout"})
    if (class_name == name) return true;
  return false;
}

Status time_distributed(LayerCall& call) {
  GraphBuilder& b = call.b;
  const Json layer = call.config["layer"];
  Value* x = call.x();
  if (call.rank() < 3) return parse_error("the input has no time axis");
  if (works_on_last_axis(layer["class_name"].string_or(""))) {
    TRY(Value * y, call_inner(call, layer, call.weights.sub("layer"), x));
    return call.out(y);
  }
  const SymDim batch = b.dim(x, 0), steps = b.dim(x, 1);
  std::vector<int64_t> merged{-1};
  for (int64_t i = 2; i < call.rank(); ++i) {
    const auto size = b.dim(x, i).constant();
    if (!size) return unsupported("free sizes beyond time are not supported");
    merged.push_back(*size);
  }
  Value* flat = b.reshape(x, merged);
  TRY(Value * y, call_inner(call, layer, call.weights.sub("layer"), flat));
  SymShape shape{batch, steps};
  std::vector<int64_t> target{-1, steps.constant().value_or(-1)};
  for (int64_t i = 1; i < b.rank(y); ++i) {
    const auto size = b.dim(y, i).constant();
    if (!size) return unsupported("free sizes beyond time are not supported");
    target.push_back(*size);
    shape.push_back(b.dim(y, i));
  }
  Value* result;
  if (steps.is_value()) {
    result = b.reshape(y, target);
  } else {
    const std::vector<int64_t> rest(target.begin() + 2, target.end());
    Value* head = b.op("Shape", {x}, {{"start", 0}, {"end", 2}});
    b.set_type(head, DType::kInt64, {SymDim(2)});
    result = b.op("Reshape", {y, b.op("Concat", {head, b.ints(rest)}, {{"axis", 0}})});
    b.clear_status();
  }
  b.set_type(result, b.dtype(y), shape);
  return call.out(result);
}

/// A wrapper whose state at inference is in the wrapped layer's own weights.
Status wrapped(LayerCall& call) {
  TRY(Value * y, call_inner(call, call.config["layer"], call.weights.sub("layer"), call.x()));
  return call.out(y);
}

constexpr LayerRow kCoreRows[] = {
    {"Dense", dense, MaskRule::kPass},
    {"EinsumDense", einsum_dense, MaskRule::kPass},
    {"Embedding", embedding},
    {"Masking", masking},
    {"Flatten", flatten},
    {"Identity", identity, MaskRule::kPass},
    {"Dropout", identity, MaskRule::kPass},
    {"SpatialDropout1D", identity, MaskRule::kPass},
    {"SpatialDropout2D", identity, MaskRule::kPass},
    {"SpatialDropout3D", identity, MaskRule::kPass},
    {"GaussianDropout", identity, MaskRule::kPass},
    {"GaussianNoise", identity, MaskRule::kPass},
    {"AlphaDropout", identity, MaskRule::kPass},
    {"ActivityRegularization", identity, MaskRule::kPass},
    {"TimeDistributed", time_distributed, MaskRule::kPass},
    {"SpectralNormalization", wrapped},
    {"TFOpLambda", tensorflow_operation},
    {"SlicingOpLambda", tensorflow_operation},
};

}  // namespace

std::span<const LayerRow> core_layers() { return kCoreRows; }

}  // namespace tombolo::keras
