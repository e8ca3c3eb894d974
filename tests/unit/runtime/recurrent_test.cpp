// LSTM, GRU and RNN by fast kernels and by the reference's: activations, limits, peepholes,
// layouts, lengths, weights that come in.

#include <cmath>

#include "operators.h"

namespace tombolo {
namespace {

class Recurrent : public Operators {
 protected:
  struct Case {
    std::string op = "LSTM", attributes;
    int64_t directions = 1, batch = 2;
    bool lengths = false, states = false, peepholes = false, batch_major = false, variable = false;
    int64_t steps = 6, width = 5, hidden = 20;
  };

  static std::string list(std::initializer_list<int64_t> dims) {
    std::string text = "float[";
    for (const int64_t dim : dims) text += (text.back() == '[' ? "" : ",") + std::to_string(dim);
    return text + "]";
  }

  void check(const Case& c) {
    const int64_t d = c.directions,
                  gates = c.op == "LSTM"  ? 4
                          : c.op == "GRU" ? 3
                                          : 1,
                  rows = gates * c.hidden;
    std::vector<NamedValue> inputs;
    std::string declared, constants, used, state;
    const auto add = [&](const char* name, bool there, std::initializer_list<int64_t> dims,
                         float scale, bool constant = false) {
      used += used.empty() ? "" : ", ";
      if (!there) return;
      used += name;
      const Tensor values = numbers(dims, scale);
      std::string& text = constant ? constants : declared;
      text += (text.empty() ? "" : ", ") + list(dims) + " " + name;
      if (!constant) {
        inputs.push_back({name, values});
        return;
      }
      text += " = {";
      for (int64_t i = 0; i < values.size(); ++i)
        text += (i == 0 ? "" : ", ") + std::to_string(values.data<float>()[i]);
      text += "}";
    };
    if (c.batch_major)
      add("x", true, {c.batch, c.steps, c.width}, 1);
    else
      add("x", true, {c.steps, c.batch, c.width}, 1);
    add("w", true, {d, rows, c.width}, 0.4f, !c.variable);
    // Small enough for differences not to grow from step to step.
    const float small = 0.9f / std::sqrt(static_cast<float>(c.hidden));
    add("r", true, {d, rows, c.hidden}, small, !c.variable);
    add("b", true, {d, 2 * rows}, 0.3f, true);
    used += ", ";
    if (c.lengths) {
      used += "l";
      std::vector<int32_t> lengths;
      for (int64_t b = 0; b < c.batch; ++b)
        lengths.push_back(static_cast<int32_t>((b * 5 + 3) % (c.steps + 1)));
      declared += ", int32[" + std::to_string(c.batch) + "] l";
      inputs.push_back({"l", Tensor::of<int32_t>(DType::kInt32, Dims{c.batch}, lengths)});
    }
    for (const char* name : {"h", "c"})
      if (c.op == "LSTM" || *name == 'h') {
        if (c.batch_major)
          add(name, c.states, {c.batch, d, c.hidden}, 0.5f);
        else
          add(name, c.states, {d, c.batch, c.hidden}, 0.5f);
      }
    if (c.op == "LSTM") add("p", c.peepholes, {d, 3 * c.hidden}, 0.5f, true);
    const std::string outputs = c.op == "LSTM" ? "y, z, a" : "y, z";
    const std::string types = std::string("float[A,B,C,D] y, float[E,F,G] z") +
                              (c.op == "LSTM" ? ", float[E,F,G] a" : "");
    agree("main (" + declared + ") => (" + types + ") <" + constants + "> {\n" + outputs + " = " +
              c.op + " <hidden_size = " + std::to_string(c.hidden) + ", direction = \"" +
              (d == 2 ? "bidirectional" : "forward") +
              "\", layout = " + std::to_string(static_cast<int>(c.batch_major)) + c.attributes +
              "> (" + used + ")\n}\n",
          inputs, 2e-6);
  }
};

TEST_P(Recurrent, Activations) {
  check({.attributes = ", activations = [\"HardSigmoid\", \"Tanh\", \"Tanh\"]"});
  check({.attributes = ", activations = [\"Sigmoid\", \"Relu\", \"Softsign\"]", .batch = 9});
  check({.attributes = ", activations = [\"HardSigmoid\", \"ScaledTanh\", \"LeakyRelu\"], "
                       "activation_alpha = [0.3, 0.6, 0.1], activation_beta = [0.4, 0.7]"});
  check({.op = "GRU",
         .attributes = ", activations = [\"HardSigmoid\", \"Softsign\", \"Sigmoid\", \"Elu\"], "
                       "linear_before_reset = 1, activation_alpha = [0.25]",
         .directions = 2});
  for (const char* name : {"Relu", "Tanh", "Sigmoid", "Affine", "Softplus"})
    check({.op = "RNN", .attributes = std::string(", activations = [\"") + name + "\"]"});
}

TEST_P(Recurrent, GatesThatSeeTheCell) {
  for (const int64_t batch : {1, 3, 16})
    for (const bool states : {false, true}) {
      check({.batch = batch, .states = states, .peepholes = true});
      check({.attributes = ", clip = 0.5", .batch = batch, .states = states, .peepholes = true});
      check({.attributes = ", input_forget = 1", .directions = 2, .batch = batch});
    }
}

TEST_P(Recurrent, Limits) {
  for (const char* op : {"LSTM", "GRU", "RNN"}) check({.op = op, .attributes = ", clip = 0.3"});
  check({.op = "GRU", .attributes = ", clip = 0.3, linear_before_reset = 1", .batch = 8});
}

TEST_P(Recurrent, BatchesInFront) {
  for (const char* op : {"LSTM", "GRU", "RNN"})
    for (const int64_t directions : {1, 2})
      for (const int64_t batch : {1, 5, 16}) {
        Case c{.op = op, .directions = directions, .batch = batch, .states = true};
        c.batch_major = true;
        check(c);
        c.lengths = true;
        check(c);
      }
}

TEST_P(Recurrent, LengthsAndPartsOfABatch) {
  for (const char* op : {"LSTM", "GRU", "RNN"})
    for (const int64_t directions : {1, 2})
      for (const int64_t batch : {8, 17, 33}) {
        check({.op = op, .directions = directions, .batch = batch, .states = true});
        check({.op = op, .directions = directions, .batch = batch, .lengths = true});
      }
}

// Steps after the longest sequence are not taken: none at all, or more than lie ahead at a time.
TEST_P(Recurrent, SequencesThatEndEarly) {
  for (const char* op : {"LSTM", "GRU", "RNN"})
    for (const int64_t directions : {1, 2})
      for (const int64_t batch : {1, 3, 40})
        for (const int64_t steps : {2, 4, 25, 150}) {
          if (steps == 150 && batch > 1) continue;
          Case c{.op = op, .directions = directions, .batch = batch, .lengths = true};
          c.steps = steps;
          c.states = steps != 25;
          c.hidden = batch == 3 && steps == 25 ? 150 : 20;
          check(c);
          c.batch_major = true;
          check(c);
        }
}

TEST_P(Recurrent, WeightsThatComeIn) {
  for (const char* op : {"LSTM", "GRU", "RNN"})
    for (const int64_t directions : {1, 2})
      check({.op = op, .directions = directions, .batch = 3, .variable = true});
}

// More steps than have their inputs multiplied at a time, and than fit one way round.
TEST_P(Recurrent, LongSequences) {
  for (const char* op : {"LSTM", "GRU", "RNN"})
    for (const int64_t directions : {1, 2})
      for (const int64_t batch : {1, 3, 40}) {
        Case c{.op = op, .directions = directions, .batch = batch, .states = true};
        c.variable = true;
        c.steps = batch == 1 ? 150 : 25;
        c.hidden = 150;
        c.batch_major = batch == 1 && directions == 2;
        if (directions == 1)
          c.attributes = op == std::string("GRU") ? ", linear_before_reset = 1" : "";
        check(c);
      }
}

INSTANTIATE_TEST_SUITE_P(Isa, Recurrent,
                         ::testing::Values(Isa::kNeon, Isa::kSse4, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace tombolo
