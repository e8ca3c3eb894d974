// Operations on symbolic tensors: keras.ops in Keras 3, TFOpLambda in Keras 2.

#include <algorithm>

#include "formats/keras/layer.h"

namespace tombolo::keras {
namespace {

/// An operand: a tensor, or a number of the type of the other operand.
Result<Value*> operand(LayerCall& call, const Arg& arg, DType type) {
  if (arg.is_tensor()) return arg.tensor.value;
  if (const auto number = arg.constant.as_double()) return call.b.scalar(*number, type);
  return unsupported("operand " + arg.constant.to_string() + " is not supported");
}

/// The two operands of a binary operation; Keras 2 names the second one.
Result<std::pair<Value*, Value*>> operands(LayerCall& call) {
  const Arg* sides[2] = {nullptr, nullptr};
  for (size_t i = 0; i < 2 && i < call.args.size(); ++i) sides[i] = &call.args[i];
  for (const auto& [name, arg] : call.kwargs) {
    if (name == "y" || name == "x2" || name == "b") sides[1] = &arg;
    if ((name == "x" || name == "x1" || name == "a") && !sides[0]) sides[0] = &arg;
  }
  if (!sides[0] || !sides[1]) return parse_error("an operand is missing");
  DType type = DType::kFloat32;
  for (const Arg* side : sides)
    if (side->is_tensor()) type = call.b.dtype(side->tensor.value);
  // A fraction against integers makes Keras compute in float.
  for (const Arg* side : sides) {
    if (!side->is_tensor() && is_integer(type) && !side->constant.as_int()) type = DType::kFloat32;
  }
  Value* values[2];
  for (size_t i = 0; i < 2; ++i) {
    TRY(values[i], operand(call, *sides[i], type));
    if (is_float(type)) values[i] = call.b.cast(values[i], type);
  }
  return std::pair{values[0], values[1]};
}

template <const char* kOp>
Status binary(LayerCall& call) {
  TRY(const auto sides, operands(call));
  return call.out(call.b.op(kOp, {sides.first, sides.second}));
}
constexpr char kOpAdd[] = "Add", kOpSub[] = "Sub", kOpMul[] = "Mul", kOpPow[] = "Pow",
               kOpMax[] = "Max", kOpMin[] = "Min", kOpMatMul[] = "MatMul", kOpGreater[] = "Greater",
               kOpLess[] = "Less", kOpEqual[] = "Equal", kOpGreaterEqual[] = "GreaterOrEqual",
               kOpLessEqual[] = "LessOrEqual", kOpAnd[] = "And", kOpOr[] = "Or";

Status true_divide(LayerCall& call) {
  TRY(auto sides, operands(call));
  const DType type = call.b.dtype(sides.first);
  if (!is_float(type)) {
    sides = {call.b.cast(sides.first, DType::kFloat32), call.b.cast(sides.second, DType::kFloat32)};
  }
  return call.out(call.b.op("Div", {sides.first, sides.second}));
}

Status not_equal(LayerCall& call) {
  TRY(const auto sides, operands(call));
  return call.out(call.b.op("Not", {call.b.op("Equal", {sides.first, sides.second})}));
}

template <const char* kOp>
Status unary(LayerCall& call) {
  if (!call.x()) return parse_error("the operand is missing");
  return call.out(call.b.op(kOp, {call.x()}));
}
constexpr char kOpAbs[] = "Abs", kOpSqrt[] = "Sqrt", kOpExp[] = "Exp", kOpLog[] = "Log",
               kOpNeg[] = "Neg", kOpTanh[] = "Tanh", kOpSigmoid[] = "Sigmoid", kOpRelu[] = "Relu",
               kOpSin[] = "Sin", kOpCos[] = "Cos", kOpFloor[] = "Floor", kOpCeil[] = "Ceil",
               kOpSign[] = "Sign", kOpNot[] = "Not", kOpReciprocal[] = "Reciprocal",
               kOpErf[] = "Erf";

Status square(LayerCall& call) {
  if (!call.x()) return parse_error("the operand is missing");
  return call.out(call.b.op("Mul", {call.x(), call.x()}));
}

Status rsqrt(LayerCall& call) {
  if (!call.x()) return parse_error("the operand is missing");
  return call.out(call.b.op("Reciprocal", {call.b.op("Sqrt", {call.x()})}));
}

/// A setting of the operation: in its configuration (Keras 3), as a keyword, or by position.
Json setting(const LayerCall& call, std::string_view name, size_t position) {
  if (call.config[name].exists()) return call.config[name];
  const auto given = call.kwargs.find(name);
  if (given != call.kwargs.end()) return given->second.constant;
  if (position < call.args.size() && !call.args[position].is_tensor()) {
    return call.args[position].constant;
  }
  return Json();
}

template <const char* kOp>
Status reduce(LayerCall& call) {
  GraphBuilder& b = call.b;
  if (!call.x()) return parse_error("the operand is missing");
  const Json axis = setting(call, "axis", 1);
  Value* axes = nullptr;
  if (const auto list = axis.as_ints())
    axes = b.ints(*list);
  else if (const auto one = axis.as_int())
    axes = b.ints({*one});
  else if (!axis.is_null())
    return unsupported("axis " + axis.to_string());
  const bool keep = setting(call, "keepdims", 2).bool_or(false);
  Value* x = call.x();
  const bool logical = call.dtype() == DType::kBool;
  if (logical) x = b.cast(x, DType::kInt32);
  Value* y = b.op(kOp, {x, axes}, {{"keepdims", keep}});
  return call.out(logical ? b.cast(y, DType::kBool) : y);
}
constexpr char kOpReduceMean[] = "ReduceMean", kOpReduceSum[] = "ReduceSum",
               kOpReduceMax[] = "ReduceMax", kOpReduceMin[] = "ReduceMin",
               kOpReduceProd[] = "ReduceProd";

Status transpose(LayerCall& call) {
  if (!call.x()) return parse_error("the operand is missing");
  Json axes = setting(call, "axes", 1);
  if (axes.is_null()) axes = setting(call, "perm", 1);
  std::vector<int64_t> perm;
  if (const auto list = axes.as_ints())
    perm = *list;
  else
    for (int64_t i = call.rank(); i-- > 0;) perm.push_back(i);
  if (static_cast<int64_t>(perm.size()) != call.rank()) return parse_error("wrong number of axes");
  for (int64_t& axis : perm)
    if (axis < 0) axis += call.rank();
  return call.out(call.b.transpose(call.x(), perm));
}

Status reshape_operation(LayerCall& call) {
  if (!call.x()) return parse_error("the operand is missing");
  Json shape = setting(call, "newshape", 1);
  if (shape.is_null()) shape = setting(call, "shape", 1);
  if (!shape.is_array()) return unsupported("a computed shape");
  std::vector<int64_t> target;
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto size = shape.at(i).as_int();
    if (!size && i != 0) return unsupported("shape " + shape.to_string());
    target.push_back(size.value_or(0));
  }
  // An open batch must be the copied one, so that another size may be open, too.
  GraphBuilder& b = call.b;
  SymDim total(1), known(1);
  for (int64_t i = 1; i < call.rank(); ++i) total = total * b.dim(call.x(), i);
  for (size_t i = 1; i < target.size(); ++i) known = known * SymDim(target[i]);
  if (!target.empty() && target[0] == -1 && known.equals(total)) target[0] = 0;
  return call.out(b.reshape(call.x(), target));
}

/// x[a:b:c, i, None, ...]
Status get_item(LayerCall& call) {
  GraphBuilder& b = call.b;
  if (call.args.size() < 2 && !call.kwargs.count("key")) return parse_error("the index is missing");
  const Json key = call.args.size() >= 2 ? call.args[1].constant : call.kwargs.at("key").constant;
  Value* x = call.x();
  if (!x) return parse_error("the operand is missing");
  const size_t count = key.is_array() ? key.size() : 1;
  std::vector<int64_t> gone;
  int64_t axis = 0;
  for (size_t i = 0; i < count; ++i) {
    const Json one = key.is_array() ? key.at(i) : key;
    const std::string_view kind = one["class_name"].string_or("");
    if (one.is_null()) {
      x = b.unsqueeze(x, {axis++});
    } else if (const auto index = one.as_int()) {
      x = b.slice(x, axis, *index, *index == -1 ? INT64_MAX : *index + 1);
      gone.push_back(axis++);
    } else if (kind == "__slice__" || kind == "slice") {
      const Json config = one["config"];
      const int64_t step = config["step"].int_or(1);
      const int64_t start = config["start"].int_or(step > 0 ? 0 : -1);
      const int64_t stop = config["stop"].int_or(step > 0 ? INT64_MAX : INT64_MIN);
      if (!config["start"].is_null() || !config["stop"].is_null() || step != 1) {
        x = b.slice(x, axis, start, stop, step);
      }
      ++axis;
    } else if (kind == "__ellipsis__" || one.string_or("") == "...") {
      axis = b.rank(x) - static_cast<int64_t>(count - i - 1);
    } else {
      return unsupported("index " + one.to_string());
    }
  }
  return call.out(gone.empty() ? x : b.squeeze(x, gone));
}

Status concatenate_operation(LayerCall& call) {
  std::vector<Value*> inputs;
  for (const KerasTensor& input : call.inputs) inputs.push_back(input.value);
  if (inputs.empty()) return parse_error("the operand is missing");
  return call.out(call.b.op("Concat", inputs, {{"axis", setting(call, "axis", 1).int_or(-1)}}));
}

Status softmax(LayerCall& call) {
  if (!call.x()) return parse_error("the operand is missing");
  return call.out(
      call.b.op("Softmax", {call.x()}, {{"axis", setting(call, "axis", 1).int_or(-1)}}));
}

Status expand_dims(LayerCall& call) {
  const auto axis = setting(call, "axis", 1).as_int();
  if (!axis || !call.x()) return unsupported("axis is missing");
  return call.out(call.b.unsqueeze(call.x(), {*axis}));
}

Status squeeze(LayerCall& call) {
  const auto axis = setting(call, "axis", 1).as_int();
  if (!axis || !call.x()) return unsupported("axis is missing");
  return call.out(call.b.squeeze(call.x(), {*axis}));
}

Status cast(LayerCall& call) {
  const auto type = dtype_from_user_name(setting(call, "dtype", 1).string_or(""));
  if (!type || !call.x()) return unsupported("the type is missing");
  return call.out(call.b.cast(call.x(), *type));
}

Status clip(LayerCall& call) {
  const auto low = setting(call, "x_min", 1).as_double(),
             high = setting(call, "x_max", 2).as_double();
  if (!low || !high || !call.x()) return unsupported("bounds that are computed");
  const DType type = call.dtype();
  return call.out(
      call.b.op("Clip", {call.x(), call.b.scalar(*low, type), call.b.scalar(*high, type)}));
}

template <const char* kName>
Status named_activation(LayerCall& call) {
  if (!call.x()) return parse_error("the operand is missing");
  TRY(Value * y, apply_activation(call, call.x(), std::string_view(kName)));
  return call.out(y);
}
constexpr char kOpSilu[] = "silu", kOpElu[] = "elu", kOpSoftplus[] = "softplus",
               kOpHardSigmoid[] = "hard_sigmoid", kOpRelu6[] = "relu6",
               kOpLogSoftmax[] = "log_softmax";

constexpr LayerRow kOperationsRows[] = {
    {"Add", binary<kOpAdd>, MaskRule::kMerge},
    {"Subtract", binary<kOpSub>, MaskRule::kMerge},
    {"Multiply", binary<kOpMul>, MaskRule::kMerge},
    {"Divide", true_divide, MaskRule::kMerge},
    {"TrueDivide", true_divide, MaskRule::kMerge},
    {"Power", binary<kOpPow>},
    {"Maximum", binary<kOpMax>, MaskRule::kMerge},
    {"Minimum", binary<kOpMin>, MaskRule::kMerge},
    {"Matmul", binary<kOpMatMul>},
    {"Greater", binary<kOpGreater>},
    {"Less", binary<kOpLess>},
    {"Equal", binary<kOpEqual>},
    {"NotEqual", not_equal},
    {"GreaterEqual", binary<kOpGreaterEqual>},
    {"LessEqual", binary<kOpLessEqual>},
    {"LogicalAnd", binary<kOpAnd>},
    {"LogicalOr", binary<kOpOr>},
    {"LogicalNot", unary<kOpNot>},
    {"Absolute", unary<kOpAbs>},
    {"Abs", unary<kOpAbs>},
    {"Sqrt", unary<kOpSqrt>},
    {"Rsqrt", rsqrt},
    {"Square", square},
    {"Exp", unary<kOpExp>},
    {"Log", unary<kOpLog>},
    {"Negative", unary<kOpNeg>},
    {"Reciprocal", unary<kOpReciprocal>},
    {"Tanh", unary<kOpTanh>},
    {"Sigmoid", unary<kOpSigmoid>},
    {"Relu", unary<kOpRelu>},
    {"Erf", unary<kOpErf>},
    {"Sin", unary<kOpSin>},
    {"Cos", unary<kOpCos>},
    {"Floor", unary<kOpFloor>},
    {"Ceil", unary<kOpCeil>},
    {"Sign", unary<kOpSign>},
    {"Relu6", named_activation<kOpRelu6>},
    {"Silu", named_activation<kOpSilu>},
    {"Elu", named_activation<kOpElu>},
    {"Softplus", named_activation<kOpSoftplus>},
    {"HardSigmoid", named_activation<kOpHardSigmoid>},
    {"LogSoftmax", named_activation<kOpLogSoftmax>},
    {"Softmax", softmax},
    {"Mean", reduce<kOpReduceMean>},
    {"Sum", reduce<kOpReduceSum>},
    {"Max", reduce<kOpReduceMax>},
    {"Min", reduce<kOpReduceMin>},
    {"Prod", reduce<kOpReduceProd>},
    {"Any", reduce<kOpReduceMax>},
    {"All", reduce<kOpReduceMin>},
    {"Transpose", transpose},
    {"Reshape", reshape_operation},
    {"GetItem", get_item},
    {"Concatenate", concatenate_operation},
    {"ExpandDims", expand_dims},
    {"Squeeze", squeeze},
    {"Cast", cast},
    {"Clip", clip},
};

struct TensorFlowName {
  std::string_view function, operation;
};
constexpr TensorFlowName kTensorFlow[] = {
    {"__operators__.add", "Add"},  {"__operators__.getitem", "GetItem"},
    {"math.add", "Add"},           {"math.subtract", "Subtract"},
    {"math.multiply", "Multiply"}, {"math.divide", "Divide"},
    {"math.truediv", "Divide"},    {"math.maximum", "Maximum"},
    {"math.minimum", "Minimum"},   {"math.pow", "Power"},
    {"math.abs", "Absolute"},      {"math.sqrt", "Sqrt"},
    {"math.rsqrt", "Rsqrt"},       {"math.square", "Square"},
    {"math.exp", "Exp"},           {"math.log", "Log"},
    {"math.negative", "Negative"}, {"math.tanh", "Tanh"},
    {"math.sigmoid", "Sigmoid"},   {"math.not_equal", "NotEqual"},
    {"math.greater", "Greater"},   {"math.less", "Less"},
    {"math.reduce_mean", "Mean"},  {"math.reduce_sum", "Sum"},
    {"math.reduce_max", "Max"},    {"math.reduce_min", "Min"},
    {"nn.relu", "Relu"},           {"nn.relu6", "Relu6"},
    {"nn.silu", "Silu"},           {"nn.softmax", "Softmax"},
    {"nn.sigmoid", "Sigmoid"},     {"linalg.matmul", "Matmul"},
    {"reshape", "Reshape"},        {"concat", "Concatenate"},
    {"transpose", "Transpose"},    {"expand_dims", "ExpandDims"},
    {"squeeze", "Squeeze"},        {"cast", "Cast"},
};

}  // namespace

std::span<const LayerRow> operation_rows() { return kOperationsRows; }

Status tensorflow_operation(LayerCall& call) {
  const std::string_view function = call.config["function"].string_or("");
  for (const TensorFlowName& name : kTensorFlow) {
    if (name.function == function) return find_operation(name.operation)->handler(call);
  }
  return unsupported("the TensorFlow function \"" + std::string(function) + "\" is not supported");
}

}  // namespace tombolo::keras
