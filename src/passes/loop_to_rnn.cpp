// A Loop that steps an LSTM, a GRU or a plain recurrent layer through a sequence becomes that
// operator: Keras' layers come so by tf2onnx (GRU and SimpleRNN always, LSTM of a fixed batch).
//
// One layer is taken out at a time: what its step gave is read row by row from what the operator
// gives, and what is left of the Loop goes with simplify-loops. What gates add up is followed as a
// sum of products of one row of the sequence, of the state before, and of constants (GateSum),
// whatever the order of gates and however the columns are cut up.

#include <algorithm>
#include <limits>

#include "passes/loops.h"
#include "passes/passes.h"
#include "passes/slice_bounds.h"

namespace tombolo::passes {
namespace {

constexpr int kDeepestSum = 24;

/// What one gate adds up: rows of weights for each of its units.
struct GateSum {
  Value* rows = nullptr;                ///< the sequence, [steps, batch, inputs]
  std::vector<float> input, recurrent;  ///< [units, inputs], [units, units]; empty: none
  std::vector<float> bias;              ///< [units]; empty: none
  Value* reset = nullptr;               ///< what the state is multiplied by before its product
  Value* gated = nullptr;               ///< reset * (recurrent product): factors of a Mul
  Value* gate = nullptr;
};

/// Follows what is added up for the units of one state of a Loop.
class GateSums {
 public:
  GateSums(const Rewriter& rewriter, const LoopParts& loop, size_t hidden)
      : rewriter_(rewriter), loop_(loop), hidden_(hidden) {
    const auto width = rewriter.dim(loop.state(hidden), 1);
    units_ = width && *width > 0 ? *width : 0;
  }

  int64_t units() const { return units_; }

  /// The columns [from, from + units) of `value` as a sum. `gates`: one addend may be a product of
  /// a gate and a sum, which then stands in `gated`.
  bool sum_of(Value* value, int64_t from, bool gates, GateSum& sum) const {
    return add(value, from, false, gates, sum, 0);
  }

 private:
  bool add(Value* value, int64_t from, bool outside, bool gates, GateSum& sum, int depth) const {
    if (value == nullptr || depth > kDeepestSum || from < 0) return false;
    if (rewriter_.is_constant(value)) return add_bias(value, from, sum);
    const Node* node = value->producer();
    if (node == nullptr || (&node->graph() == &loop_.body()) == outside) return false;
    const auto again = [&](Value* of, int64_t at) {
      return add(of, at, outside, gates, sum, depth + 1);
    };
    if (rewriter_.is(node, "Identity")) return again(node->input(0), from);
    if (rewriter_.is(node, "Add")) {
      for (Value* one : {node->input(0), node->input(1)})
        if (!again(one, from) ||
            (!rewriter_.is_constant(one) && rewriter_.dim(one, -1) != rewriter_.dim(value, -1)))
          return false;
      return true;
    }
    if (rewriter_.is(node, "Split")) return add_split(*node, value, from, again);
    if (rewriter_.is(node, "Slice")) return add_slice(*node, from, again);
    if (rewriter_.is(node, "Squeeze") || rewriter_.is(node, "Unsqueeze") ||
        rewriter_.is(node, "Reshape"))
      return is_row(node->input(0)) && is_row(value) &&
             rewriter_.dim(node->input(0), -1) == rewriter_.dim(value, -1) &&
             again(node->input(0), from);
    if (rewriter_.is(node, "MatMul"))
      return add_product(node->input(0), node->input(1), false, from, outside, sum);
    if (rewriter_.is(node, "Gemm")) {
      const AttributeReader attributes(*node);
      const bool plain = attributes.get_int("transA", 0) == 0 &&
                         attributes.get_float("alpha", 1) == 1 &&
                         attributes.get_float("beta", 1) == 1;
      return plain && !outside &&
             add_product(node->input(0), node->input(1), attributes.get_int("transB", 0) != 0, from,
                         outside, sum) &&
             (node->input(2) == nullptr || again(node->input(2), from));
    }
    if (rewriter_.is(node, "Mul") && gates && sum.gated == nullptr && from == 0 &&
        rewriter_.dim(value, -1) == units_) {
      sum.gate = node->input(0);
      sum.gated = node->input(1);
      return true;
    }
    // Products that were made for the whole sequence.
    if (Value* rows = outside ? nullptr : loop_.rows_of(rewriter_, value))
      return rewriter_.rank(rows) == 3 && add(rows, from, true, gates, sum, depth + 1);
    return false;
  }

  /// One number, or one for each column.
  bool add_bias(Value* value, int64_t from, GateSum& sum) const {
    const Tensor* tensor = rewriter_.constant(value);
    if (tensor == nullptr || tensor->dtype() != DType::kFloat32) return false;
    const int64_t size = tensor->size();
    if (size != 1 && (tensor->rank() == 0 || tensor->dims().back() != size || size - from < units_))
      return false;
    sum.bias.resize(static_cast<size_t>(units_));
    const auto numbers = tensor->span<float>();
    for (size_t j = 0; j < sum.bias.size(); ++j)
      sum.bias[j] += numbers[size == 1 ? 0 : static_cast<size_t>(from) + j];
    return true;
  }

  template <typename Again>
  bool add_split(const Node& split, const Value* value, int64_t from, Again again) const {
    const auto rank = rewriter_.rank(split.input(0));
    if (!rank || *rank == 0) return false;
    const int64_t axis = AttributeReader(split).get_int("axis", 0);
    if (axis != -1 && axis != static_cast<int64_t>(*rank) - 1) return false;
    for (size_t i = 0; i < value->producer_index(); ++i) {
      const auto before =
          split.output(i) != nullptr ? rewriter_.dim(split.output(i), -1) : std::nullopt;
      if (!before) return false;
      from += *before;
    }
    const auto own = rewriter_.dim(value, -1);
    return own && again(split.input(0), from);
  }

  /// Of the last axis alone.
  template <typename Again>
  bool add_slice(const Node& slice, int64_t from, Again again) const {
    const SymShape* before = rewriter_.shape(slice.input(0));
    const auto ends = rewriter_.ints(slice.input(2));
    if (before == nullptr || before->empty() || !ends) return false;
    const auto bounds = slice_bounds(rewriter_, slice, before->size());
    if (!bounds || ends->size() != bounds->starts.size()) return false;
    const auto last = static_cast<int64_t>(before->size()) - 1;
    for (size_t i = 0; i < bounds->axes.size(); ++i) {
      const int64_t start = bounds->starts[i];
      if (bounds->steps[i] != 1 || start < 0) return false;
      if (bounds->axes[i] == last)
        from += start;
      else if (start != 0 || (*ends)[i] < std::numeric_limits<int32_t>::max())
        return false;
    }
    return again(slice.input(0), from);
  }

  bool is_row(const Value* value) const {
    const auto dims = rewriter_.dims(value);
    return dims && !dims->empty() && element_count(*dims) == dims->back();
  }

  /// Columns of left * right; left is a row of the sequence (the sequence itself where `outside`),
  /// the state, the state behind its reset, or some of them side by side.
  bool add_product(Value* left, const Value* right, bool transposed, int64_t from, bool outside,
                   GateSum& sum) const {
    const Tensor* matrix = rewriter_.is_constant(right) ? rewriter_.constant(right) : nullptr;
    if (matrix == nullptr || matrix->dtype() != DType::kFloat32 || matrix->rank() != 2)
      return false;
    const int64_t depth = matrix->dims()[transposed ? 1 : 0];
    const int64_t columns = matrix->dims()[transposed ? 0 : 1];
    if (columns - from < units_) return false;
    left = behind_identity(rewriter_, left);
    const Node* node = left != nullptr ? left->producer() : nullptr;
    std::vector<Value*> pieces = {left};
    if (!outside && rewriter_.is(node, "Concat") && &node->graph() == &loop_.body()) {
      const int64_t axis = AttributeReader(*node).get_int("axis", 0);
      if (rewriter_.rank(left) != 2 || (axis != 1 && axis != -1)) return false;
      pieces.assign(node->inputs().begin(), node->inputs().end());
    }
    int64_t row = 0;
    for (Value* piece : pieces) {
      const auto width = rewriter_.dim(piece, -1);
      if (!width || *width <= 0 || depth - row < *width) return false;
      std::vector<float>* weights = weights_of(piece, outside, sum);
      if (weights == nullptr) return false;
      add_weights(*matrix, transposed, row, *width, from, *weights);
      row += *width;
    }
    return row == depth;
  }

  std::vector<float>* weights_of(Value* piece, bool outside, GateSum& sum) const {
    piece = behind_identity(rewriter_, piece);
    if (!outside && piece == loop_.state(hidden_))
      return sum.reset == nullptr ? &sum.recurrent : nullptr;
    Value* rows = outside ? piece : loop_.rows_of(rewriter_, piece);
    if (rows != nullptr) {
      if (rewriter_.rank(rows) != 3 || (sum.rows != nullptr && sum.rows != rows)) return nullptr;
      sum.rows = rows;
      return &sum.input;
    }
    const Node* mul = piece != nullptr ? piece->producer() : nullptr;
    if (outside || !rewriter_.is(mul, "Mul") || sum.reset != nullptr || !sum.recurrent.empty())
      return nullptr;
    for (size_t i = 0; i < 2; ++i)
      if (behind_identity(rewriter_, mul->input(i)) == loop_.state(hidden_)) {
        sum.reset = mul->input(1 - i);
        return &sum.recurrent;
      }
    return nullptr;
  }

  void add_weights(const Tensor& matrix, bool transposed, int64_t row, int64_t rows, int64_t from,
                   std::vector<float>& weights) const {
    const auto units = static_cast<size_t>(units_), inputs = static_cast<size_t>(rows);
    weights.resize(units * inputs);
    const auto numbers = matrix.span<float>();
    const auto columns = static_cast<size_t>(matrix.dims()[1]);
    for (size_t j = 0; j < units; ++j)
      for (size_t k = 0; k < inputs; ++k) {
        const size_t input = static_cast<size_t>(row) + k, unit = static_cast<size_t>(from) + j;
        weights[j * inputs + k] +=
            numbers[transposed ? unit * columns + input : input * columns + unit];
      }
  }

  const Rewriter& rewriter_;
  const LoopParts& loop_;
  size_t hidden_;
  int64_t units_;
};

/// A function that LSTM, GRU and RNN know by the same name.
struct GateFunction {
  Text name;
  std::optional<float> alpha, beta;
  friend bool operator==(const GateFunction&, const GateFunction&) = default;
};

struct Gate {
  GateSum sum;
  GateFunction activation;
};

std::optional<GateFunction> activation_of(const Rewriter& rewriter, const Node* node) {
  for (const Text name :
       {Text("Sigmoid"), Text("Tanh"), Text("Relu"), Text("Softsign"), Text("Softplus")})
    if (rewriter.is(node, name)) return GateFunction{name, {}, {}};
  if (rewriter.is(node, "HardSigmoid")) {
    const AttributeReader attributes(*node);
    return GateFunction{"HardSigmoid", attributes.get_float("alpha", 0.2F),
                        attributes.get_float("beta", 0.5F)};
  }
  return std::nullopt;
}

/// Everything about one layer but where it stands.
struct RecurrentLayer {
  Text op;
  std::vector<Gate> gates;  ///< in the operator's order
  std::vector<GateFunction> activations;
  std::optional<size_t> cell;  ///< the second state of LSTM
  /// Of GRU's last gate where the reset comes behind the product; empty: none.
  std::vector<float> recurrent_bias;
  bool linear_before_reset = false;
};

class RecurrentMatcher {
 public:
  RecurrentMatcher(const Rewriter& rewriter, const LoopParts& loop, size_t hidden)
      : rewriter_(rewriter), loop_(loop), hidden_(hidden), cell_(rewriter, loop, hidden) {}

  int64_t units() const { return cell_.units(); }

  std::optional<RecurrentLayer> match() const {
    const Value* state = loop_.state(hidden_);
    Value* result = behind_identity(rewriter_, loop_.result(hidden_));
    if (rewriter_.dtype(state) != DType::kFloat32 || rewriter_.rank(state) != 2 ||
        rewriter_.rank(result) != 2 || cell_.units() == 0 || !in_body(result))
      return std::nullopt;
    for (auto form : {&RecurrentMatcher::lstm, &RecurrentMatcher::gru, &RecurrentMatcher::rnn})
      if (auto layer = (this->*form)(result)) return layer;
    return std::nullopt;
  }

 private:
  bool in_body(const Value* value) const {
    return value != nullptr && value->producer() != nullptr && &value->graph() == &loop_.body();
  }
  /// The producer of the value where it is that operator.
  Node* made_by(Value* value, Text op) const {
    value = behind_identity(rewriter_, value);
    return in_body(value) && rewriter_.is(value->producer(), op) ? value->producer() : nullptr;
  }
  bool is_state(Value* value, size_t i) const {
    return behind_identity(rewriter_, value) == loop_.state(i);
  }

  std::optional<Gate> gate(Value* value, bool gates = false) const {
    value = behind_identity(rewriter_, value);
    if (!in_body(value) || rewriter_.dim(value, -1) != cell_.units()) return std::nullopt;
    const auto activation = activation_of(rewriter_, value->producer());
    if (!activation) return std::nullopt;
    Gate gate{{}, *activation};
    if (!cell_.sum_of(value->producer()->input(0), 0, gates, gate.sum)) return std::nullopt;
    return gate;
  }

  /// Of units of its own, with products of both the sequence and the state, and no reset.
  static bool is_plain(const Gate& gate) {
    return gate.sum.rows != nullptr && !gate.sum.recurrent.empty() && gate.sum.reset == nullptr &&
           gate.sum.gated == nullptr;
  }

  std::optional<RecurrentLayer> lstm(Value* result) const {
    Node* product = made_by(result, "Mul");
    if (product == nullptr) return std::nullopt;
    for (size_t i = 0; i < 2; ++i) {
      Value* bounded = behind_identity(rewriter_, product->input(i));
      const auto last =
          in_body(bounded) ? activation_of(rewriter_, bounded->producer()) : std::nullopt;
      if (!last) continue;
      Value* now = behind_identity(rewriter_, bounded->producer()->input(0));
      for (size_t c = 0; c < loop_.carried(); ++c) {
        if (c == hidden_ || behind_identity(rewriter_, loop_.result(c)) != now) continue;
        if (auto layer = lstm_of(c, now, product->input(1 - i), *last)) return layer;
      }
    }
    return std::nullopt;
  }

  std::optional<RecurrentLayer> lstm_of(size_t c, Value* now, Value* output,
                                        const GateFunction& last) const {
    Node* sum = made_by(now, "Add");
    const auto o = gate(output);
    if (sum == nullptr || !o) return std::nullopt;
    for (size_t i = 0; i < 2; ++i) {
      Node* kept = made_by(sum->input(i), "Mul");
      Node* added = made_by(sum->input(1 - i), "Mul");
      if (kept == nullptr || added == nullptr) continue;
      const size_t at = is_state(kept->input(0), c) ? 0 : 1;
      if (!is_state(kept->input(at), c)) continue;
      const auto f = gate(kept->input(1 - at));
      auto in = gate(added->input(0)), fresh = gate(added->input(1));
      if (!f || !in || !fresh || f->activation != o->activation) continue;
      if (in->activation != f->activation) std::swap(in, fresh);
      if (in->activation != f->activation) continue;
      RecurrentLayer layer{
          "LSTM", {*in, *o, *f, *fresh}, {f->activation, fresh->activation, last}, c};
      for (const Gate& one : layer.gates)
        if (!is_plain(one)) return std::nullopt;
      return layer;
    }
    return std::nullopt;
  }

  std::optional<RecurrentLayer> gru(Value* result) const {
    // z * h + (1 - z) * n, or n + z * (h - n).
    Node* sum = made_by(result, "Add");
    if (sum == nullptr) return std::nullopt;
    for (size_t i = 0; i < 2; ++i) {
      Node* kept = made_by(sum->input(i), "Mul");
      if (kept == nullptr) continue;
      for (size_t k = 0; k < 2; ++k) {
        Value* update = behind_identity(rewriter_, kept->input(k));
        Value* fresh = fresh_of(*kept, k, update, sum->input(1 - i));
        if (fresh == nullptr) continue;
        if (auto layer = gru_of(update, fresh)) return layer;
      }
    }
    return std::nullopt;
  }

  Value* fresh_of(Node& kept, size_t k, const Value* update, Value* other) const {
    if (is_state(kept.input(1 - k), hidden_)) {
      Node* added = made_by(other, "Mul");
      if (added == nullptr) return nullptr;
      for (size_t i = 0; i < 2; ++i) {
        Node* rest = made_by(added->input(i), "Sub");
        if (rest != nullptr && rewriter_.scalar(rest->input(0)) == 1 &&
            behind_identity(rewriter_, rest->input(1)) == update)
          return added->input(1 - i);
      }
      return nullptr;
    }
    Node* way = made_by(kept.input(1 - k), "Sub");
    return way != nullptr && is_state(way->input(0), hidden_) &&
                   behind_identity(rewriter_, way->input(1)) == behind_identity(rewriter_, other)
               ? other
               : nullptr;
  }

  std::optional<RecurrentLayer> gru_of(Value* update, Value* fresh) const {
    const auto z = gate(update);
    auto n = gate(fresh, true);
    if (!z || !n || !is_plain(*z) || n->sum.rows == nullptr) return std::nullopt;
    RecurrentLayer layer{"GRU", {}, {z->activation, n->activation}, {}};
    std::optional<Gate> r;
    if (n->sum.gated != nullptr) {
      // The reset comes behind the product: it has a bias of its own.
      if (!n->sum.recurrent.empty()) return std::nullopt;
      layer.linear_before_reset = true;
      GateSum inner;
      for (int turn = 0; turn < 2 && !r; ++turn, std::swap(n->sum.gate, n->sum.gated)) {
        inner = {};
        r = gate(n->sum.gate);
        if (r && (!cell_.sum_of(n->sum.gated, 0, false, inner) || inner.rows != nullptr ||
                  inner.recurrent.empty() || inner.reset != nullptr))
          r = std::nullopt;
      }
      if (!r) return std::nullopt;
      n->sum.recurrent = std::move(inner.recurrent);
      layer.recurrent_bias = std::move(inner.bias);
      n->sum.gate = n->sum.gated = nullptr;
    } else {
      if (n->sum.reset == nullptr || n->sum.recurrent.empty()) return std::nullopt;
      r = gate(n->sum.reset);
      n->sum.reset = nullptr;
    }
    if (!r || !is_plain(*r) || r->activation != z->activation) return std::nullopt;
    layer.gates = {*z, *r, std::move(*n)};
    return layer;
  }

  std::optional<RecurrentLayer> rnn(Value* result) const {
    auto only = gate(result);
    if (!only || !is_plain(*only)) return std::nullopt;
    RecurrentLayer layer{"RNN", {*only}, {only->activation}, {}};
    return layer;
  }

  const Rewriter& rewriter_;
  const LoopParts& loop_;
  size_t hidden_;
  GateSums cell_;
};

/// The operators' attributes can say which functions. Lists of settings are for the functions that
/// have some, in order: what the first alone has is clear.
bool can_say(const std::vector<GateFunction>& activations) {
  for (size_t i = 1; i < activations.size(); ++i)
    if (activations[i].alpha) return false;
  return true;
}

void set_activations(Node& node, const RecurrentLayer& layer) {
  std::vector<Text> names;
  bool are_default = true;
  for (const GateFunction& one : layer.activations) {
    are_default &= one.name == (names.empty() && layer.op != "RNN" ? "Sigmoid" : "Tanh");
    names.push_back(one.name);
  }
  if (are_default) return;
  node.set_attribute(Attribute("activations", AttrType::kStrings, names));
  if (const GateFunction& first = layer.activations[0]; first.alpha) {
    node.set_floats("activation_alpha", std::span(&*first.alpha, 1));
    node.set_floats("activation_beta", std::span(&*first.beta, 1));
  }
}

/// The states of the layer are read by it alone.
bool stands_alone(const LoopParts& loop, size_t hidden, const RecurrentLayer& layer,
                  const Value* result) {
  std::vector<const Value*> roots = {loop.condition()};
  for (size_t i = 0; i < loop.carried() + loop.scanned(); ++i)
    if (i != hidden && (!layer.cell || i != *layer.cell)) roots.push_back(loop.result(i));
  const auto needed = ancestors(roots, result);
  return !needed.contains(loop.state(hidden)) &&
         (!layer.cell || !needed.contains(loop.state(*layer.cell)));
}

/// What the weights of all gates are, one gate behind the other.
Value* gate_weights(Rewriter& rewriter, const LoopParts& loop, const RecurrentLayer& layer,
                    bool recurrent, int64_t units, Text hint) {
  std::vector<float> all;
  for (const Gate& gate : layer.gates) {
    const auto& one = recurrent ? gate.sum.recurrent : gate.sum.input;
    all.insert(all.end(), one.begin(), one.end());
  }
  const auto rows = static_cast<int64_t>(layer.gates.size()) * units;
  const int64_t dims[] = {1, rows, static_cast<int64_t>(all.size()) / rows};
  return rewriter.initializer(loop.node().graph(), Tensor::of<float>(DType::kFloat32, dims, all),
                              hint);
}

Value* gate_biases(Rewriter& rewriter, const LoopParts& loop, const RecurrentLayer& layer,
                   int64_t units) {
  const auto width = static_cast<size_t>(units);
  std::vector<float> all(2 * layer.gates.size() * width);
  bool any = false;
  const auto put = [&](const std::vector<float>& bias, size_t at) {
    std::copy(bias.begin(), bias.end(), all.begin() + static_cast<std::ptrdiff_t>(at));
    any |= !bias.empty();
  };
  for (size_t g = 0; g < layer.gates.size(); ++g) put(layer.gates[g].sum.bias, g * width);
  put(layer.recurrent_bias, all.size() - width);
  if (!any) return nullptr;
  const int64_t dims[] = {1, static_cast<int64_t>(all.size())};
  return rewriter.initializer(loop.node().graph(), Tensor::of<float>(DType::kFloat32, dims, all),
                              "B");
}

bool take_layer(Rewriter& rewriter, const LoopParts& loop, size_t hidden) {
  const auto trips = loop.trips(rewriter);
  Value* result = behind_identity(rewriter, loop.result(hidden));
  if (!trips || result == nullptr) return false;
  const RecurrentMatcher matcher(rewriter, loop, hidden);
  const auto layer = matcher.match();
  if (!layer || !can_say(layer->activations)) return false;
  Value* rows = layer->gates[0].sum.rows;
  const SymShape* shape = rewriter.shape(rows);
  for (const Gate& gate : layer->gates)
    if (gate.sum.rows != rows) return false;
  if (shape == nullptr || shape->size() != 3 || !(*shape)[0].equals(*trips) ||
      rewriter.dtype(rows) != DType::kFloat32 || !stands_alone(loop, hidden, *layer, result))
    return false;
  // One row of the states for each of the sequence: what is spread over a batch is another form.
  for (const auto& i : {std::optional(hidden), layer->cell}) {
    const SymShape* state = i ? rewriter.shape(loop.initial(*i)) : nullptr;
    if (i && (state == nullptr || state->size() != 2 || !(*state)[0].equals((*shape)[1]) ||
              (*state)[1].constant() != matcher.units()))
      return false;
  }

  Node& node = loop.node();
  Graph& graph = node.graph();
  const int64_t zero[] = {0}, one[] = {1};
  Value* first = rewriter.ints_initializer(graph, zero, "axes");
  const auto begin = [&](size_t i) {
    return rewriter.add(node, "Unsqueeze", {loop.initial(i), first}, "state").output(0);
  };
  const int64_t units = matcher.units();
  std::vector<Value*> inputs = {rows,
                                gate_weights(rewriter, loop, *layer, false, units, "W"),
                                gate_weights(rewriter, loop, *layer, true, units, "R"),
                                gate_biases(rewriter, loop, *layer, units),
                                nullptr,
                                begin(hidden)};
  if (layer->cell) inputs.push_back(begin(*layer->cell));
  Node& made = rewriter.add(node, layer->op, inputs, "recurrent", layer->cell ? 3 : 2);
  made.set_int("hidden_size", units);
  if (layer->linear_before_reset) made.set_int("linear_before_reset", 1);
  set_activations(made, *layer);
  rewriter.touch(made);
  const auto without = [&](Value* value, Value* axes) {
    return rewriter.add(node, "Squeeze", {value, axes}, "recurrent").output(0);
  };
  Value* all = without(made.output(0), rewriter.ints_initializer(graph, one, "axes"));
  Node& row = rewriter.add(*loop.body().first_node(), "Gather", {all, loop.iteration()}, "row");
  row.set_int("axis", 0);
  rewriter.touch(row);
  rewriter.replace(*result, *row.output(0));
  // Behind the Loop its states are what the operator ends with. From the back: numbers move.
  std::vector<std::pair<size_t, size_t>> states = {{hidden, 1}};
  if (layer->cell) states.emplace_back(*layer->cell, 2);
  for (const auto& [state, output] : states)
    if (Value* end = loop.final(state); Rewriter::is_read(end))
      rewriter.replace(*end, *without(made.output(output), first));
  // simplify-loops takes out the states, which nobody reads any more.
  return true;
}

}  // namespace

/// LSTM, GRU and RNN of loops (operators' texts of version 7 on).
Result<size_t> loop_to_rnn(Rewriter& rewriter) {
  size_t count = 0;
  for (Node* node : all_loops(rewriter)) {
    bool again = true;
    while (again) {
      again = false;
      rewriter.refresh();
      const auto loop = LoopParts::of(rewriter, *node);
      if (!loop || !loop->body().sort()) break;
      for (size_t i = 0; i < loop->carried() && !again; ++i) again = take_layer(rewriter, *loop, i);
      count += again ? 1 : 0;
    }
  }
  return count;
}

}  // namespace tombolo::passes
