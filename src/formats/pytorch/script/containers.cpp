// Lists, tuples, dicts and strings.

#include <algorithm>

#include "formats/pytorch/script/builtins.h"

namespace tombolo::script {

namespace {

using AKind = Arg::Kind;

bool is_list(const Items& args) { return !args.empty() && args[0].is(Item::Kind::kList); }
bool is_dict(const Items& args) { return !args.empty() && args[0].is(Item::Kind::kDict); }
bool is_text(const Items& args) { return !args.empty() && args[0].is_text(); }

std::optional<int64_t> number(const Item& item) {
  if (!item.is_number() || item.arg.computed) return std::nullopt;
  return item.arg.integer.dim.constant();
}

Value* position(Interpreter& in, const Item& key) {
  return in.context().int_value(key.arg.integer);
}

/// The value of an item as an element of a sequence.
Result<Value*> element(Interpreter& in, const Item& item) {
  pin(item);
  if (item.is_tensor()) return in.context().read(item.arg.tensor);
  if (item.is_arg(AKind::kInt)) return in.context().int_value(item.arg.integer);
  if (item.is_arg(AKind::kFloat)) return in.context().operand_of(item.arg, DType::kFloat64);
  if (item.is_arg(AKind::kBool)) return in.context().operand_of(item.arg, DType::kBool);
  return unsupported("a list of " + kind_of(item) + " whose length depends on data");
}

/// An item made of an element of a sequence: like the others.
Item from_element(Interpreter& in, const Box& list, Value* value) {
  AtenContext& c = in.context();
  const Item like = list.keys.empty() ? Item() : list.keys[0];
  if (like.is_tensor()) {
    Value* known = c.read(like.arg.tensor);
    if (c.b.has_shape(known) && !c.b.has_shape(value)) {
      SymShape shape;
      for (size_t i = 0; i < c.b.shape(known).size(); ++i) shape.emplace_back();
      c.b.set_type(value, c.b.dtype(known), shape);
    }
    Item item(Arg(c.cell(value, like.arg.tensor->dtype)));
    pin(item);
    return item;
  }
  if (like.is_arg(AKind::kInt)) return Item(Arg(SymInt(SymDim(), value)));
  Arg arg;
  arg.kind = like.arg.kind;
  arg.computed = value;
  return Item(std::move(arg));
}

Result<std::optional<size_t>> index_in(const Item& list, const Item& key) {
  const auto at = number(key);
  if (!at || list.box->sequence) return std::optional<size_t>();
  const auto size = static_cast<int64_t>(list.box->items.size());
  const int64_t index = *at < 0 ? *at + size : *at;
  if (index < 0 || index >= size)
    return unsupported("index " + std::to_string(*at) + " of a list of " + std::to_string(size));
  return std::optional<size_t>(static_cast<size_t>(index));
}

Result<size_t> key_of(const Item& dict, const Item& key, bool& found) {
  for (size_t i = 0; i < dict.box->keys.size(); ++i) {
    const auto equal = known_equal(dict.box->keys[i], key);
    if (!equal) return unsupported("a dict whose keys depend on data");
    if (*equal) {
      found = true;
      return i;
    }
  }
  found = false;
  return size_t{0};
}

Answer length(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 1) return not_mine();
  if (is_text(args)) return answer(Item(Arg(static_cast<int64_t>(args[0].arg.text.size()))));
  if (args[0].is_tensor()) {
    AtenContext& c = in.context();
    return answer(Item(Arg(c.size(c.read(args[0].arg.tensor), 0))));
  }
  if (!args[0].box || args[0].kind == Item::Kind::kMaybe) return not_mine();
  if (args[0].box->sequence)
    return answer(
        Item(Arg(SymInt(SymDim(), in.context().op("SequenceLength", {args[0].box->sequence})))));
  if (args[0].kind == Item::Kind::kObject) {
    TRY(Item size, in.call_method(args[0], "__len__", {}));
    return answer(size);
  }
  return answer(Item(Arg(static_cast<int64_t>(args[0].box->items.size()))));
}

/// `into` with elements of a sequence behind its own: those at start, start + step, ...
Result<Value*> gathered(Interpreter& in, const Box& list, Value* into, const SymInt& start,
                        int64_t step, const SymInt& count) {
  AtenContext& c = in.context();
  if (list.keys.empty()) return unsupported("a list whose elements are of an unknown type");
  const Item& like = list.keys[0];
  SymShape shape;
  DType dtype = DType::kInt64;
  bool shaped = true;
  if (like.is_tensor()) {
    Value* known = c.read(like.arg.tensor);
    dtype = c.b.dtype(known);
    shaped = c.b.has_shape(known);
    shape.assign(shaped ? c.b.shape(known).size() : 0, SymDim());
  } else if (!like.is_arg(AKind::kInt)) {
    dtype = like.is_arg(AKind::kBool) ? DType::kBool : DType::kFloat64;
  }
  if (into == nullptr) into = c.op("SequenceEmpty", {}, {{"dtype", static_cast<int64_t>(dtype)}});
  const std::vector<Value*> inputs = {c.int_value(count), nullptr, into};
  Value* first = c.int_value(start);
  Node* node = c.b.begin("Loop", inputs);
  Graph& body = node->set_graph("body");
  c.enter(body);
  Value* iteration = body.add_input(c.b.fresh_name("iteration"));
  c.b.set_type(iteration, DType::kInt64, {});
  Value* condition = body.add_input(c.b.fresh_name("condition"));
  c.b.set_type(condition, DType::kBool, {});
  Value* carried = body.add_input(c.b.fresh_name("carried"));
  c.b.set_sequence_type(carried, dtype, shaped ? &shape : nullptr);
  Value* at = c.add(c.mul(iteration, c.b.int_scalar(step)), first);
  Value* longer = c.op("SequenceInsert", {carried, c.op("SequenceAt", {list.sequence, at})});
  body.add_output(own_output(c, condition));
  body.add_output(own_output(c, longer));
  c.leave();
  Value* result = c.b.finish(node, 1).front();
  c.b.set_sequence_type(result, dtype, shaped ? &shape : nullptr);
  return result;
}
SymInt length_of(Interpreter& in, const Box& list) {
  return SymInt(SymDim(), in.context().op("SequenceLength", {list.sequence}));
}

Answer append(Interpreter& in, Items& args, NamedItems&) {
  if (!is_list(args) || args.size() != 2) return not_mine();
  in.touch(args[0].box);
  if (args[0].box->sequence) {
    TRY(Value * value, element(in, args[1]));
    args[0].box->sequence = in.context().op("SequenceInsert", {args[0].box->sequence, value});
    if (args[0].box->keys.empty()) args[0].box->keys.push_back(args[1]);
  } else {
    args[0].box->items.push_back(args[1]);
  }
  return answer(args[0]);
}

Answer insert(Interpreter& in, Items& args, NamedItems&) {
  if (!is_list(args) || args.size() != 3) return not_mine();
  in.touch(args[0].box);
  if (args[0].box->sequence) {
    TRY(Value * value, element(in, args[2]));
    args[0].box->sequence =
        in.context().op("SequenceInsert", {args[0].box->sequence, value, position(in, args[1])});
    return answer(args[0]);
  }
  const auto at = number(args[1]);
  if (!at) return unsupported("an insertion at a place that depends on data");
  auto& items = args[0].box->items;
  const auto size = static_cast<int64_t>(items.size());
  const int64_t place = std::clamp<int64_t>(*at < 0 ? *at + size : *at, 0, size);
  items.insert(items.begin() + place, args[2]);
  return answer(args[0]);
}

Answer extend(Interpreter& in, Items& args, NamedItems&) {
  if (!is_list(args) || args.size() != 2 || !args[1].is_sequence()) return not_mine();
  if (args[1].box->sequence) {
    Box& list = *args[0].box;
    const Box& more_items = *args[1].box;
    in.touch(args[0].box);
    Value* into = list.sequence;
    if (into == nullptr && !list.items.empty()) {
      std::vector<Value*> values;
      for (const Item& item : list.items) {
        TRY(Value * value, element(in, item));
        values.push_back(value);
      }
      into = in.context().op("SequenceConstruct", values);
    }
    TRY(list.sequence,
        gathered(in, more_items, into, SymInt(int64_t{0}), 1, length_of(in, more_items)));
    list.items.clear();
    if (list.keys.empty()) list.keys = more_items.keys;
    return answer(args[0]);
  }
  const Items more = args[1].box->items;
  NamedItems none;
  for (const Item& item : more) {
    Items one = {args[0], item};
    TRY(std::optional<Item> done, append(in, one, none));
  }
  return answer(args[0]);
}

Answer pop(Interpreter& in, Items& args, NamedItems&) {
  if (is_dict(args) && args.size() >= 2) {
    bool found = false;
    TRY(size_t at, key_of(args[0], args[1], found));
    if (!found && args.size() > 2) return answer(args[2]);
    if (!found) return unsupported("a key that the dict does not have");
    in.touch(args[0].box);
    const Item value = args[0].box->items[at];
    args[0].box->items.erase(args[0].box->items.begin() + static_cast<std::ptrdiff_t>(at));
    args[0].box->keys.erase(args[0].box->keys.begin() + static_cast<std::ptrdiff_t>(at));
    return answer(value);
  }
  if (!is_list(args)) return not_mine();
  const Item key = args.size() > 1 ? args[1] : Item(Arg(-1));
  TRY(Item value, get_item(in, args[0], key));
  in.touch(args[0].box);
  if (args[0].box->sequence) {
    args[0].box->sequence =
        in.context().op("SequenceErase", {args[0].box->sequence, position(in, key)});
    return answer(value);
  }
  TRY(auto at, index_in(args[0], key));
  if (!at) return unsupported("a list shortened at a place that depends on data");
  args[0].box->items.erase(args[0].box->items.begin() + static_cast<std::ptrdiff_t>(*at));
  return answer(value);
}

Answer remove_item(Interpreter& in, Items& args, NamedItems& named) {
  if (args.size() != 2 || (!is_list(args) && !is_dict(args))) return not_mine();
  TRY(std::optional<Item> dropped, pop(in, args, named));
  return answer(Item());
}

Answer clear(Interpreter& in, Items& args, NamedItems&) {
  if (!is_list(args) && !is_dict(args)) return not_mine();
  in.touch(args[0].box);
  args[0].box->items.clear();
  args[0].box->keys.clear();
  args[0].box->sequence = nullptr;
  return answer(Item());
}

Answer reverse(Interpreter& in, Items& args, NamedItems&) {
  if (!is_list(args)) return not_mine();
  in.touch(args[0].box);
  if (args[0].box->sequence) {
    Box& list = *args[0].box;
    const SymInt count = length_of(in, list);
    TRY(list.sequence, gathered(in, list, nullptr, in.context().sub(count, SymInt(1)), -1, count));
    return answer(Item());
  }
  std::reverse(args[0].box->items.begin(), args[0].box->items.end());
  return answer(Item());
}

Answer sort(Interpreter& in, Items& args, NamedItems&) {
  if (!is_list(args) || args[0].box->sequence) return not_mine();
  for (const Item& item : args[0].box->items)
    if (!number(item) && !item.is_text() && !item.is_arg(AKind::kFloat))
      return unsupported("a list of values that are not known is sorted");
  in.touch(args[0].box);
  const bool down = args.size() > 1 && number(args[1]).value_or(0) != 0;
  std::stable_sort(
      args[0].box->items.begin(), args[0].box->items.end(), [&](const Item& a, const Item& b) {
        const Item &x = down ? b : a, &y = down ? a : b;
        if (x.is_text()) return x.arg.text < y.arg.text;
        const auto value = [](const Item& item) {
          return item.is_arg(AKind::kFloat) ? item.arg.real
                                            : static_cast<double>(number(item).value_or(0));
        };
        return value(x) < value(y);
      });
  return answer(args[0]);
}
Answer sorted(Interpreter& in, Items& args, NamedItems& named) {
  if (!is_list(args)) return not_mine();
  Items copy = args;
  copy[0] = Item::list(args[0].box->items);
  return sort(in, copy, named);
}

Answer copy_list(Interpreter& in, Items& args, NamedItems&) {
  if (args.empty()) return not_mine();
  if (args[0].is_tensor() || args[0].is_number()) return not_mine();
  if (is_text(args)) {
    Items letters;
    for (const char letter : args[0].arg.text) letters.emplace_back(Arg(std::string(1, letter)));
    return answer(Item::list(std::move(letters)));
  }
  if (!args[0].box) return not_mine();
  if (is_dict(args)) {
    return answer(Item::list(args[0].box->keys));
  }
  Item copy = Item::of(Item::Kind::kList, std::make_shared<Box>(*args[0].box));
  (void)in;
  return answer(copy);
}
Answer copy_any(Interpreter& in, Items& args, NamedItems& named) {
  if (is_dict(args))
    return answer(Item::of(Item::Kind::kDict, std::make_shared<Box>(*args[0].box)));
  return copy_list(in, args, named);
}

Answer slice(Interpreter& in, Items& args, NamedItems&) {
  if (args.empty()) return not_mine();
  if (!is_list(args) && !is_text(args) && !args[0].is(Item::Kind::kTuple)) return not_mine();
  const bool text = is_text(args);
  if (!text && args[0].box->sequence) {
    // [start:] and [:end], from either side.
    AtenContext& c = in.context();
    const Box& list = *args[0].box;
    const SymInt count = length_of(in, list);
    const auto limit = [&](size_t at, const SymInt& fallback) -> Result<SymInt> {
      if (args.size() <= at || args[at].is_none()) return fallback;
      const auto value = number(args[at]);
      if (!value) return unsupported("a part of a list that depends on data");
      if (*value >= 0) return c.minimum(SymInt(*value), count);
      return c.maximum(c.add(count, SymInt(*value)), SymInt(int64_t{0}));
    };
    if (args.size() > 3 && number(args[3]) != 1)
      return unsupported("every so many elements of a list whose length depends on data");
    TRY(SymInt first, limit(1, SymInt(int64_t{0})));
    TRY(SymInt last, limit(2, count));
    const SymInt taken = c.maximum(c.sub(last, first), SymInt(int64_t{0}));
    auto part = std::make_shared<Box>();
    part->keys = list.keys;
    TRY(part->sequence, gathered(in, list, nullptr, first, 1, taken));
    return answer(Item::of(Item::Kind::kList, std::move(part)));
  }
  const auto size =
      static_cast<int64_t>(text ? args[0].arg.text.size() : args[0].box->items.size());
  const auto bound = [&](size_t at, int64_t fallback) -> Result<int64_t> {
    if (args.size() <= at || args[at].is_none()) return fallback;
    const auto value = number(args[at]);
    if (!value) return unsupported("a part of a list that depends on data");
    return *value;
  };
  TRY(int64_t step, bound(3, 1));
  if (step == 0) return unsupported("a slice with a step of 0");
  TRY(int64_t start, bound(1, step > 0 ? 0 : size - 1));
  TRY(int64_t end, bound(2, step > 0 ? size : -size - 1));
  if (start < 0) start += size;
  if (end < 0) end += size;
  start = std::clamp<int64_t>(start, step > 0 ? 0 : -1, step > 0 ? size : size - 1);
  end = std::clamp<int64_t>(end, -1, size);
  std::string letters;
  Items items;
  for (int64_t i = start; step > 0 ? i < end : i > end; i += step) {
    if (text) {
      letters += args[0].arg.text[static_cast<size_t>(i)];
    } else {
      items.push_back(args[0].box->items[static_cast<size_t>(i)]);
    }
  }
  (void)in;
  if (text) return answer(Item(Arg(std::move(letters))));
  return answer(args[0].is(Item::Kind::kTuple) ? Item::tuple(std::move(items))
                                               : Item::list(std::move(items)));
}

Answer get(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 2) return not_mine();
  if (args[0].is_tensor() || args[0].is_number()) return not_mine();
  TRY(Item item, get_item(in, args[0], args[1]));
  return answer(std::move(item));
}
Answer set(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 3 || !args[0].box) return not_mine();
  TRY(Item item, set_item(in, args[0], args[1], args[2]));
  return answer(std::move(item));
}

Answer concat(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 2) return not_mine();
  if (!args[0].is_sequence() || !args[1].is_sequence()) return not_mine();
  if (args[0].box->sequence || args[1].box->sequence)
    return unsupported("lists whose length depends on data are joined");
  Items items = args[0].box->items;
  items.insert(items.end(), args[1].box->items.begin(), args[1].box->items.end());
  (void)in;
  return answer(args[0].is(Item::Kind::kTuple) ? Item::tuple(std::move(items))
                                               : Item::list(std::move(items)));
}
Answer repeat(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 2) return not_mine();
  Item list = args[0], times = args[1];
  if (times.is_sequence() || times.is_text()) std::swap(list, times);
  if (!list.is_sequence() && !list.is_text()) return not_mine();
  const auto count = number(times);
  if (!count || (list.box && list.box->sequence))
    return unsupported("a list repeated as often as the data say");
  (void)in;
  Items items;
  std::string text;
  for (int64_t i = 0; i < *count && i < (1 << 20); ++i) {
    if (list.is_text()) {
      text += list.arg.text;
    } else {
      items.insert(items.end(), list.box->items.begin(), list.box->items.end());
    }
    if (items.size() > (1u << 20) || text.size() > (1u << 24))
      return resource_error("a list of more than a million items");
  }
  if (list.is_text()) return answer(Item(Arg(std::move(text))));
  return answer(Item::list(std::move(items)));
}

Answer equal(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 2 || args[0].is_tensor() || args[1].is_tensor()) return not_mine();
  if (args[0].is_number() && args[1].is_number()) return not_mine();
  const auto same = known_equal(args[0], args[1]);
  if (same) return answer(Item(Arg(*same)));
  // Lists of numbers: all of them.
  if (args[0].is_sequence() && args[1].is_sequence() && !args[0].box->sequence &&
      !args[1].box->sequence && args[0].box->items.size() == args[1].box->items.size()) {
    Item all(Arg(true));
    for (size_t i = 0; i < args[0].box->items.size(); ++i) {
      TRY(Item one, in.invoke("torch.eq", {args[0].box->items[i], args[1].box->items[i]}));
      TRY(all, in.invoke("torch.__and__", {all, one}));
    }
    return answer(all);
  }
  return unsupported("a comparison of " + kind_of(args[0]) + " and " + kind_of(args[1]));
}
Answer unequal(Interpreter& in, Items& args, NamedItems& named) {
  TRY(std::optional<Item> same, equal(in, args, named));
  if (!same) return not_mine();
  TRY(Item differs, in.invoke("torch.__not__", {*same}));
  return answer(differs);
}

Answer contains(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 2) return not_mine();
  if (is_dict(args)) {
    bool found = false;
    TRY(size_t at, key_of(args[0], args[1], found));
    (void)at;
    return answer(Item(Arg(found)));
  }
  if (!args[0].is_sequence() || args[0].box->sequence) return not_mine();
  Item any(Arg(false));
  for (const Item& item : args[0].box->items) {
    TRY(Item one, in.invoke("torch.eq", {item, args[1]}));
    TRY(any, in.invoke("torch.__or__", {any, one}));
  }
  return answer(any);
}

Answer index_of(Interpreter&, Items& args, NamedItems&) {
  if (!is_list(args) || args.size() != 2 || args[0].box->sequence) return not_mine();
  for (const Item& item : args[0].box->items)
    if (item.is_none() || item.is_tensor()) return not_mine();
  for (size_t i = 0; i < args[0].box->items.size(); ++i) {
    const auto same = known_equal(args[0].box->items[i], args[1]);
    if (!same) return unsupported("a search for a value that depends on data");
    if (*same) return answer(Item(Arg(static_cast<int64_t>(i))));
  }
  return unsupported("a search for a value that the list does not have");
}

Answer keys(Interpreter&, Items& args, NamedItems&) {
  if (!is_dict(args)) return not_mine();
  return answer(Item::list(args[0].box->keys));
}
Answer values(Interpreter&, Items& args, NamedItems&) {
  if (!is_dict(args)) return not_mine();
  return answer(Item::list(args[0].box->items));
}
Answer items(Interpreter&, Items& args, NamedItems&) {
  if (!is_dict(args)) return not_mine();
  Items pairs;
  for (size_t i = 0; i < args[0].box->keys.size(); ++i)
    pairs.push_back(Item::tuple({args[0].box->keys[i], args[0].box->items[i]}));
  return answer(Item::list(std::move(pairs)));
}
Answer lookup(Interpreter&, Items& args, NamedItems&) {
  if (!is_dict(args) || args.size() < 2) return not_mine();
  bool found = false;
  TRY(size_t at, key_of(args[0], args[1], found));
  if (found) return answer(args[0].box->items[at]);
  return answer(args.size() > 2 ? args[2] : Item());
}
Answer update(Interpreter& in, Items& args, NamedItems&) {
  if (!is_dict(args) || args.size() != 2 || !args[1].is(Item::Kind::kDict)) return not_mine();
  const Box other = *args[1].box;
  for (size_t i = 0; i < other.keys.size(); ++i) {
    TRY(Item done, set_item(in, args[0], other.keys[i], other.items[i]));
  }
  return answer(Item());
}
Answer set_default(Interpreter& in, Items& args, NamedItems&) {
  if (!is_dict(args) || args.size() < 2) return not_mine();
  bool found = false;
  TRY(size_t at, key_of(args[0], args[1], found));
  if (found) return answer(args[0].box->items[at]);
  const Item value = args.size() > 2 ? args[2] : Item();
  TRY(Item done, set_item(in, args[0], args[1], value));
  return answer(value);
}
Answer pop_item(Interpreter& in, Items& args, NamedItems&) {
  if (!is_dict(args) || args[0].box->items.empty()) return not_mine();
  in.touch(args[0].box);
  Box& dict = *args[0].box;
  const Item pair = Item::tuple({dict.keys.back(), dict.items.back()});
  dict.keys.pop_back();
  dict.items.pop_back();
  return answer(pair);
}
Answer remove_value(Interpreter& in, Items& args, NamedItems&) {
  if (!is_list(args) || args.size() != 2 || args[0].box->sequence) return not_mine();
  for (size_t i = 0; i < args[0].box->items.size(); ++i) {
    const auto same = known_equal(args[0].box->items[i], args[1]);
    if (!same) return unsupported("a search for a value that depends on data");
    if (!*same) continue;
    in.touch(args[0].box);
    args[0].box->items.erase(args[0].box->items.begin() + static_cast<std::ptrdiff_t>(i));
    return answer(Item());
  }
  return unsupported("a search for a value that the list does not have");
}
Answer count_of(Interpreter& in, Items& args, NamedItems&) {
  if (!is_list(args) || args.size() != 2 || args[0].box->sequence) return not_mine();
  Item total(Arg(0));
  for (const Item& item : args[0].box->items) {
    TRY(Item one, in.invoke("torch.eq", {item, args[1]}));
    TRY(one, in.invoke("torch.Int", {one}));
    TRY(total, in.invoke("torch.add", {total, one}));
  }
  return answer(total);
}
/// The given list, or where there is none as many defaults as the other list has.
Answer list_with_default(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 2 || !args[1].is_sequence()) return not_mine();
  if (args[0].is_none()) return answer(args[1]);
  (void)in;
  if (!args[0].is_sequence()) return not_mine();
  Items items = args[0].box->items;
  for (size_t i = 0; i < items.size() && i < args[1].box->items.size(); ++i)
    if (items[i].is_none()) items[i] = args[1].box->items[i];
  return answer(Item::list(std::move(items)));
}
Answer make_dict(Interpreter& in, Items& args, NamedItems&) {
  if (is_dict(args))
    return answer(Item::of(Item::Kind::kDict, std::make_shared<Box>(*args[0].box)));
  Item dict = Item::of(Item::Kind::kDict, std::make_shared<Box>());
  if (!args.empty() && args[0].is_sequence())
    for (const Item& pair : args[0].box->items) {
      if (!pair.box || pair.box->items.size() != 2) return not_mine();
      TRY(Item done, set_item(in, dict, pair.box->items[0], pair.box->items[1]));
    }
  return answer(dict);
}

/// min, max, sum, any and all of a list of numbers.
template <int Which>
Answer reduce(Interpreter& in, Items& args, NamedItems&) {
  if (args.size() != 1 || !is_list(args)) return not_mine();
  if (args[0].box->sequence && !args[0].box->keys.empty() && args[0].box->keys[0].is_number() &&
      Which < 3) {
    // The numbers as a tensor.
    AtenContext& c = in.context();
    const Item& like = args[0].box->keys[0];
    const DType own = like.is_arg(AKind::kInt) ? DType::kInt64 : DType::kFloat64;
    Value* sequence = args[0].box->sequence;
    if (Which == 2) sequence = c.op("SequenceInsert", {sequence, c.b.scalar(0, own)});
    Value* joined = c.op("ConcatFromSequence", {sequence}, {{"axis", 0}, {"new_axis", 1}});
    c.b.set_type(joined, own, SymShape(1));
    static constexpr const char* kNodes[] = {"ReduceMin", "ReduceMax", "ReduceSum"};
    Value* total = c.op(kNodes[Which < 3 ? Which : 2], {joined}, {{"keepdims", 0}});
    if (own == DType::kInt64) return answer(Item(Arg(SymInt(SymDim(), total))));
    Arg arg(0.0);
    arg.computed = total;
    return answer(Item(std::move(arg)));
  }
  if (args[0].box->sequence || args[0].box->items.empty()) return not_mine();
  for (const Item& item : args[0].box->items)
    if (!item.is_number()) return not_mine();
  static constexpr const char* kSteps[] = {"prim.min", "prim.max", "torch.add", "torch.__or__",
                                           "torch.__and__"};
  Item total = args[0].box->items[0];
  for (size_t i = 1; i < args[0].box->items.size(); ++i) {
    TRY(total, in.invoke(kSteps[Which], {total, args[0].box->items[i]}));
  }
  return answer(total);
}

Answer range(Interpreter& in, Items& args, NamedItems&) {
  int64_t bounds[3] = {0, 0, 1};
  for (size_t i = 0; i < args.size() && i < 3; ++i) {
    const auto value = number(args[i]);
    if (!value) return unsupported("a range that depends on data");
    bounds[i] = *value;
  }
  if (args.size() == 1) std::swap(bounds[0], bounds[1]);
  if (bounds[2] == 0) return unsupported("a range with a step of 0");
  Items items;
  for (int64_t i = bounds[0]; bounds[2] > 0 ? i < bounds[1] : i > bounds[1]; i += bounds[2]) {
    if (items.size() > (1u << 20)) return resource_error("a range of more than a million numbers");
    items.emplace_back(Arg(i));
  }
  (void)in;
  return answer(Item::list(std::move(items)));
}

constexpr BuiltinRow kContainerRows[] = {
    {"len", length},
    {"append", append},
    {"insert", insert},
    {"extend", extend},
    {"pop", pop},
    {"Delete", remove_item},
    {"clear", clear},
    {"reverse", reverse},
    {"sort", sort},
    {"sorted", sorted},
    {"list", copy_list},
    {"copy", copy_any},
    {"slice", slice},
    {"__getitem__", get},
    {"_set_item", set},
    {"add", concat},
    {"add_", extend},
    {"mul", repeat},
    {"eq", equal},
    {"ne", unequal},
    {"__contains__", contains},
    {"index", index_of},
    {"count", count_of},
    {"remove", remove_value},
    {"list_with_default", list_with_default},
    {"_list_with_default", list_with_default},
    {"setdefault", set_default},
    {"popitem", pop_item},
    {"keys", keys},
    {"values", values},
    {"items", items},
    {"get", lookup},
    {"update", update},
    {"dict", make_dict},
    {"min", reduce<0>},
    {"max", reduce<1>},
    {"sum", reduce<2>},
    {"any", reduce<3>},
    {"all", reduce<4>},
    {"range", range},
};

}  // namespace

std::span<const BuiltinRow> container_builtins() { return kContainerRows; }

void pin(const Item& item) {
  if (item.is_tensor()) AtenContext::pin(origin_of(item.arg.tensor));
}

std::optional<bool> known_equal(const Item& a, const Item& b) {
  if (a.kind == Item::Kind::kMaybe || b.kind == Item::Kind::kMaybe) return std::nullopt;
  if (a.is_text() && b.is_text()) {
    if (a.arg.index != 0 || b.arg.index != 0) return std::nullopt;
    return a.arg.text == b.arg.text;
  }
  if (a.is_text() || b.is_text()) return false;
  if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
  if (a.is_number() && b.is_number()) {
    if (a.arg.computed || b.arg.computed) return std::nullopt;
    if (a.is_arg(AKind::kFloat) || b.is_arg(AKind::kFloat)) {
      const auto value = [](const Item& item) -> std::optional<double> {
        if (item.is_arg(AKind::kFloat)) return item.arg.real;
        if (!item.arg.integer.is_number()) return std::nullopt;
        return static_cast<double>(item.arg.integer.dim.value());
      };
      const auto x = value(a), y = value(b);
      return x && y ? std::optional(*x == *y) : std::nullopt;
    }
    if (a.arg.integer.dim.equals(b.arg.integer.dim)) return true;
    if (a.arg.integer.dim.differs(b.arg.integer.dim)) return false;
    return std::nullopt;
  }
  if (a.is_arg(AKind::kDType) || b.is_arg(AKind::kDType))
    return a.is_arg(AKind::kDType) && b.is_arg(AKind::kDType) && a.arg.dtype == b.arg.dtype;
  if (a.is_arg(AKind::kOther) && b.is_arg(AKind::kOther)) return true;  // there is one device
  if (a.is(Item::Kind::kObject) && b.is(Item::Kind::kObject) && a.box->type &&
      a.box->type->base == "Enum")
    return a.box == b.box;
  if (a.is_sequence() && b.is_sequence() && !a.box->sequence && !b.box->sequence) {
    if (a.box->items.size() != b.box->items.size()) return false;
    bool all = true;
    for (size_t i = 0; i < a.box->items.size(); ++i) {
      const auto one = known_equal(a.box->items[i], b.box->items[i]);
      if (one == false) return false;
      if (!one) all = false;
    }
    return all ? std::optional(true) : std::nullopt;
  }
  return std::nullopt;
}

Result<Item> get_item(Interpreter& in, const Item& base, const Item& key) {
  if (base.kind == Item::Kind::kMaybe) return get_item(in, base.box->items[0], key);
  if (base.is(Item::Kind::kDict)) {
    bool found = false;
    TRY(size_t at, key_of(base, key, found));
    if (!found) return unsupported("a key that the dict does not have");
    return base.box->items[at];
  }
  if (base.is_text()) {
    const auto at = number(key);
    const auto size = static_cast<int64_t>(base.arg.text.size());
    const int64_t index = at ? (*at < 0 ? *at + size : *at) : -1;
    if (index < 0 || index >= size) return unsupported("an index beyond a string");
    return Item(Arg(std::string(1, base.arg.text[static_cast<size_t>(index)])));
  }
  if (base.is(Item::Kind::kObject)) {
    // Of a ModuleList or ModuleDict: its submodule of that name.
    if (base.box->type && base.box->type->methods.contains("__getitem__"))
      return in.call_method(base, "__getitem__", {key});
    auto at = number(key);
    if (at && *at < 0) {
      int64_t count = 0;
      while (base.box->attributes.contains(std::to_string(count))) ++count;
      *at += count;
    }
    if (!at && !key.is_text()) return unsupported("a submodule at " + kind_of(key));
    return in.attribute(base, at ? std::to_string(*at) : key.arg.text);
  }
  if (!base.is_sequence()) return unsupported("an element of " + kind_of(base));
  TRY(auto at, index_in(base, key));
  if (at) return base.box->items[*at];
  if (!key.is_arg(AKind::kInt)) return unsupported("an element at " + kind_of(key));
  AtenContext& c = in.context();
  if (base.box->sequence) {
    Value* value = c.op("SequenceAt", {base.box->sequence, position(in, key)});
    return from_element(in, *base.box, value);
  }
  // One of several known values.
  std::vector<Value*> values;
  for (const Item& item : base.box->items) {
    TRY(Value * value, element(in, item));
    values.push_back(value);
  }
  if (values.empty()) return unsupported("an element of an empty list");
  Box like;
  like.keys.push_back(base.box->items[0]);
  Value* all = c.op("SequenceConstruct", values);
  return from_element(in, like, c.op("SequenceAt", {all, position(in, key)}));
}

Result<Item> set_item(Interpreter& in, const Item& base, const Item& key, Item value) {
  if (base.is(Item::Kind::kDict)) {
    bool found = false;
    TRY(size_t at, key_of(base, key, found));
    in.touch(base.box);
    if (found) {
      base.box->items[at] = std::move(value);
    } else {
      base.box->keys.push_back(key);
      base.box->items.push_back(std::move(value));
    }
    return Item();
  }
  if (!base.is(Item::Kind::kList)) return unsupported("a write to an element of " + kind_of(base));
  TRY(auto at, index_in(base, key));
  in.touch(base.box);
  if (at) {
    base.box->items[*at] = std::move(value);
    return Item();
  }
  if (!base.box->sequence)
    return unsupported("a write to an element of a list at a place that depends on data");
  AtenContext& c = in.context();
  TRY(Value * made, element(in, value));
  Value* where = position(in, key);
  Value* without = c.op("SequenceErase", {base.box->sequence, where});
  // Negative positions count from the end of the shortened list.
  base.box->sequence = c.op("SequenceInsert", {without, made, where});
  return Item();
}

}  // namespace tombolo::script
