// LSTM, GRU, RNN: torch's gates and two biases brought to ONNX's order.

#include "formats/pytorch/aten/context.h"

namespace tombolo::pytorch {
namespace {

using C = AtenContext;

struct Kind {
  const char* op;  ///< LSTM, GRU, RNN
  int64_t gates;
  Ints order;  ///< ONNX's gates by torch's numbers
  const char* activation = nullptr;
};

/// Kinds by the row's detail. torch: LSTM i f g o, GRU r z n; ONNX: i o f c and z r h.
Kind kind_of(std::string_view name) {
  if (name == "LSTM") return {"LSTM", 4, {0, 3, 1, 2}};
  if (name == "GRU") return {"GRU", 3, {1, 0, 2}};
  return {"RNN", 1, {0}, name == "RNN_TANH" ? "Tanh" : "Relu"};
}

Value* reordered(C& c, Value* w, const Kind& kind, const SymInt& hidden) {
  if (kind.gates == 1) return w;
  Values parts;
  Ints lengths(static_cast<size_t>(kind.gates), hidden.dim.constant().value_or(0));
  Node* split = c.b.begin("Split", Values{w, c.b.ints(lengths)}, {{"axis", 0}});
  const Values gates = c.b.finish(split, static_cast<size_t>(kind.gates));
  for (const int64_t gate : kind.order) parts.push_back(gates[static_cast<size_t>(gate)]);
  return c.concat(parts, 0);
}

/// The weights of one direction of one layer.
struct Cell4 {
  Value *input = nullptr, *hidden = nullptr, *input_bias = nullptr, *hidden_bias = nullptr,
        *projection = nullptr;
};

struct LayerResult {
  Value *y, *h, *cell;
};

/// One layer, both directions where there are two. x: [T, B, in].
LayerResult layer(C& c, const Kind& kind, Value* x, std::span<const Cell4> cells, Value* h0,
                  Value* c0, Value* lengths) {
  const bool both = cells.size() == 2;
  Values w, r, bias;
  const SymInt hidden = c.size(cells[0].hidden, 1);
  for (const Cell4& cell : cells) {
    w.push_back(c.unsqueeze(reordered(c, cell.input, kind, hidden), {0}));
    r.push_back(c.unsqueeze(reordered(c, cell.hidden, kind, hidden), {0}));
    if (cell.input_bias) {
      Value* two[] = {reordered(c, cell.input_bias, kind, hidden),
                      reordered(c, cell.hidden_bias, kind, hidden)};
      bias.push_back(c.unsqueeze(c.concat(two, 0), {0}));
    }
  }
  Attrs attrs = {{"hidden_size", hidden.dim.constant().value_or(0)}};
  if (both) attrs.emplace_back("direction", "bidirectional");
  if (std::string_view(kind.op) == "GRU") attrs.emplace_back("linear_before_reset", 1);
  if (kind.activation)
    attrs.emplace_back("activations", std::vector<std::string>(cells.size(), kind.activation));
  const bool lstm = std::string_view(kind.op) == "LSTM";
  Value* all_bias = bias.empty() ? nullptr : c.concat(bias, 0);
  Node* node = c.b.begin(kind.op,
                         lstm ? Values{x, c.concat(w, 0), c.concat(r, 0), all_bias, lengths, h0, c0}
                              : Values{x, c.concat(w, 0), c.concat(r, 0), all_bias, lengths, h0},
                         attrs);
  const Values results = c.b.finish(node, lstm ? 3 : 2);
  // [T, D, B, H] -> [T, B, D*H]
  Value* y = both ? c.reshape(c.transpose(results[0], {0, 2, 1, 3}),
                              {c.size(x, 0), c.size(x, 1), c.mul(hidden, SymInt(2))})
                  : c.squeeze(results[0], {1});
  return {y, results[1], lstm ? results[2] : nullptr};
}

/// With a projection the hidden state is shorter than the cell: a Loop-free step by Scan.
LayerResult projected(C& c, Value* x, const Cell4& cell, Value* h0, Value* c0, bool reverse) {
  const Ints direction = {reverse ? int64_t{1} : int64_t{0}};
  Value* wi = c.swap(cell.input, 0, 1);
  Value* wh = c.swap(cell.hidden, 0, 1);
  Value* wr = c.swap(cell.projection, 0, 1);
  Value* bias = cell.input_bias ? c.add(cell.input_bias, cell.hidden_bias) : nullptr;
  Node* scan = c.b.begin("Scan", Values{h0, c0, x},
                         {{"num_scan_inputs", 1},
                          {"scan_input_directions", direction},
                          {"scan_output_directions", direction}});
  Graph& body = scan->set_graph("body");
  body.name = "step";
  Shape item = c.b.shape(x);
  if (!item.empty()) item.erase(item.begin());
  c.enter(body);
  Value* h = c.b.input("h", c.dtype(h0), SymShape(c.b.shape(h0)));
  Value* state = c.b.input("c", c.dtype(c0), SymShape(c.b.shape(c0)));
  Value* xt = c.b.input("x", c.dtype(x), item);
  Value* gates = c.add(c.op("MatMul", {xt, wi}), c.op("MatMul", {h, wh}));
  if (bias) gates = c.add(gates, bias);
  const Values four = c.b.op_many("Split", {gates}, 4, {{"axis", -1}, {"num_outputs", 4}});
  Value* next_c = c.add(c.mul(c.op("Sigmoid", {four[1]}), state),
                        c.mul(c.op("Sigmoid", {four[0]}), c.op("Tanh", {four[2]})));
  Value* next_h = c.op("MatMul", {c.mul(c.op("Sigmoid", {four[3]}), c.op("Tanh", {next_c})), wr});
  body.add_output(next_h);
  body.add_output(next_c);
  body.add_output(c.op("Identity", {next_h}));
  c.leave();
  const Values results = c.b.finish(scan, 3);
  Shape sequence = c.b.shape(h0);
  sequence.insert(sequence.begin(), c.b.dim(x, 0));
  c.b.set_type(results[0], c.dtype(h0), SymShape(c.b.shape(h0)));
  c.b.set_type(results[1], c.dtype(c0), SymShape(c.b.shape(c0)));
  c.b.set_type(results[2], c.dtype(h0), sequence);
  return {results[2], results[0], results[1]};
}

void recurrent(C& c) {
  const Kind kind = kind_of(c.detail());
  const bool lstm = std::string_view(kind.op) == "LSTM";
  if (c.flag("train") && c.real("dropout") != 0) return c.refuse("it draws random numbers");
  const bool biases = c.flag("has_biases"), both = c.flag("bidirectional");
  const bool packed = c.has_arg("batch_sizes");
  if (packed) return c.refuse("packed sequences");
  const bool batch_first = c.flag("batch_first");
  const int64_t layers = c.integer("num_layers");
  const size_t directions = both ? 2 : 1;
  const Values params = c.values("params");
  const size_t plain = biases ? 4 : 2;
  const size_t cells = static_cast<size_t>(layers) * directions;
  if (layers <= 0 || cells == 0 || params.size() % cells != 0)
    return c.refuse("weights that do not fit the layers");
  const size_t each = params.size() / cells;
  const bool with_projection = each == plain + 1;
  if (each != plain && !with_projection) return c.refuse("weights that do not fit the layers");
  Value* x = c.x("input");
  const bool unbatched = c.rank(x) == 2;
  if (unbatched) x = c.unsqueeze(x, {batch_first ? 0 : 1});
  if (batch_first) x = c.swap(x, 0, 1);
  Value *h0 = nullptr, *c0 = nullptr;
  if (lstm) {
    const Values states = c.values("hx");
    if (states.size() != 2) return c.refuse("an LSTM needs two states");
    h0 = states[0];
    c0 = states[1];
  } else {
    h0 = c.x("hx");
  }
  if (unbatched) {
    h0 = c.unsqueeze(h0, {1});
    if (c0) c0 = c.unsqueeze(c0, {1});
  }
  Values last_h, last_c;
  size_t at = 0;
  for (int64_t i = 0; i < layers; ++i) {
    std::vector<Cell4> weights;
    for (size_t d = 0; d < directions; ++d) {
      Cell4 cell;
      cell.input = params[at++];
      cell.hidden = params[at++];
      if (biases) {
        cell.input_bias = params[at++];
        cell.hidden_bias = params[at++];
      }
      if (with_projection) cell.projection = params[at++];
      weights.push_back(cell);
    }
    const int64_t first = i * static_cast<int64_t>(directions),
                  end = first + static_cast<int64_t>(directions);
    if (with_projection) {
      Values ys;
      for (size_t d = 0; d < directions; ++d) {
        const int64_t index = first + static_cast<int64_t>(d);
        const LayerResult result = projected(c, x, weights[d], c.select(h0, 0, SymInt(index)),
                                             c.select(c0, 0, SymInt(index)), d == 1);
        ys.push_back(result.y);
        last_h.push_back(c.unsqueeze(result.h, {0}));
        last_c.push_back(c.unsqueeze(result.cell, {0}));
      }
      x = c.concat(ys, 2);
      continue;
    }
    Value* h = c.slice(h0, 0, SymInt(first), SymInt(end));
    Value* state = c0 ? c.slice(c0, 0, SymInt(first), SymInt(end)) : nullptr;
    const LayerResult result = layer(c, kind, x, weights, h, state, nullptr);
    x = result.y;
    last_h.push_back(result.h);
    if (result.cell) last_c.push_back(result.cell);
  }
  if (batch_first) x = c.swap(x, 0, 1);
  Value* hn = c.concat(last_h, 0);
  Value* cn = last_c.empty() ? nullptr : c.concat(last_c, 0);
  if (unbatched) {
    x = c.squeeze(x, {batch_first ? 0 : 1});
    hn = c.squeeze(hn, {1});
    if (cn) cn = c.squeeze(cn, {1});
  }
  c.out(x);
  c.out(hn);
  if (cn) c.out(cn);
}

// ---- single steps ----

Value* affine(C& c, Value* x, Value* w, Value* bias) {
  if (c.rank(x) == 2) return c.op("Gemm", {x, w, bias}, {{"transB", 1}});
  Value* y = c.op("MatMul", {x, c.swap(w, 0, 1)});
  return bias ? c.add(y, bias) : y;
}

void lstm_cell(C& c) {
  const Values states = c.values("hx");
  if (states.size() != 2) return c.refuse("an LSTM needs two states");
  Value* gates = c.add(affine(c, c.x("input"), c.x("w_ih"), c.opt("b_ih")),
                       affine(c, states[0], c.x("w_hh"), c.opt("b_hh")));
  const Values four = c.b.op_many("Split", {gates}, 4, {{"axis", -1}, {"num_outputs", 4}});
  Value* next = c.add(c.mul(c.op("Sigmoid", {four[1]}), states[1]),
                      c.mul(c.op("Sigmoid", {four[0]}), c.op("Tanh", {four[2]})));
  c.out(c.mul(c.op("Sigmoid", {four[3]}), c.op("Tanh", {next})));
  c.out(next);
}

void gru_cell(C& c) {
  Value* h = c.x("hx");
  const Values gi = c.b.op_many("Split", {affine(c, c.x("input"), c.x("w_ih"), c.opt("b_ih"))}, 3,
                                {{"axis", -1}, {"num_outputs", 3}});
  const Values gh = c.b.op_many("Split", {affine(c, h, c.x("w_hh"), c.opt("b_hh"))}, 3,
                                {{"axis", -1}, {"num_outputs", 3}});
  Value* r = c.op("Sigmoid", {c.add(gi[0], gh[0])});
  Value* z = c.op("Sigmoid", {c.add(gi[1], gh[1])});
  Value* n = c.op("Tanh", {c.add(gi[2], c.mul(r, gh[2]))});
  c.out(c.add(n, c.mul(z, c.sub(h, n))));
}

void rnn_cell(C& c) {
  Value* y = c.add(affine(c, c.x("input"), c.x("w_ih"), c.opt("b_ih")),
                   affine(c, c.x("hx"), c.x("w_hh"), c.opt("b_hh")));
  c.out(c.op(c.detail(), {y}));
}

constexpr Row kRecurrentRows[] = {
    {"lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, "
     "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
     recurrent, "LSTM"},
    {"gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float "
     "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
     recurrent, "GRU"},
    {"rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "
     "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
     recurrent, "RNN_TANH"},
    {"rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "
     "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
     recurrent, "RNN_RELU"},
    {"lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
     "b_hh=None) -> (Tensor, Tensor)",
     lstm_cell},
    {"gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
     "b_hh=None) -> Tensor",
     gru_cell},
    {"rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
     "b_hh=None) -> Tensor",
     rnn_cell, "Tanh"},
    {"rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
     "b_hh=None) -> Tensor",
     rnn_cell, "Relu"},
};

}  // namespace

std::span<const Row> recurrent_rows() { return kRecurrentRows; }

}  // namespace tombolo::pytorch
