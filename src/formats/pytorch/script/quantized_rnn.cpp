// Recurrent layers whose products are quantised while they run: written step by step, because every
// step finds the range of its own state.

#include "formats/pytorch/script/builtins.h"

namespace tombolo::script {

namespace {

using AKind = Arg::Kind;

/// The products of one direction of a layer.
struct CellParams {
  Item input, hidden;  ///< packed weights
  Item reduce_range;
};

Result<CellParams> params_of(Interpreter& in, const Item& object) {
  CellParams params;
  if (!object.is(Item::Kind::kObject))
    return unsupported(kind_of(object) + " as the weights of a recurrent layer");
  const auto found = object.box->attributes.find("__state__");
  if (found == object.box->attributes.end())
    return unsupported("the weights of a recurrent layer in this form");
  Item state = found->second;
  if (state.kind == Item::Kind::kLazy) {
    TRY(state, in.lazy(*state.lazy, object.box->path));
  }
  // (kind, tensors, doubles, integers, packed weights)
  if (!state.is_sequence() || state.box->items.size() != 5 || !state.box->items[0].is_text() ||
      state.box->items[0].arg.text != "quantized_dynamic" || !state.box->items[4].is_sequence() ||
      state.box->items[4].box->items.size() != 2)
    return unsupported("the weights of a recurrent layer in this form");
  params.input = state.box->items[4].box->items[0];
  params.hidden = state.box->items[4].box->items[1];
  params.reduce_range = Item(Arg(false));
  if (state.box->items[3].is_sequence() && !state.box->items[3].box->items.empty())
    params.reduce_range = state.box->items[3].box->items[0];
  return params;
}

Result<Item> product(Interpreter& in, const Item& x, const Item& packed, const Item& range) {
  return in.invoke("ops.quantized.linear_dynamic", {x, packed, range});
}

Result<Item> activated(Interpreter& in, const char* function, const Item& a, const Item& b) {
  TRY(Item sum, in.aten("add", {a, b}));
  return in.aten(function, {sum});
}

/// One step of an LSTM: (h, c), or of a GRU: (h).
Result<Items> lstm_step(Interpreter& in, const Item& from_input, const Item& from_hidden,
                        const Item& c) {
  TRY(Item gates, in.aten("add", {from_input, from_hidden}));
  TRY(Item four, in.aten("chunk", {gates, Item(Arg(4)), Item(Arg(-1))}));
  const Items parts = four.box->items;
  TRY(Item i, in.aten("sigmoid", {parts[0]}));
  TRY(Item f, in.aten("sigmoid", {parts[1]}));
  TRY(Item g, in.aten("tanh", {parts[2]}));
  TRY(Item o, in.aten("sigmoid", {parts[3]}));
  TRY(Item kept, in.aten("mul", {f, c}));
  TRY(Item fresh, in.aten("mul", {i, g}));
  TRY(Item cell, in.aten("add", {kept, fresh}));
  TRY(Item shown, in.aten("tanh", {cell}));
  TRY(Item h, in.aten("mul", {o, shown}));
  return Items{h, cell};
}
Result<Items> gru_step(Interpreter& in, const Item& from_input, const Item& from_hidden,
                       const Item& h) {
  TRY(Item a, in.aten("chunk", {from_input, Item(Arg(3)), Item(Arg(-1))}));
  TRY(Item b, in.aten("chunk", {from_hidden, Item(Arg(3)), Item(Arg(-1))}));
  TRY(Item reset, activated(in, "sigmoid", a.box->items[0], b.box->items[0]));
  TRY(Item update, activated(in, "sigmoid", a.box->items[1], b.box->items[1]));
  TRY(Item seen, in.aten("mul", {reset, b.box->items[2]}));
  TRY(Item fresh, activated(in, "tanh", a.box->items[2], seen));
  TRY(Item difference, in.aten("sub", {h, fresh}));
  TRY(Item scaled, in.aten("mul", {difference, update}));
  TRY(Item next, in.aten("add", {scaled, fresh}));
  return Items{next};
}

bool known_flag(const Item& item) {
  return item.is_number() && !item.arg.computed && item.arg.integer.is(1);
}

/// (input, state, weights, has_biases, layers, dropout, train, bidirectional, batch_first)
template <bool Lstm>
Answer layers(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() < 9 || !args[0].is_tensor()) return not_mine();
  if (args[1].is_tensor() && args[2].is_tensor()) return unsupported("a packed sequence");
  if (!args[2].is_sequence() || !args[4].is_arg(AKind::kInt) || !args[4].arg.integer.is_number())
    return not_mine();
  const int64_t count = args[4].arg.integer.dim.value();
  const bool both = known_flag(args[7]), batch_first = known_flag(args[8]);
  const size_t directions = both ? 2 : 1;
  if (args[2].box->items.size() != static_cast<size_t>(count) * directions)
    return unsupported("a recurrent layer with a wrong number of weights");
  Items states = args[1].is_sequence() ? args[1].box->items : Items{args[1]};
  Item x = args[0];
  if (batch_first) {
    TRY(x, in.aten("transpose.int", {x, Item(Arg(0)), Item(Arg(1))}));
  }
  TRY(Item length, in.invoke("torch.size", {x, Item(Arg(0))}));
  if (!length.arg.integer.is_number() || length.arg.integer.dim.value() > 2048)
    return unsupported("a quantised recurrent layer over a sequence of unknown length");
  const int64_t steps = length.arg.integer.dim.value();
  const auto row = [&](const Item& of, int64_t at) {
    return in.aten("select.int", {of, Item(Arg(0)), Item(Arg(at))});
  };
  std::vector<Items> last(states.size());
  for (int64_t layer = 0; layer < count; ++layer) {
    Items sides;
    for (size_t side = 0; side < directions; ++side) {
      const auto at = static_cast<size_t>(layer) * directions + side;
      TRY(CellParams params, params_of(in, args[2].box->items[at]));
      TRY(Item projected, product(in, x, params.input, params.reduce_range));
      Items state;
      for (const Item& one : states) {
        TRY(Item first, row(one, static_cast<int64_t>(at)));
        state.push_back(std::move(first));
      }
      Items outputs(static_cast<size_t>(steps));
      for (int64_t step = 0; step < steps; ++step) {
        const int64_t now = side == 0 ? step : steps - 1 - step;
        TRY(Item gates, row(projected, now));
        TRY(Item hidden, product(in, state[0], params.hidden, params.reduce_range));
        if (Lstm) {
          TRY(state, lstm_step(in, gates, hidden, state[1]));
        } else {
          TRY(state, gru_step(in, gates, hidden, state[0]));
        }
        outputs[static_cast<size_t>(now)] = state[0];
      }
      TRY(Item stacked, in.aten("stack", {Item::list(outputs), Item(Arg(0))}));
      sides.push_back(std::move(stacked));
      for (size_t i = 0; i < state.size(); ++i) last[i].push_back(state[i]);
    }
    x = sides[0];
    if (both) {
      TRY(x, in.aten("cat", {Item::list(sides), Item(Arg(-1))}));
    }
  }
  if (batch_first) {
    TRY(x, in.aten("transpose.int", {x, Item(Arg(0)), Item(Arg(1))}));
  }
  Items results = {x};
  for (const Items& state : last) {
    TRY(Item stacked, in.aten("stack", {Item::list(state), Item(Arg(0))}));
    results.push_back(std::move(stacked));
  }
  return answer(Item::tuple(std::move(results)));
}

enum class Cell { kLstm, kGru, kRelu, kTanh };

/// (input, state, weights of the input, weights of the state, biases). Cells always take 7 bits of
/// their inputs, where layers do as their weights say.
template <Cell Kind>
Answer cell(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() < 4 || !args[0].is_tensor()) return not_mine();
  const Items state = args[1].is_sequence() ? args[1].box->items : Items{args[1]};
  if (state.size() != (Kind == Cell::kLstm ? 2 : 1)) return not_mine();
  const Item reduced(Arg(true));
  TRY(Item gates, product(in, args[0], args[2], reduced));
  TRY(Item hidden, product(in, state[0], args[3], reduced));
  if (Kind == Cell::kLstm) {
    TRY(Items next, lstm_step(in, gates, hidden, state[1]));
    return answer(Item::tuple(std::move(next)));
  }
  if (Kind != Cell::kGru) {
    TRY(Item next, activated(in, Kind == Cell::kRelu ? "relu" : "tanh", gates, hidden));
    return answer(next);
  }
  TRY(Items next, gru_step(in, gates, hidden, state[0]));
  return answer(next[0]);
}

constexpr BuiltinRow kQuantizedRnnRows[] = {
    {"quantized_lstm", layers<true>},
    {"quantized_gru", layers<false>},
    {"quantized::quantized_lstm_cell_dynamic", cell<Cell::kLstm>},
    {"quantized::quantized_gru_cell_dynamic", cell<Cell::kGru>},
    {"quantized::quantized_rnn_relu_cell_dynamic", cell<Cell::kRelu>},
    {"quantized::quantized_rnn_tanh_cell_dynamic", cell<Cell::kTanh>},
};

}  // namespace

std::span<const BuiltinRow> quantized_rnn_builtins() { return kQuantizedRnnRows; }

}  // namespace tombolo::script
