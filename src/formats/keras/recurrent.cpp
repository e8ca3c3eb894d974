// LSTM, GRU, SimpleRNN, RNN(cell) and Bidirectional.
//
// Keras is batch-major with kernels [in, gates * units]; ONNX is time-major with
// [directions, gates * units, in]. LSTM gates: Keras i f c o, ONNX i o f c; GRU: z r h in both.

#include <algorithm>
#include <numeric>

#include "formats/keras/layer.h"

namespace tombolo::keras {
namespace {

enum class Cell { kLstm, kGru, kSimple };

constexpr size_t gates_of(Cell cell) {
  return cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1;
}

std::optional<Cell> cell_of(std::string_view class_name) {
  if (class_name == "LSTM" || class_name == "LSTMCell") return Cell::kLstm;
  if (class_name == "GRU" || class_name == "GRUCell") return Cell::kGru;
  if (class_name == "SimpleRNN" || class_name == "SimpleRNNCell") return Cell::kSimple;
  return std::nullopt;
}

/// One direction of a recurrent layer: what it computes and with which weights.
struct Direction {
  Cell cell = Cell::kLstm;
  Json config;  ///< of the cell: units, activations, use_bias
  LayerWeights weights;
  bool backwards = false;
  std::vector<Value*> states;  ///< initial; empty: zeros
};

/// What comes out, in Keras's order of axes.
struct Run {
  Value* sequence = nullptr;   ///< [batch, time, units], aligned with the input's time
  std::vector<Value*> states;  ///< [batch, units] each
};

struct Function {
  std::string_view keras, onnx;
  bool takes_alpha = false, takes_beta = false;
  float alpha = 0, beta = 0;
};
constexpr Function kFunctions[] = {
    {"tanh", "Tanh"},
    {"sigmoid", "Sigmoid"},
    {"relu", "Relu"},
    {"linear", "Affine", true, true, 1, 0},
    {"hard_sigmoid", "HardSigmoid", true, true, 1.0f / 6.0f, 0.5f},
    {"elu", "Elu", true, false, 1},
    {"leaky_relu", "LeakyRelu", true, false, 0.2f},
    {"softsign", "Softsign"},
    {"softplus", "Softplus"},
};

Status add_function(int keras, Json value, std::string_view fallback,
                    std::vector<std::string>& names, std::vector<float>& alphas,
                    std::vector<float>& betas) {
  std::string_view name = value.string_or("");
  if (value.is_object())
    name = value["config"].is_string() ? value["config"].string_or("")
                                       : value["config"]["name"].string_or("");
  if (value.is_null()) name = value.exists() ? "linear" : fallback;
  for (const Function& function : kFunctions) {
    if (function.keras != name) continue;
    const bool old = keras < 3 && name == "hard_sigmoid";
    names.emplace_back(function.onnx);
    if (function.takes_alpha) alphas.push_back(old ? 0.2f : function.alpha);
    if (function.takes_beta) betas.push_back(function.beta);
    return ok();
  }
  return unsupported("activation " + value.to_string() + " inside a recurrent layer");
}

/// [rows, gates * units] to [gates * units, rows], gates in ONNX's order.
Result<Tensor> turned(Cell cell, const Tensor& kernel) {
  const auto gates = static_cast<int64_t>(gates_of(cell));
  if (kernel.rank() != 2 || kernel.dim(1) % gates != 0) return parse_error("wrong kernel shape");
  const int64_t rows = kernel.dim(0), units = kernel.dim(1) / gates;
  constexpr int64_t kLstmOrder[] = {0, 3, 1, 2};  // i o f c out of i f c o
  TRY(Tensor result, Tensor::allocate(kernel.dtype(), std::vector<int64_t>{kernel.dim(1), rows}));
  const size_t width = bytes_of(kernel.dtype());
  for (int64_t gate = 0; gate < gates; ++gate) {
    const int64_t from = cell == Cell::kLstm ? kLstmOrder[gate] : gate;
    for (int64_t unit = 0; unit < units; ++unit) {
      for (int64_t row = 0; row < rows; ++row) {
        const auto source = static_cast<size_t>(row * gates * units + from * units + unit);
        const auto target = static_cast<size_t>((gate * units + unit) * rows + row);
        std::copy_n(kernel.bytes().data() + source * width, width,
                    result.mutable_bytes().data() + target * width);
      }
    }
  }
  return result;
}

/// The input and recurrent biases one after the other: [2 * gates * units].
Result<Tensor> both_biases(Cell cell, const Tensor& bias) {
  const auto gates = static_cast<int64_t>(gates_of(cell));
  const bool two = bias.rank() == 2;  // GRU with reset_after
  const int64_t width = two ? bias.dim(1) : bias.size();
  if (bias.rank() < 1 || bias.rank() > 2 || (two && bias.dim(0) != 2) || width % gates != 0) {
    return parse_error("wrong bias shape");
  }
  TRY(Tensor result, Tensor::allocate(bias.dtype(), std::vector<int64_t>{2 * width}));
  for (int64_t half = 0; half < 2; ++half) {
    if (half == 1 && !two) {
      for (int64_t i = 0; i < width; ++i) result.set_double(width + i, 0);
      continue;
    }
    TRY(const Tensor row, Tensor::allocate(bias.dtype(), std::vector<int64_t>{1, width}));
    Tensor part = row;
    for (int64_t i = 0; i < width; ++i) part.set_double(i, bias.get_double(half * width + i));
    TRY(const Tensor ordered, turned(cell, part));
    for (int64_t i = 0; i < width; ++i) result.set_double(half * width + i, ordered.get_double(i));
  }
  return result;
}

/// Several tensors of one shape as one with a new first axis.
Result<Tensor> stacked(const std::vector<Tensor>& parts) {
  Dims dims{static_cast<int64_t>(parts.size())};
  for (const int64_t dim : parts[0].dims().span()) dims.push_back(dim);
  TRY(Tensor result, Tensor::allocate(parts[0].dtype(), dims.span()));
  size_t at = 0;
  for (const Tensor& part : parts) {
    if (part.bytes().size() != parts[0].bytes().size())
      return unsupported("directions of unequal size");
    std::copy_n(part.bytes().data(), part.bytes().size(), result.mutable_bytes().data() + at);
    at += part.bytes().size();
  }
  return result;
}

/// Steps that do not count are skipped: those that count are moved to the front, in order, and
/// run with sequence_lens; afterwards each step takes the result of the step that Keras would
/// repeat there (the last one that counted, zeros before any).
struct Compaction {
  Value* lengths = nullptr;  ///< int32 [batch]
  Value* rank = nullptr;     ///< int64 [batch, time]: steps that count up to and with this one
  Value* counted = nullptr;  ///< int64 [batch, time]: the mask
  Value* x = nullptr;        ///< [batch, time, in]
};

Value* gather_steps(GraphBuilder& b, Value* x, Value* index) {
  Value* y = b.op("GatherND", {x, b.unsqueeze(index, {2})}, {{"batch_dims", 1}});
  b.set_type(y, b.dtype(x), b.shape(x));
  return y;
}

Compaction compact(GraphBuilder& b, Value* x, Value* mask) {
  Compaction result;
  Value* axis = b.int_scalar(1);
  result.counted = b.cast(mask, DType::kInt64);
  result.lengths =
      b.cast(b.op("ReduceSum", {result.counted, b.ints({1})}, {{"keepdims", 0}}), DType::kInt32);
  result.rank = b.op("CumSum", {result.counted, axis});
  // Sorted by a key that falls with time and is higher for steps that count.
  Value* ones = b.op("Add", {b.op("Mul", {result.counted, b.int_scalar(0)}), b.int_scalar(1)});
  Value* position = b.op("CumSum", {ones, axis});
  Value* key =
      b.op("Sub", {b.op("Mul", {result.counted, b.int_scalar(int64_t{1} << 32)}), position});
  Value* steps = b.op("Shape", {mask}, {{"start", 1}, {"end", 2}});
  b.set_type(steps, DType::kInt64, {SymDim(1)});
  const auto sorted = b.op_many("TopK", {key, steps}, 2, {{"axis", 1}});
  b.set_type(sorted[1], DType::kInt64, b.shape(mask));
  result.x = gather_steps(b, x, sorted[1]);
  return result;
}

Value* expand_back(GraphBuilder& b, const Compaction& c, Value* y, bool backwards, bool zero) {
  Value* before = b.op("Sub", {c.rank, c.counted});
  Value* index = backwards ? before : b.op("Sub", {c.rank, b.int_scalar(1)});
  Value* known;
  if (zero) {
    known = b.cast(c.counted, DType::kBool);
  } else if (backwards) {
    known = b.op("Less", {index, b.cast(b.unsqueeze(c.lengths, {1}), DType::kInt64)});
  } else {
    known = b.op("GreaterOrEqual", {index, b.int_scalar(0)});
  }
  Value* safe = b.op("Where", {known, index, b.int_scalar(0)});
  return b.op("Where",
              {b.unsqueeze(known, {2}), gather_steps(b, y, safe), b.scalar(0, b.dtype(y))});
}

/// Runs one or two directions of the same kind in one node; the results are one per direction.
Result<std::vector<Run>> run(LayerCall& call, std::vector<Direction>& directions, Value* x,
                             Value* mask, bool zero_masked) {
  GraphBuilder& b = call.b;
  const Cell cell = directions[0].cell;
  std::vector<Tensor> w, r, bias;
  std::vector<std::string> functions;
  std::vector<float> alphas, betas;
  int64_t units = 0;
  bool linear_before_reset = false;
  for (Direction& direction : directions) {
    TRY(const Tensor kernel, direction.weights.take("kernel"));
    TRY(const Tensor recurrent, direction.weights.take("recurrent_kernel"));
    TRY(Tensor kernel_turned, turned(cell, kernel));
    TRY(Tensor recurrent_turned, turned(cell, recurrent));
    units = recurrent.dim(0);
    if (recurrent.dim(1) != units * static_cast<int64_t>(gates_of(cell)) ||
        kernel.dim(1) != recurrent.dim(1)) {
      return parse_error("wrong kernel shape");
    }
    w.push_back(kernel_turned);
    r.push_back(recurrent_turned);
    if (direction.config["use_bias"].bool_or(true)) {
      TRY(const Tensor stored, direction.weights.take("bias"));
      TRY(Tensor both, both_biases(cell, stored));
      if (both.size() != 2 * recurrent.dim(1)) return parse_error("wrong bias shape");
      bias.push_back(both);
    }
    if (cell == Cell::kGru) {
      const bool after = direction.config["reset_after"].bool_or(false);
      if (directions.size() > 1 && &direction != &directions[0] && after != linear_before_reset) {
        return unsupported("directions with different reset_after");
      }
      linear_before_reset = after;
    }
    // Per direction: gates, then candidate, then (LSTM) the output's squashing.
    if (cell != Cell::kSimple) {
      CHECK_OK(add_function(call.keras, direction.config["recurrent_activation"],
                            call.keras < 3 && cell == Cell::kSimple ? "hard_sigmoid" : "sigmoid",
                            functions, alphas, betas));
    }
    for (int i = 0; i < (cell == Cell::kLstm ? 2 : 1); ++i) {
      CHECK_OK(add_function(call.keras, direction.config["activation"], "tanh", functions, alphas,
                            betas));
    }
  }
  if (!bias.empty() && bias.size() != directions.size())
    return unsupported("bias in one direction only");
  TRY(const Tensor w_all, stacked(w));
  TRY(const Tensor r_all, stacked(r));
  Value* bias_value = nullptr;
  if (!bias.empty()) {
    TRY(const Tensor all, stacked(bias));
    bias_value = call.constant(all, "bias");
  }
  Compaction masked;
  if (mask) {
    masked = compact(b, x, mask);
    x = masked.x;
  }
  // Initial states, one row per direction.
  Value* initial[2] = {nullptr, nullptr};
  for (size_t k = 0; k < (cell == Cell::kLstm ? 2u : 1u); ++k) {
    std::vector<Value*> rows;
    for (const Direction& direction : directions) {
      if (k < direction.states.size()) rows.push_back(b.unsqueeze(direction.states[k], {0}));
    }
    if (rows.empty()) continue;
    if (rows.size() != directions.size())
      return parse_error("initial states for one direction only");
    initial[k] = rows.size() == 1 ? rows[0] : b.op("Concat", rows, {{"axis", 0}});
  }
  Attrs attrs{{"hidden_size", units}};
  if (directions.size() == 2) attrs.emplace_back("direction", "bidirectional");
  if (directions.size() == 1 && directions[0].backwards) attrs.emplace_back("direction", "reverse");
  std::vector<std::string> usual;
  for (size_t i = 0; i < directions.size(); ++i) {
    if (cell == Cell::kLstm) usual.insert(usual.end(), {"Sigmoid", "Tanh", "Tanh"});
    if (cell == Cell::kGru) usual.insert(usual.end(), {"Sigmoid", "Tanh"});
    if (cell == Cell::kSimple) usual.insert(usual.end(), {"Tanh"});
  }
  if (functions != usual) attrs.emplace_back("activations", functions);
  if (!alphas.empty()) attrs.emplace_back("activation_alpha", alphas);
  if (!betas.empty()) attrs.emplace_back("activation_beta", betas);
  if (linear_before_reset) attrs.emplace_back("linear_before_reset", 1);
  const Text op = cell == Cell::kLstm ? "LSTM" : cell == Cell::kGru ? "GRU" : "RNN";
  const size_t outputs = cell == Cell::kLstm ? 3 : 2;
  const auto result = b.op_many(op,
                                {b.transpose(x, {1, 0, 2}), call.constant(w_all, "kernel"),
                                 call.constant(r_all, "recurrent_kernel"), bias_value,
                                 masked.lengths, initial[0], initial[1]},
                                outputs, attrs);
  std::vector<Run> runs;
  for (size_t d = 0; d < directions.size(); ++d) {
    Run one;
    const auto at = static_cast<int64_t>(d);
    Value* y = result[0];
    if (directions.size() == 1) {
      y = b.squeeze(y, {1});
    } else {
      y = b.squeeze(b.slice(y, 1, at, at + 1), {1});
    }
    one.sequence = b.transpose(y, {1, 0, 2});
    if (mask) {
      one.sequence = expand_back(b, masked, one.sequence, directions[d].backwards, zero_masked);
    }
    for (size_t k = 1; k < outputs; ++k) {
      Value* state = directions.size() == 1 ? result[k] : b.slice(result[k], 0, at, at + 1);
      one.states.push_back(b.squeeze(state, {0}));
    }
    runs.push_back(std::move(one));
  }
  return runs;
}

/// The states given at the call, beside the sequence itself.
std::vector<Value*> given_states(const LayerCall& call) {
  std::vector<Value*> states;
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    if (call.b.dtype(call.inputs[i].value) != DType::kBool) states.push_back(call.inputs[i].value);
  }
  const auto given = call.kwargs.find("initial_state");
  if (given != call.kwargs.end()) {
    if (given->second.is_tensor()) states.push_back(given->second.tensor.value);
    for (const Arg& arg : given->second.list)
      if (arg.is_tensor()) states.push_back(arg.tensor.value);
  }
  return states;
}

Status check(const LayerCall& call, Json config) {
  if (call.rank() != 3) return parse_error("the input is not [batch, time, features]");
  if (config["stateful"].bool_or(false)) {
    return unsupported("stateful = true is not supported")
        .with_help("save the model with stateful=False, and pass the states explicitly");
  }
  if (config["time_major"].bool_or(false)) return unsupported("time_major = true is not supported");
  return ok();
}

Value* reversed(GraphBuilder& b, Value* x) { return b.slice(x, 1, -1, INT64_MIN, -1); }

/// The output for return_sequences or not, in the order in which Keras gives it.
Value* shown(GraphBuilder& b, const Run& run, bool sequences, bool backwards, bool zero_masked) {
  if (sequences) return backwards ? reversed(b, run.sequence) : run.sequence;
  if (!zero_masked) return run.states[0];
  // The last step, which is zero where it is masked.
  Value* last =
      backwards ? b.slice(run.sequence, 1, 0, 1) : b.slice(run.sequence, 1, -1, INT64_MAX);
  return b.squeeze(last, {1});
}

void set_outputs(LayerCall& call, Value* y, bool sequences, const std::vector<Value*>& states) {
  call.mask_set = true;
  call.outputs.push_back({y, sequences ? call.mask() : nullptr});
  if (call.flag("return_state", false)) {
    for (Value* state : states) call.outputs.push_back({state, nullptr});
  }
}

Status recurrent(LayerCall& call) {
  CHECK_OK(check(call, call.config));
  // RNN holds a cell, or a list of cells that run one after the other.
  std::vector<Direction> layers;
  const bool wrapper = call.class_name == "RNN";
  const bool backwards = call.flag("go_backwards", false);
  const auto add = [&](std::string_view class_name, Json config, LayerWeights weights) -> Status {
    const auto cell = cell_of(class_name);
    if (!cell) return unsupported("cell " + std::string(class_name) + " is not supported");
    layers.push_back({*cell, config, std::move(weights), backwards, {}});
    return ok();
  };
  if (wrapper) {
    const Json cell = call.config["cell"];
    const Json cells = cell["config"]["cells"];
    std::map<std::string, size_t> used;
    if (!cells.is_array()) {
      CHECK_OK(add(cell["class_name"].string_or(""), cell["config"], call.weights.sub("cell")));
    }
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string_view class_name = cells.at(i)["class_name"].string_or("");
      std::string group = snake_case(class_name);
      if (const size_t count = used[group]++) group += "_" + std::to_string(count);
      const Json name = cells.at(i)["config"]["name"];
      CHECK_OK(add(class_name, cells.at(i)["config"],
                   call.weights.sub("cell/cells/" + group, name.string_or(""))));
    }
    if (layers.empty()) return not_supported(call, "cell");
  } else {
    CHECK_OK(add(call.class_name, call.config, call.weights.sub("cell")));
  }
  const bool sequences = call.flag("return_sequences", false);
  const bool zero = call.flag("zero_output_for_mask", false) && call.mask();
  std::vector<Value*> given = given_states(call), states;
  Value* x = call.x();
  Run last;
  for (Direction& layer : layers) {
    const size_t wanted = layer.cell == Cell::kLstm ? 2 : 1;
    if (!given.empty()) {
      if (given.size() < wanted) return parse_error("too few initial states");
      layer.states.assign(given.begin(), given.begin() + static_cast<ptrdiff_t>(wanted));
      given.erase(given.begin(), given.begin() + static_cast<ptrdiff_t>(wanted));
    }
    std::vector<Direction> one{layer};
    TRY(std::vector<Run> runs, run(call, one, x, call.mask(), zero));
    last = runs[0];
    x = last.sequence;
    states.insert(states.end(), last.states.begin(), last.states.end());
  }
  set_outputs(call, shown(call.b, last, sequences, backwards, zero), sequences, states);
  return ok();
}

Status bidirectional(LayerCall& call) {
  GraphBuilder& b = call.b;
  const Json forward = call.config["layer"];
  Json backward = call.config["backward_layer"];
  if (backward.is_null()) backward = forward;
  const auto forward_cell = cell_of(forward["class_name"].string_or(""));
  const auto backward_cell = cell_of(backward["class_name"].string_or(""));
  if (!forward_cell || !backward_cell) {
    return unsupported("Bidirectional around " + std::string(forward["class_name"].string_or("")) +
                       " is not supported");
  }
  CHECK_OK(check(call, forward["config"]));
  std::vector<Direction> directions;
  directions.push_back({*forward_cell,
                        forward["config"],
                        call.weights.sub("forward_layer", "forward_").sub("cell"),
                        false,
                        {}});
  directions.push_back({*backward_cell,
                        backward["config"],
                        call.weights.sub("backward_layer", "backward_").sub("cell"),
                        true,
                        {}});
  std::vector<Value*> given = given_states(call);
  if (!given.empty()) {
    const auto half = static_cast<ptrdiff_t>(given.size() / 2);
    directions[0].states.assign(given.begin(), given.begin() + half);
    directions[1].states.assign(given.begin() + half, given.end());
  }
  const bool zero = forward["config"]["zero_output_for_mask"].bool_or(false) && call.mask();
  std::vector<Run> runs;
  const bool alike =
      *forward_cell == *backward_cell &&
      forward["config"]["units"].int_or(-1) == backward["config"]["units"].int_or(-2) &&
      forward["config"]["use_bias"].bool_or(true) == backward["config"]["use_bias"].bool_or(true) &&
      forward["config"]["reset_after"].bool_or(false) ==
          backward["config"]["reset_after"].bool_or(false);
  if (alike) {
    TRY(runs, run(call, directions, call.x(), call.mask(), zero));
  } else {
    for (const Direction& direction : directions) {
      std::vector<Direction> one{direction};
      TRY(std::vector<Run> part, run(call, one, call.x(), call.mask(), zero));
      runs.push_back(part[0]);
    }
  }
  const bool sequences = forward["config"]["return_sequences"].bool_or(false);
  // Sequences are aligned in time already; Keras turns the backward one round again, too.
  Value* y0 = shown(b, runs[0], sequences, false, zero);
  Value* y1 = sequences ? runs[1].sequence : shown(b, runs[1], false, true, zero);
  const Json mode = call.config["merge_mode"];
  std::vector<Value*> outputs;
  const std::string_view how = mode.exists() ? mode.string_or("") : "concat";
  if (how == "concat") {
    outputs = {b.op("Concat", {y0, y1}, {{"axis", -1}})};
  } else if (how == "sum") {
    outputs = {b.op("Add", {y0, y1})};
  } else if (how == "mul") {
    outputs = {b.op("Mul", {y0, y1})};
  } else if (how == "ave") {
    outputs = {b.op("Div", {b.op("Add", {y0, y1}), b.scalar(2, b.dtype(y0))})};
  } else if (mode.is_null()) {
    outputs = {y0, y1};
  } else {
    return not_supported(call, "merge_mode");
  }
  call.mask_set = true;
  for (Value* output : outputs) call.outputs.push_back({output, sequences ? call.mask() : nullptr});
  if (forward["config"]["return_state"].bool_or(false)) {
    for (const Run& one : runs)
      for (Value* state : one.states) call.outputs.push_back({state, nullptr});
  }
  return ok();
}

constexpr LayerRow kRecurrentRows[] = {
    {"LSTM", recurrent},
    {"GRU", recurrent},
    {"SimpleRNN", recurrent},
    {"RNN", recurrent},
    {"Bidirectional", bidirectional},
};

}  // namespace

std::span<const LayerRow> recurrent_layers() { return kRecurrentRows; }

}  // namespace tombolo::keras
