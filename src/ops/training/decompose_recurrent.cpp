// Recurrent layers unrolled on the tape, for Gradient.

#include "ops/training/decompose_recurrent.h"

#include <string>

namespace tombolo::ops {

namespace {

/// One direction of a recurrent layer: its weights and what is handed on from step to step.
class Recurrence {
 public:
  Recurrence(Differentiation& d, int64_t direction, size_t kind)
      : tape_(d.calculus), d_(d), direction_(direction), kind_(kind) {
    constexpr int64_t kGates[] = {1, 3, 4};
    gates_ = kGates[kind];
    hidden_ = d.x(2).dim(2);
    weights_ = tape_.swap_last(part(d.x(1)));
    recurrent_ = tape_.swap_last(part(d.x(2)));
    if (d.has(3)) {
      const Var bias = part(d.x(3));
      input_bias_ = slice(bias, 0, 0, gates_ * hidden_);
      state_bias_ = slice(bias, 0, gates_ * hidden_, 2 * gates_ * hidden_);
    }
    if (kind == 2 && d.has(7)) peephole_ = part(d.x(7));
  }

  Var state, cell;

  void begin(const Var& x) {
    const int64_t dims[] = {x.dim(1), hidden_};
    state = d_.has(5) ? part(d_.x(5)) : tape_.filled(x, dims, 0);
    if (kind_ == 2) cell = d_.has(6) ? part(d_.x(6)) : tape_.filled(x, dims, 0);
  }

  void step(const Var& x) {
    Var input = tape_.call("MatMul", {x, weights_});
    if (!absent(input_bias_)) input = tape_.add(input, input_bias_);
    if (kind_ == 1) return gru(input);
    Var sum = tape_.add(input, tape_.call("MatMul", {state, recurrent_}));
    if (!absent(state_bias_)) sum = tape_.add(sum, state_bias_);
    if (kind_ == 0)
      state = activation(0, "Tanh", sum);
    else
      lstm(sum);
  }

 private:
  /// The part of a weight that belongs to this direction, without the axis of directions.
  Var part(const Var& x) {
    return tape_.call("Gather", {x, tape_.constant(Tensor::scalar_int64(direction_))},
                      {{"axis", int64_t{0}}});
  }
  Var slice(const Var& x, int64_t axis, int64_t from, int64_t to) {
    return tape_.call(
        "Slice", {x, tape_.constant({{from}}), tape_.constant({{to}}), tape_.constant({{axis}})});
  }
  Var gate(const Var& x, int64_t index) {
    return slice(x, static_cast<int64_t>(x.rank()) - 1, index * hidden_, (index + 1) * hidden_);
  }

  Var activation(size_t index, const char* usual, const Var& x) {
    constexpr size_t kCounts[] = {1, 2, 3};
    const auto given = d_.attributes().get_strings("activations");
    const size_t at = static_cast<size_t>(direction_) * kCounts[kind_] + index;
    const std::string name(at < given.size() ? std::string_view(given[at]) : usual);
    for (const char* plain : {"Tanh", "Sigmoid", "Relu", "Softsign", "Softplus"})
      if (name == plain) return tape_.call(plain, {x});
    tape_.fail(unsupported("Gradient through the activation " + name));
    return x;
  }

  void lstm(const Var& sum) {
    const auto peep = [&](const Var& x, const Var& from, int64_t index) {
      return absent(peephole_) ? x : tape_.add(x, tape_.mul(from, gate(peephole_, index)));
    };
    const Var in = activation(0, "Sigmoid", peep(gate(sum, 0), cell, 0));
    const Var one = tape_.scalar(sum, 1);
    const Var forget = d_.attributes().get_int("input_forget", 0) != 0
                           ? tape_.sub(one, in)
                           : activation(0, "Sigmoid", peep(gate(sum, 2), cell, 2));
    const Var candidate = activation(1, "Tanh", gate(sum, 3));
    cell = tape_.add(tape_.mul(forget, cell), tape_.mul(in, candidate));
    const Var out = activation(0, "Sigmoid", peep(gate(sum, 1), cell, 1));
    state = tape_.mul(out, activation(2, "Tanh", cell));
  }

  void gru(const Var& input) {
    const auto recurrent = [&](const Var& from, int64_t index) {
      Var sum = tape_.call("MatMul", {from, gate(recurrent_, index)});
      return absent(state_bias_) ? sum : tape_.add(sum, gate(state_bias_, index));
    };
    const Var update = activation(0, "Sigmoid", tape_.add(gate(input, 0), recurrent(state, 0)));
    const Var reset = activation(0, "Sigmoid", tape_.add(gate(input, 1), recurrent(state, 1)));
    const bool before = d_.attributes().get_int("linear_before_reset", 0) != 0;
    const Var past =
        before ? tape_.mul(reset, recurrent(state, 2)) : recurrent(tape_.mul(reset, state), 2);
    const Var candidate = activation(1, "Tanh", tape_.add(gate(input, 2), past));
    const Var kept = tape_.mul(update, state);
    state = tape_.add(tape_.mul(tape_.sub(tape_.scalar(state, 1), update), candidate), kept);
  }

  Tape& tape_;
  Differentiation& d_;
  int64_t direction_, gates_ = 1, hidden_ = 0;
  size_t kind_;  ///< 0 RNN, 1 GRU, 2 LSTM
  Var weights_, recurrent_, input_bias_, state_bias_, peephole_;
};

}  // namespace

std::vector<Var> decompose_recurrent(Differentiation& d) {
  Tape& tape = d.calculus;
  std::vector<Var> outputs(d.node.outputs().size());
  const size_t kind = d.node.op_type() == "RNN" ? 0 : d.node.op_type() == "GRU" ? 1 : 2;
  const AttributeReader attributes = d.attributes();
  if (d.inputs.size() < 3 || d.x(0).rank() != 3 || d.x(1).rank() != 3 || d.x(2).rank() != 3) {
    tape.fail(runtime_error("X, W and R must have rank 3"));
    return outputs;
  }
  if (attributes.has("clip") || attributes.get_int("layout", 0) != 0) {
    tape.fail(
        unsupported("Gradient of " + std::string(d.node.op_type()) + " with clip or layout 1"));
    return outputs;
  }
  const Var& x = d.x(0);
  const int64_t steps = x.dim(0), directions = d.x(1).dim(0);
  if (d.has(4))
    for (int64_t i = 0; i < d.x(4).size(); ++i)
      if (d.x(4).value.get_int64(i) != steps) {
        tape.fail(unsupported("Gradient of " + std::string(d.node.op_type()) +
                              " with sequences of different lengths"));
        return outputs;
      }
  const bool reverse = attributes.get_string("direction", "forward") == "reverse";
  const auto join = [&](const std::vector<Var>& parts, int64_t axis) {
    std::vector<Var> lifted;
    for (const Var& part : parts)
      lifted.push_back(tape.call("Unsqueeze", {part, tape.constant({{axis}})}));
    return tape.call_all(
        "Concat", lifted, 1,
        [](Node& node, const void* argument) {
          node.set_int("axis", *static_cast<const int64_t*>(argument));
        },
        &axis)[0];
  };
  std::vector<Var> all, states, cells;
  for (int64_t direction = 0; direction < directions; ++direction) {
    Recurrence layer(d, direction, kind);
    layer.begin(x);
    std::vector<Var> rows(static_cast<size_t>(steps));
    const bool back = reverse || direction == 1;
    for (int64_t t = 0; t < steps; ++t) {
      const int64_t at = back ? steps - 1 - t : t;
      layer.step(tape.call("Gather", {x, tape.constant(Tensor::scalar_int64(at))},
                           {{"axis", int64_t{0}}}));
      rows[static_cast<size_t>(at)] = layer.state;
    }
    all.push_back(join(rows, 0));
    states.push_back(layer.state);
    cells.push_back(layer.cell);
  }
  if (!outputs.empty() && d.node.output(0) != nullptr) outputs[0] = join(all, 1);
  if (outputs.size() > 1 && d.node.output(1) != nullptr) outputs[1] = join(states, 0);
  if (outputs.size() > 2 && d.node.output(2) != nullptr) outputs[2] = join(cells, 0);
  return outputs;
}

}  // namespace tombolo::ops
