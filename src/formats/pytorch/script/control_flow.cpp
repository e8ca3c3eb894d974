// Branches and loops that the model itself must decide: If and Loop. What a branch or an iteration
// changes (variables, containers, tensors written in place) is found by running it, carried through
// the node, and everything else is left as it was.

#include <algorithm>
#include <unordered_set>

#include "formats/pytorch/script/builtins.h"

namespace tombolo::script {

namespace {

using PKind = Pattern::Kind;
constexpr int kMaxTries = 16;

/// Whether two items are the same value for all that is known now.
bool same(const Item& a, const Item& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == Item::Kind::kUninitialized) return true;
  if (a.kind == Item::Kind::kLazy) return a.lazy == b.lazy;
  if (a.kind != Item::Kind::kArg) {
    if (origin_of(a.box) == origin_of(b.box)) return true;
    if (!a.is(Item::Kind::kTuple) || a.box->items.size() != b.box->items.size()) return false;
    for (size_t i = 0; i < a.box->items.size(); ++i)
      if (!same(a.box->items[i], b.box->items[i])) return false;
    return true;
  }
  if (a.arg.kind != b.arg.kind) return false;
  switch (a.arg.kind) {
    case Arg::Kind::kTensor:
      return origin_of(a.arg.tensor) == origin_of(b.arg.tensor);
    case Arg::Kind::kInt:
      return (a.arg.integer.value != nullptr && a.arg.integer.value == b.arg.integer.value) ||
             a.arg.integer.dim.equals(b.arg.integer.dim);
    case Arg::Kind::kFloat:
      return a.arg.computed || b.arg.computed ? a.arg.computed == b.arg.computed
                                              : a.arg.real == b.arg.real;
    case Arg::Kind::kBool:
      return a.arg.computed || b.arg.computed ? a.arg.computed == b.arg.computed
                                              : a.arg.integer.dim.equals(b.arg.integer.dim);
    case Arg::Kind::kComplex:
      return a.arg.real == b.arg.real && a.arg.imaginary == b.arg.imaginary;
    case Arg::Kind::kString:
      return a.arg.text == b.arg.text;
    case Arg::Kind::kDType:
      return a.arg.dtype == b.arg.dtype;
    default:
      return true;
  }
}

SymShape merged(const SymShape& a, const SymShape& b) {
  SymShape result;
  for (size_t i = 0; i < a.size(); ++i) result.push_back(a[i].equals(b[i]) ? a[i] : SymDim());
  return result;
}

/// Widens `known` to what `seen` needs too; true when that changed it.
bool widen(Pattern& known, const Pattern& seen) {
  for (const Ref& origin : seen.origins)
    if (std::find(known.origins.begin(), known.origins.end(), origin) == known.origins.end())
      known.origins.push_back(origin);
  known.stale = known.stale || seen.stale;
  if (known.kind == PKind::kSame) {
    if (seen.kind == PKind::kSame) return false;
    known = seen;
    return true;
  }
  if (seen.kind == PKind::kSame) return false;
  if (known.kind != seen.kind) {
    if (known.kind == PKind::kMaybe && !known.parts.empty()) return widen(known.parts[0], seen);
    if (known.kind == PKind::kSequence) return false;
    known = seen;
    return true;
  }
  bool changed = false;
  if (known.kind == PKind::kLeaf && known.has_shape) {
    if (!seen.has_shape || known.shape.size() != seen.shape.size()) {
      known.has_shape = false;
      return true;
    }
    for (size_t i = 0; i < known.shape.size(); ++i)
      if (!known.shape[i].is_unknown() && !known.shape[i].equals(seen.shape[i])) {
        known.shape[i] = SymDim();
        changed = true;
      }
  }
  for (size_t i = 0; i < known.parts.size() && i < seen.parts.size(); ++i)
    changed = widen(known.parts[i], seen.parts[i]) || changed;
  return changed;
}

}  // namespace

void discard(Graph& body) {
  while (!body.outputs().empty()) body.remove_output(body.outputs().size() - 1);
  for (Node* node = body.last_node(); node != nullptr;) {
    Node* previous = node->previous();
    for (Attribute& attribute : node->attributes())
      if (Graph* inner = attribute.graph()) discard(*inner);
    body.erase(node);
    node = previous;
  }
}

void remove_dead(Graph& graph) {
  // Users come after producers: from the last node to the first.
  for (Node* node = graph.last_node(); node != nullptr;) {
    Node* previous = node->previous();
    bool used = false;
    for (const Value* output : node->outputs()) used = used || (output && output->has_uses());
    for (Attribute& attribute : node->attributes())
      if (Graph* body = attribute.graph()) {
        if (used) {
          remove_dead(*body);
        } else {
          discard(*body);
        }
      }
    if (!used) graph.erase(node);
    node = previous;
  }
  const std::vector<Value*> initializers = graph.initializers();
  for (Value* value : initializers)
    if (!value->has_uses() && !value->is_input()) graph.remove_initializer(value);
}

void Interpreter::touch(const BoxRef& box) {
  if (!journals_.empty()) journals_.back().boxes.emplace_back(box, *box);
}

void Interpreter::begin_journal() {
  journals_.emplace_back();
  c.journal = &journals_.back().cells;
}

Interpreter::Outcome Interpreter::end_journal() {
  Outcome outcome;
  Journal& journal = journals_.back();
  std::unordered_set<const void*> seen;
  for (const auto& [box, before] : journal.boxes)
    if (seen.insert(box.get()).second) outcome.boxes.emplace_back(box, *box);
  for (const auto& [cell, before] : journal.cells)
    if (seen.insert(cell.get()).second && !cell->view && cell->version != before.version)
      outcome.cells.emplace_back(cell, cell->value);
  for (const auto& [cell, before] : journal.cells)
    if (cell->stale && !before.stale) outcome.stale.push_back(cell);
  // Undone from the last change to the first; what may share memory stays.
  for (size_t i = journal.boxes.size(); i-- > 0;) *journal.boxes[i].first = journal.boxes[i].second;
  for (size_t i = journal.cells.size(); i-- > 0;) {
    Cell& cell = *journal.cells[i].first;
    auto memories = std::move(cell.memories);
    const bool pinned = cell.pinned;
    cell = journal.cells[i].second;
    cell.memories = std::move(memories);
    cell.pinned = pinned;
  }
  journals_.pop_back();
  c.journal = journals_.empty() ? nullptr : &journals_.back().cells;
  return outcome;
}

/// What was asked from the archive since: it outlives a branch too.
void Interpreter::add_loaded(std::unordered_set<const void*>& alive) const {
  for (const State& state : states_) alive.insert(state.cell.get());
  for (const auto& [value, item] : loaded_) {
    if (item.is_tensor()) alive.insert(item.arg.tensor.get());
    if (item.box) alive.insert(item.box.get());
  }
}

/// Everything that the program can reach: containers and tensors that outlive a branch.
std::unordered_set<const void*> Interpreter::reachable() {
  std::unordered_set<const void*> found;
  std::vector<Item> stack;
  for (const auto& frame : frames_)
    for (const auto& [name, item] : frame->locals) stack.push_back(item);
  for (const auto& [value, item] : loaded_) stack.push_back(item);
  while (!stack.empty()) {
    const Item item = std::move(stack.back());
    stack.pop_back();
    if (item.is_tensor()) {
      Ref cell = item.arg.tensor;
      while (cell && found.insert(cell.get()).second)
        cell = cell->view ? cell->view->base : nullptr;
      continue;
    }
    if (!item.box || !found.insert(item.box.get()).second) continue;
    for (const Item& part : item.box->items) stack.push_back(part);
    for (const auto& [name, part] : item.box->attributes) stack.push_back(part);
  }
  return found;
}

// ---- patterns ----

Result<Pattern> Interpreter::unify(const Item& a, const Item& b, bool force, int depth) {
  if (depth > 50) return unsupported("values nested too deeply");
  if (!force && same(a, b)) {
    Pattern pattern;
    pattern.same = origin_of(a);
    return pattern;
  }
  Pattern pattern;
  if (a.kind == Item::Kind::kUninitialized) return unify(b, b, true, depth + 1);
  if (b.kind == Item::Kind::kUninitialized) return unify(a, a, true, depth + 1);
  const bool none_a = a.is_none(), none_b = b.is_none();
  const bool maybe_a = a.kind == Item::Kind::kMaybe, maybe_b = b.kind == Item::Kind::kMaybe;
  if (none_a && none_b) {
    pattern.same = a;
    return pattern;
  }
  if (none_a || none_b || maybe_a || maybe_b) {
    const Item& inner_a = maybe_a ? a.box->items[0] : none_a ? b : a;
    const Item& inner_b = maybe_b ? b.box->items[0] : none_b ? a : b;
    const Item& first = inner_a.kind == Item::Kind::kMaybe ? inner_a.box->items[0] : inner_a;
    const Item& second = inner_b.kind == Item::Kind::kMaybe ? inner_b.box->items[0] : inner_b;
    pattern.kind = PKind::kMaybe;
    TRY(Pattern inner, unify(first, second, true, depth + 1));
    pattern.parts.push_back(std::move(inner));
    return pattern;
  }
  if (a.kind == Item::Kind::kArg && b.kind == Item::Kind::kArg) {
    pattern.kind = PKind::kLeaf;
    if (a.is_tensor() && b.is_tensor()) {
      Value *first = frozen_value(a.arg.tensor), *second = frozen_value(b.arg.tensor);
      if (a.arg.tensor->dtype != b.arg.tensor->dtype)
        return unsupported("a tensor that is " + pytorch::torch_name(a.arg.tensor->dtype) +
                           " on one path and " + pytorch::torch_name(b.arg.tensor->dtype) +
                           " on another");
      pattern.dtype = c.b.dtype(first);
      pattern.torch_dtype = a.arg.tensor->dtype;
      pattern.has_shape =
          c.b.has_shape(first) && c.b.has_shape(second) && c.b.rank(first) == c.b.rank(second);
      if (pattern.has_shape) pattern.shape = merged(c.b.shape(first), c.b.shape(second));
      pattern.same = a;
      pattern.origins = {origin_of(a.arg.tensor), origin_of(b.arg.tensor)};
      pattern.stale =
          AtenContext::root(a.arg.tensor)->stale || AtenContext::root(b.arg.tensor)->stale;
      return pattern;
    }
    if (a.is_number() && b.is_number()) {
      const auto kind_a = a.arg.kind, kind_b = b.arg.kind;
      pattern.same = kind_a == Arg::Kind::kFloat ? a : b;
      if (kind_a != kind_b && (kind_a == Arg::Kind::kBool || kind_b == Arg::Kind::kBool))
        return unsupported("a number that is a bool on one path only");
      if (kind_a == Arg::Kind::kComplex || kind_b == Arg::Kind::kComplex)
        return unsupported("a complex number that depends on data");
      const bool real = kind_a == Arg::Kind::kFloat || kind_b == Arg::Kind::kFloat;
      pattern.dtype = real                         ? DType::kFloat64
                      : kind_a == Arg::Kind::kBool ? DType::kBool
                                                   : DType::kInt64;
      pattern.has_shape = true;
      return pattern;
    }
    if (same(a, b)) {
      pattern.kind = PKind::kSame;
      pattern.same = a;
      return pattern;
    }
    return unsupported(std::string(pytorch::kind_name(a.arg)) + " that depends on data");
  }
  if (a.kind != b.kind)
    return unsupported("a variable that is " + kind_of(a) + " on one path and " + kind_of(b) +
                       " on another");
  if (a.kind == Item::Kind::kObject) {
    if (a.box != b.box) return unsupported("an object that depends on data");
    pattern.same = a;
    return pattern;
  }
  pattern.same = a;
  const bool list = a.kind == Item::Kind::kList;
  if (list && (a.box->sequence || b.box->sequence || a.box->items.size() != b.box->items.size())) {
    pattern.kind = PKind::kSequence;
    Pattern element;
    bool known = false;
    for (const BoxRef& box : {a.box, b.box}) {
      for (const Item& item : box->items) {
        TRY(Pattern seen, unify(item, item, true, depth + 1));
        if (seen.kind != PKind::kLeaf)
          return unsupported("a list of " + kind_of(item) + " whose length depends on data");
        if (!known) {
          element = std::move(seen);
          known = true;
        } else {
          (void)widen(element, seen);
        }
      }
      if (box->sequence && !box->keys.empty()) {
        TRY(Pattern seen, unify(box->keys[0], box->keys[0], true, depth + 1));
        if (!known) element = std::move(seen);
        known = true;
      }
    }
    if (!known) return unsupported("an empty list of an unknown type");
    pattern.parts.push_back(std::move(element));
    return pattern;
  }
  if (a.kind == Item::Kind::kDict) {
    bool fits = a.box->keys.size() == b.box->keys.size();
    for (size_t i = 0; fits && i < a.box->keys.size(); ++i)
      fits = same(a.box->keys[i], b.box->keys[i]);
    if (!fits) return unsupported("a dict whose keys depend on data");
    pattern.kind = PKind::kDict;
  } else {
    if (a.box->items.size() != b.box->items.size())
      return unsupported("a tuple whose length depends on data");
    pattern.kind = list ? PKind::kList : PKind::kTuple;
  }
  for (size_t i = 0; i < a.box->items.size(); ++i) {
    TRY(Pattern part, unify(a.box->items[i], b.box->items[i], force, depth + 1));
    pattern.parts.push_back(std::move(part));
  }
  return pattern;
}

/// The value as an output of the current graph: one that a node of it makes, and only for this. (An
/// Identity made by op() would be folded where the value is a constant.)
Value* own_output(AtenContext& c, Value* value) {
  const bool mine =
      &value->graph() == &c.b.graph() && value->producer() != nullptr && value->output_uses() == 0;
  if (mine) return value;
  return c.b.finish(c.b.begin("Identity", std::vector<Value*>{value}), 1).front();
}

Result<Value*> Interpreter::leaf_value(const Item& item, const Pattern& pattern) {
  if (item.is_tensor()) return frozen_value(item.arg.tensor);
  if (item.is_number()) return c.operand_of(item.arg, pattern.dtype);
  if (!item.is_none() && item.kind != Item::Kind::kUninitialized)
    return unsupported(kind_of(item) + " where the other path has a tensor or number");
  // Never read: any value of the type will do.
  std::vector<int64_t> dims;
  for (const SymDim& dim : pattern.shape) dims.push_back(dim.is_value() ? dim.value() : 1);
  TRY(Tensor zeros, Tensor::allocate(pattern.dtype, dims));
  std::fill(zeros.mutable_bytes().begin(), zeros.mutable_bytes().end(), std::byte{0});
  return c.b.constant(zeros, "unused");
}

Status Interpreter::lower(const Item& item, const Pattern& pattern, std::vector<Value*>& out) {
  switch (pattern.kind) {
    case PKind::kSame:
      return ok();
    case PKind::kLeaf: {
      TRY(Value * value, leaf_value(item, pattern));
      out.push_back(value);
      return ok();
    }
    case PKind::kMaybe: {
      const bool maybe = item.kind == Item::Kind::kMaybe;
      const bool nothing = item.is_none() || item.kind == Item::Kind::kUninitialized;
      out.push_back(maybe ? item.box->present : c.scalar(nothing ? 0 : 1, DType::kBool));
      return lower(maybe ? item.box->items[0] : item, pattern.parts[0], out);
    }
    case PKind::kSequence: {
      if (item.box && item.box->sequence) {
        out.push_back(item.box->sequence);
        return ok();
      }
      std::vector<Value*> values;
      if (item.kind == Item::Kind::kList)
        for (const Item& part : item.box->items) {
          pin(part);
          TRY(Value * value, leaf_value(part, pattern.parts[0]));
          values.push_back(value);
        }
      out.push_back(values.empty() ? c.op("SequenceEmpty", {},
                                          {{"dtype", static_cast<int64_t>(pattern.parts[0].dtype)}})
                                   : c.op("SequenceConstruct", values));
      return ok();
    }
    default:
      break;
  }
  const bool nothing = item.is_none() || item.kind == Item::Kind::kUninitialized;
  if (!nothing && (!item.box || item.box->items.size() != pattern.parts.size()))
    return unsupported("a " + kind_of(item) + " whose length depends on data");
  for (size_t i = 0; i < pattern.parts.size(); ++i)
    CHECK_OK(lower(nothing ? item : item.box->items[i], pattern.parts[i], out));
  return ok();
}

Item Interpreter::raise(const Pattern& pattern, const std::vector<Value*>& values, size_t& at) {
  switch (pattern.kind) {
    case PKind::kSame:
      return pattern.same;
    case PKind::kLeaf: {
      Value* value = values[at++];
      if (pattern.has_shape && !c.b.has_shape(value))
        c.b.set_type(value, pattern.dtype, pattern.shape);
      if (pattern.torch_dtype != DType::kUndefined) {
        Ref cell = c.cell(value, pattern.torch_dtype);
        if (pattern.same.is_tensor()) cell->quantization = pattern.same.arg.tensor->quantization;
        for (const Ref& origin : pattern.origins)
          if (origin->layout != pytorch::CellLayout::kContiguous)
            cell->layout = pytorch::CellLayout::kUnknown;
        cell->stale = pattern.stale;
        raised_.emplace_back(cell, pattern.origins);
        return Item(Arg(cell));
      }
      Arg arg;
      if (pattern.dtype == DType::kInt64) return Item(Arg(SymInt(SymDim(), value)));
      arg.kind = pattern.dtype == DType::kBool ? Arg::Kind::kBool : Arg::Kind::kFloat;
      arg.computed = value;
      return Item(std::move(arg));
    }
    case PKind::kMaybe: {
      auto box = std::make_shared<Box>();
      box->present = values[at++];
      box->items.push_back(raise(pattern.parts[0], values, at));
      return Item::of(Item::Kind::kMaybe, std::move(box));
    }
    case PKind::kSequence: {
      auto box = std::make_shared<Box>();
      box->sequence = values[at++];
      // What its items are like.
      box->keys.push_back(element_like(pattern.parts[0]));
      return Item::of(Item::Kind::kList, std::move(box));
    }
    default:
      break;
  }
  auto box = std::make_shared<Box>();
  if (pattern.same.box) {
    box->keys = pattern.same.box->keys;
    box->names = pattern.same.box->names;
  }
  for (const Pattern& part : pattern.parts) box->items.push_back(raise(part, values, at));
  return Item::of(pattern.kind == PKind::kList    ? Item::Kind::kList
                  : pattern.kind == PKind::kTuple ? Item::Kind::kTuple
                                                  : Item::Kind::kDict,
                  std::move(box));
}

/// An item that tells type and rank of a sequence's elements; its value is never used.
Item Interpreter::element_like(const Pattern& pattern) {
  Pattern like = pattern;
  std::vector<int64_t> dims;
  for (const SymDim& dim : pattern.shape) dims.push_back(dim.is_value() ? dim.value() : 1);
  auto zeros = Tensor::allocate(pattern.dtype, dims);
  if (!zeros) return Item();
  std::fill(zeros->mutable_bytes().begin(), zeros->mutable_bytes().end(), std::byte{0});
  Value* value = c.b.constant(*zeros, "like");
  size_t at = 0;
  return raise(like, {value}, at);
}

// ---- If ----

Result<Flow> Interpreter::dynamic_if(const Stmt& stmt, Value* condition) {
  struct Sides : Branches {
    Interpreter& in;
    const Stmt& stmt;
    Sides(Interpreter& owner, const Stmt& statement) : in(owner), stmt(statement) {}
    Result<Flow> run(int side) override {
      return in.execute(side == 0 ? stmt.body : stmt.otherwise);
    }
  } sides(*this, stmt);
  return branch(condition, sides);
}

/// What a call gives for a value that may be None: with the value, or with None.
Result<Item> Interpreter::choose(const Item& maybe, Choice& choice) {
  struct Sides : Branches {
    Interpreter& in;
    const Item& maybe;
    Choice& choice;
    Sides(Interpreter& owner, const Item& item, Choice& what)
        : in(owner), maybe(item), choice(what) {}
    Result<Flow> run(int side) override {
      TRY(in.frames_.back()->result, choice.run(side == 0 ? maybe.box->items[0] : Item()));
      return Flow::kReturn;
    }
  } sides(*this, maybe, choice);
  const Item kept = frames_.back()->result;
  TRY(Flow flow, branch(maybe.box->present, sides));
  (void)flow;
  Item result = frames_.back()->result;
  frames_.back()->result = kept;
  return result;
}

Result<Flow> Interpreter::branch(Value* condition, Branches& sides) {
  Frame& frame = *frames_.back();
  const auto before = frame.locals;
  auto alive = reachable();
  Node* node = c.b.begin("If", std::vector<Value*>{condition});
  Graph* graphs[2] = {&node->set_graph("then_branch"), &node->set_graph("else_branch")};
  Outcome outcomes[2];
  for (int side = 0; side < 2; ++side) {
    begin_journal();
    c.enter(*graphs[side]);
    // A branch on whether a value is there knows it.
    std::map<std::string, Item> refined;
    for (auto& [name, item] : frame.locals) {
      if (!item.is(Item::Kind::kMaybe)) continue;
      const Node* asked = condition->producer();
      const bool direct = item.box->present == condition;
      const bool inverted =
          !direct && asked && asked->op_type() == "Not" && asked->input(0) == item.box->present;
      if (!direct && !inverted) continue;
      item = (side == 0) == direct ? item.box->items[0] : Item();
      refined[name] = item;
    }
    auto flow = sides.run(side);
    Outcome seen;
    if (flow.ok()) {
      for (const auto& [name, item] : frame.locals) {
        const auto old = before.find(name);
        const auto known = refined.find(name);
        if (known != refined.end() && same(known->second, item)) {
          seen.locals[name] = old->second;
          continue;
        }
        const bool kept = old != before.end() && same(old->second, item);
        seen.locals[name] = kept && journals_.back().cells.empty() ? item : frozen(item);
      }
      if (*flow == Flow::kReturn) seen.result = frozen(frame.result);
      seen.returned = *flow == Flow::kReturn;
      // Contents of containers are looked at while the branch's state holds.
      for (auto& [box, old] : journals_.back().boxes) {
        for (Item& part : box->items) part = frozen(part);
        for (auto& [name, part] : box->attributes) part = frozen(part);
      }
    }
    c.leave();
    Outcome changed = end_journal();
    frame.locals = before;
    if (!flow.ok()) return std::move(flow).error();
    if (*flow == Flow::kBreak || *flow == Flow::kContinue)
      return unsupported("a loop that is left inside of a branch that depends on data");
    seen.boxes = std::move(changed.boxes);
    seen.cells = std::move(changed.cells);
    seen.stale = std::move(changed.stale);
    outcomes[side] = std::move(seen);
  }
  add_loaded(alive);
  if (outcomes[0].returned != outcomes[1].returned)
    return unsupported("a return inside of a branch that depends on data");

  // Every place that may differ, with what either side has there.
  struct Place {
    enum { kLocal, kBox, kCell, kResult } kind;
    std::string name;
    BoxRef box;
    Ref cell;
    Item sides[2];
    Pattern pattern;
  };
  std::vector<Place> places;
  for (const auto& [name, item] : outcomes[0].locals) {
    const auto other = outcomes[1].locals.find(name);
    if (other == outcomes[1].locals.end()) continue;
    places.push_back({Place::kLocal, name, nullptr, nullptr, {item, other->second}, {}});
  }
  if (outcomes[0].returned)
    places.push_back(
        {Place::kResult, "", nullptr, nullptr, {outcomes[0].result, outcomes[1].result}, {}});
  const auto content = [](const Box& box) {
    // Of objects too: attributes as a dict.
    auto copy = std::make_shared<Box>(box);
    Item::Kind kind = Item::Kind::kList;
    if (!box.keys.empty() && !box.sequence) kind = Item::Kind::kDict;
    if (!box.attributes.empty() || box.type) {
      kind = Item::Kind::kDict;
      copy->keys.clear();
      copy->items.clear();
      for (const auto& [name, item] : box.attributes) {
        copy->keys.push_back(Item(Arg(name)));
        copy->items.push_back(item);
      }
    }
    return Item::of(kind, copy);
  };
  std::unordered_set<const void*> seen;
  for (const Outcome& outcome : outcomes)
    for (const auto& [box, after] : outcome.boxes) {
      if (!alive.contains(box.get()) || !seen.insert(box.get()).second) continue;
      Place place{Place::kBox, "", box, nullptr, {content(*box), content(*box)}, {}};
      for (int side = 0; side < 2; ++side)
        for (const auto& [touched, now] : outcomes[side].boxes)
          if (touched == box) place.sides[side] = content(now);
      places.push_back(std::move(place));
    }
  for (const Outcome& outcome : outcomes)
    for (const auto& [cell, after] : outcome.cells) {
      if (!alive.contains(cell.get()) || !seen.insert(cell.get()).second) continue;
      Place place{Place::kCell, "", nullptr, cell, {}, {}};
      for (int side = 0; side < 2; ++side) {
        Value* value = cell->value;
        for (const auto& [written, now] : outcomes[side].cells)
          if (written == cell) value = now;
        place.sides[side] = Item(Arg(c.cell(value, cell->dtype)));
      }
      places.push_back(std::move(place));
    }
  const int empty = empty_side(condition);
  for (Place& place : places) {
    if (empty >= 0 && place.sides[0].is_tensor() && place.sides[1].is_tensor()) {
      c.enter(*graphs[empty]);
      place.sides[empty] = empty_like(place.sides[empty], place.sides[1 - empty]);
      c.leave();
    }
    auto pattern = unify(place.sides[0], place.sides[1], false, 0);
    if (!pattern.ok()) {
      // A variable that nobody reads afterwards does no harm.
      if (place.kind == Place::kLocal && !before.contains(place.name)) {
        place.pattern.same.kind = Item::Kind::kUninitialized;
        continue;
      }
      Error error = std::move(pattern).error();
      if (place.kind == Place::kLocal)
        return std::move(error).at("variable \"" + place.name + "\"");
      return error;
    }
    place.pattern = *std::move(pattern);
  }
  size_t count = 0;
  for (int side = 0; side < 2; ++side) {
    c.enter(*graphs[side]);
    std::vector<Value*> values;
    Status done = ok();
    for (const Place& place : places)
      if (done.ok()) done = lower(place.sides[side], place.pattern, values);
    if (done.ok())
      for (Value* value : values) graphs[side]->add_output(own_output(c, value));
    c.leave();
    CHECK_OK(done);
    count = values.size();
  }
  std::vector<Value*> results;
  if (count == 0) {
    discard(*graphs[0]);
    discard(*graphs[1]);
    c.b.graph().erase(node);
  } else {
    results = c.b.finish(node, count);
  }
  CHECK_OK(c.take_status());
  size_t at = 0;
  for (const Place& place : places) {
    Item item = raise(place.pattern, results, at);
    if (place.kind == Place::kResult) frame.result = std::move(item);
    if (place.kind == Place::kLocal) frame.locals[place.name] = std::move(item);
    if (place.kind == Place::kCell && !place.cell->stale)
      c.write(place.cell, c.read(item.arg.tensor));
    if (place.kind == Place::kBox) restore(place.box, item);
  }
  entangle();
  for (const Outcome& outcome : outcomes)
    for (const Ref& cell : outcome.stale) c.mark_stale(cell);
  CHECK_OK(c.take_status());
  return outcomes[0].returned ? Flow::kReturn : Flow::kNormal;
}

/// Gives a container the content that `item` describes (an object: a dict of its attributes).
void Interpreter::restore(const BoxRef& box, const Item& item) {
  touch(box);
  if (box->type || !box->attributes.empty()) {
    for (size_t i = 0; i < item.box->keys.size(); ++i)
      box->attributes[item.box->keys[i].arg.text] = item.box->items[i];
    return;
  }
  box->items = item.box->items;
  box->keys = item.box->keys;
  box->sequence = item.box->sequence;
}

// ---- Loop ----

Result<Flow> Interpreter::dynamic_loop(const Stmt& stmt, const Item* trips) {
  Frame& frame = *frames_.back();
  const auto before = frame.locals;
  auto alive = reachable();
  const uint64_t outside = c.memory_count();
  Relations relations;
  struct Place {
    std::string name;
    BoxRef box;
    Ref cell;
    Item first;  ///< before the loop
    Pattern pattern;
  };
  std::vector<Place> places;
  const auto list_of = [](const Box& box) {
    const bool dict = !box.keys.empty() && !box.sequence;
    return Item::of(dict ? Item::Kind::kDict : Item::Kind::kList, std::make_shared<Box>(box));
  };
  Value* limit = nullptr;
  Value* start = nullptr;
  if (trips) {
    limit = c.int_value(trips->arg.integer);
  } else {
    TRY(Item condition, evaluate(*stmt.value));
    TRY(Arg known, truth(condition));
    start = known.computed ? known.computed
                           : c.scalar(known.integer.dim.value() != 0 ? 1 : 0, DType::kBool);
  }
  for (int attempt = 0; attempt < kMaxTries; ++attempt) {
    std::vector<Value*> inputs = {limit, start};
    for (const Place& place : places) CHECK_OK(lower(place.first, place.pattern, inputs));
    Node* node = c.b.begin("Loop", inputs);
    Graph& body = node->set_graph("body");
    const auto drop = [&] {
      discard(body);
      c.b.graph().erase(node);
    };
    begin_journal();
    c.enter(body);
    Value* iteration = body.add_input(c.b.fresh_name("iteration"));
    c.b.set_type(iteration, DType::kInt64, {});
    Value* alive_in = body.add_input(c.b.fresh_name("condition"));
    c.b.set_type(alive_in, DType::kBool, {});
    // What is carried comes in as inputs of the body.
    const auto input_of = [&](const Pattern& leaf) {
      Value* value = body.add_input(c.b.fresh_name("carried"));
      if (leaf.has_shape) {
        c.b.set_type(value, leaf.dtype, leaf.shape);
      } else {
        c.b.set_type(value, DType::kUndefined, {});
        value->set_type(Type::tensor(leaf.dtype));
      }
      return value;
    };
    std::vector<Value*> carried;
    const auto make_inputs = [&](const Pattern& pattern, const auto& self) -> void {
      switch (pattern.kind) {
        case PKind::kSame:
          return;
        case PKind::kLeaf:
          carried.push_back(input_of(pattern));
          return;
        case PKind::kSequence: {
          Value* value = body.add_input(c.b.fresh_name("carried"));
          c.b.set_sequence_type(value, pattern.parts[0].dtype,
                                pattern.parts[0].has_shape ? &pattern.parts[0].shape : nullptr);
          carried.push_back(value);
          return;
        }
        case PKind::kMaybe: {
          Value* present = body.add_input(c.b.fresh_name("carried"));
          c.b.set_type(present, DType::kBool, {});
          carried.push_back(present);
          break;
        }
        default:
          break;
      }
      for (const Pattern& part : pattern.parts) self(part, self);
    };
    for (const Place& place : places) make_inputs(place.pattern, make_inputs);
    size_t at = 0;
    for (const Place& place : places) {
      Item item = raise(place.pattern, carried, at);
      if (place.cell) {
        if (!place.cell->stale) c.write(place.cell, item.arg.tensor->value);
      } else if (place.box) {
        restore(place.box, item);
      } else {
        frame.locals[place.name] = std::move(item);
      }
    }
    entangle();
    std::string counter;
    if (trips) {
      counter = std::string(stmt.targets[0]->text);
      frame.locals[counter] = Item(Arg(SymInt(SymDim(), iteration)));
    }
    auto flow = execute(stmt.body);
    Status failed = ok();
    Value* alive_out = nullptr;
    if (!flow.ok()) failed = std::move(flow).error();
    if (failed.ok() && *flow != Flow::kNormal)
      failed = unsupported("a loop that is left early and runs for as long as the data say");
    if (failed.ok() && trips) alive_out = alive_in;
    if (failed.ok() && !trips) {
      auto condition = evaluate(*stmt.value);
      auto known = condition.ok() ? truth(*condition) : Result<Arg>(condition.error());
      if (!known.ok()) {
        failed = known.error();
      } else {
        alive_out = known->computed
                        ? known->computed
                        : c.scalar(known->integer.dim.value() != 0 ? 1 : 0, DType::kBool);
      }
    }
    add_loaded(alive);
    // What has changed, and whether it fits what was assumed.
    bool again = false;
    std::vector<Item> last(places.size());
    const auto account = [&](size_t index, const Item& now) -> Status {
      last[index] = now;
      Place& place = places[index];
      TRY(Pattern seen, unify(place.first, now, true, 0));
      if (widen(place.pattern, seen)) again = true;
      relations.leaves(now, place.pattern);
      return ok();
    };
    const auto found = [&](Place place, const Item& now) -> Status {
      auto seen = unify(place.first, now, false, 0);
      if (!seen.ok()) {
        Error error = std::move(seen).error();
        return std::move(error).at("variable \"" + place.name + "\" of a loop");
      }
      place.pattern = *std::move(seen);
      places.push_back(std::move(place));
      again = true;
      return ok();
    };
    if (failed.ok()) {
      const size_t known = places.size();
      for (const auto& [name, item] : before) {
        if (name == counter) continue;
        const auto now = frame.locals.find(name);
        size_t index = known;
        for (size_t i = 0; i < known; ++i)
          if (!places[i].box && !places[i].cell && places[i].name == name) index = i;
        if (index < known) {
          if (failed.ok()) failed = account(index, frozen(now->second));
        } else if (!same(item, now->second)) {
          if (failed.ok()) failed = found({name, nullptr, nullptr, item, {}}, frozen(now->second));
        }
      }
      std::unordered_set<const void*> looked;
      const auto boxes = journals_.back().boxes;
      for (const auto& [box, old] : boxes) {
        if (!alive.contains(box.get()) || !looked.insert(box.get()).second || !failed.ok())
          continue;
        if (box->type) {
          failed = unsupported(
              "an object whose attributes change in a loop that runs for as long "
              "as the data say");
          continue;
        }
        Item now = list_of(*box);
        for (Item& part : now.box->items) part = frozen(part);
        size_t index = known;
        for (size_t i = 0; i < known; ++i)
          if (places[i].box == box) index = i;
        failed =
            index < known ? account(index, now) : found({"", box, nullptr, list_of(old), {}}, now);
      }
      const auto cells = journals_.back().cells;
      for (const auto& [cell, old] : cells) {
        if (cell->view || cell->version == old.version || !alive.contains(cell.get()) ||
            !looked.insert(cell.get()).second || !failed.ok())
          continue;
        Item now(Arg(c.cell(cell->value, cell->dtype)));
        size_t index = known;
        for (size_t i = 0; i < known; ++i)
          if (places[i].cell == cell) index = i;
        failed = index < known
                     ? account(index, now)
                     : found({"", nullptr, cell, Item(Arg(c.cell(old.value, old.dtype))), {}}, now);
      }
    }
    if (again) relations.clear();
    if (relations.grow(c, outside)) again = true;
    std::vector<Value*> outputs;
    if (failed.ok() && !again) {
      body.add_output(own_output(c, alive_out));
      for (size_t i = 0; i < places.size() && failed.ok(); ++i)
        failed = lower(last[i], places[i].pattern, outputs);
      for (const Place& place : places)
        if (failed.ok() && place.cell && place.cell->pinned)
          failed = unsupported(
              "a tensor is written in place that a list holds whose length or index depends on "
              "data");
      if (failed.ok())
        for (Value* value : outputs) body.add_output(own_output(c, value));
    }
    if (failed.ok()) failed = c.take_status();
    c.leave();
    const Outcome outcome = end_journal();
    frame.locals = before;
    for (const Ref& cell : outcome.stale)
      if (alive.contains(cell.get()) && !cell->stale) {
        c.mark_stale(cell);
        again = true;
      }
    if (!failed.ok() || again) {
      drop();
      CHECK_OK(failed);
      continue;
    }
    const std::vector<Value*> results = c.b.finish(node, outputs.size());
    CHECK_OK(c.take_status());
    size_t next = 0;
    for (const Place& place : places) {
      Item item = raise(place.pattern, results, next);
      if (place.cell) {
        if (!place.cell->stale) c.write(place.cell, item.arg.tensor->value);
      } else if (place.box) {
        restore(place.box, item);
      } else {
        frame.locals[place.name] = std::move(item);
      }
    }
    entangle();
    CHECK_OK(c.take_status());
    return Flow::kNormal;
  }
  return unsupported("a loop whose variables change their types from turn to turn");
}

}  // namespace tombolo::script
