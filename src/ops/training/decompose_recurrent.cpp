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

  /// One step; where `here` (of type X, [batch, 1]; absent: everywhere) is 0 nothing changes.
  void step(const Var& x, const Var& here) {
    const Var old_state = state, old_cell = cell;
    advance(x);
    if (absent(here)) return;
    const Var others = tape_.sub(tape_.scalar(here, 1), here);
    const auto either = [&](const Var& now, const Var& before) {
      return tape_.add(tape_.mul(now, here), tape_.mul(before, others));
    };
    state = either(state, old_state);
    if (kind_ == 2) cell = either(cell, old_cell);
  }

 private:
  void advance(const Var& x) {
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

  /// Which parameters of activations belong to activation `at`: each that has some takes the next.
  struct Parameters {
    size_t alpha = 0, beta = 0;
  };
  static int parameters_of(std::string_view name) {
    for (const char* two : {"affine", "scaledtanh", "hardsigmoid"})
      if (name == two) return 2;
    for (const char* one : {"leakyrelu", "thresholdedrelu", "elu"})
      if (name == one) return 1;
    return 0;
  }
  static std::string lower(std::string_view name) {
    std::string out(name);
    for (char& c : out)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
  }

  Var activation(size_t index, const char* usual, Var x) {
    constexpr size_t kCounts[] = {1, 2, 3};
    const AttributeReader attributes = d_.attributes();
    if (attributes.has("clip")) {
      const auto clip = static_cast<double>(attributes.get_float("clip", 0));
      x = tape_.call("Clip", {x, tape_.scalar(x, -clip), tape_.scalar(x, clip)});
    }
    const auto given = attributes.get_strings("activations");
    const auto alphas = attributes.get_floats("activation_alpha");
    const auto betas = attributes.get_floats("activation_beta");
    const size_t at = static_cast<size_t>(direction_) * kCounts[kind_] + index;
    const std::string name = lower(at < given.size() ? std::string_view(given[at]) : usual);
    size_t alpha_at = 0, beta_at = 0;
    for (size_t i = 0; i < at && i < given.size(); ++i) {
      const int count = parameters_of(lower(given[i]));
      alpha_at += count >= 1;
      beta_at += count >= 2;
    }
    const auto alpha = [&](double fallback) {
      return tape_.scalar(
          x, alpha_at < alphas.size() ? static_cast<double>(alphas[alpha_at]) : fallback);
    };
    const auto beta = [&](double fallback) {
      return tape_.scalar(x,
                          beta_at < betas.size() ? static_cast<double>(betas[beta_at]) : fallback);
    };
    for (const char* plain : {"Tanh", "Sigmoid", "Relu", "Softsign", "Softplus"})
      if (name == lower(plain)) return tape_.call(plain, {x});
    const Var zero = tape_.scalar(x, 0), one = tape_.scalar(x, 1);
    if (name == "affine") return tape_.add(tape_.mul(x, alpha(1)), beta(0));
    if (name == "scaledtanh")
      return tape_.mul(alpha(1), tape_.call("Tanh", {tape_.mul(beta(1), x)}));
    if (name == "hardsigmoid")
      return tape_.call("Clip", {tape_.add(tape_.mul(x, alpha(0.2)), beta(0.5)), zero, one});
    const Var positive = tape_.call("Greater", {x, zero});
    if (name == "leakyrelu") return tape_.call("Where", {positive, x, tape_.mul(x, alpha(0.01))});
    if (name == "thresholdedrelu")
      return tape_.call("Where", {tape_.call("Greater", {x, alpha(1)}), x, zero});
    if (name == "elu")
      return tape_.call("Where",
                        {positive, x, tape_.mul(alpha(1), tape_.sub(tape_.call("Exp", {x}), one))});
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
  // With layout 1 the batch comes first, in X, the states and Y.
  const bool by_batch = attributes.get_int("layout", 0) != 0;
  const auto turned = [&](const Var& v) {
    return absent(v) ? v
                     : tape.transpose(v, v.rank() == 4 ? std::vector<int64_t>{2, 0, 1, 3}
                                                       : std::vector<int64_t>{1, 0, 2});
  };
  std::vector<Var> given(d.inputs.begin(), d.inputs.end());
  if (by_batch)
    for (const size_t i : {size_t{0}, size_t{5}, size_t{6}})
      if (i < given.size()) given[i] = turned(given[i]);
  Differentiation inside{d.calculus, d.node, d.opset, d.binding, given, {}, {}, {}};
  if (!tape.status().ok()) return outputs;
  const Var& x = given[0];
  const int64_t steps = x.dim(0), directions = d.x(1).dim(0);
  /// 1 for the sequences that have step t, 0 for the others; absent when all have it.
  const auto present = [&](int64_t t) -> Var {
    if (!d.has(4)) return {};
    auto mask = Tensor::allocate(x.dtype(), {{x.dim(1), 1}});
    bool all = d.x(4).size() == x.dim(1);
    if (!mask || !all) return {};
    for (int64_t b = 0; b < x.dim(1); ++b) {
      const bool here = t < d.x(4).value.get_int64(b);
      mask->set_double(b, here ? 1 : 0);
      all = all && here;
    }
    return all ? Var() : tape.constant(*mask);
  };
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
    Recurrence layer(inside, direction, kind);
    layer.begin(x);
    std::vector<Var> rows(static_cast<size_t>(steps));
    const bool back = reverse || direction == 1;
    for (int64_t t = 0; t < steps; ++t) {
      const int64_t at = back ? steps - 1 - t : t;
      const Var here = present(at);
      layer.step(
          tape.call("Gather", {x, tape.constant(Tensor::scalar_int64(at))}, {{"axis", int64_t{0}}}),
          here);
      rows[static_cast<size_t>(at)] = absent(here) ? layer.state : tape.mul(layer.state, here);
    }
    all.push_back(join(rows, 0));
    states.push_back(layer.state);
    cells.push_back(layer.cell);
  }
  if (!outputs.empty() && d.node.output(0) != nullptr) outputs[0] = join(all, 1);
  if (outputs.size() > 1 && d.node.output(1) != nullptr) outputs[1] = join(states, 0);
  if (outputs.size() > 2 && d.node.output(2) != nullptr) outputs[2] = join(cells, 0);
  if (by_batch)
    for (Var& output : outputs) output = turned(output);
  return outputs;
}

}  // namespace tombolo::ops
