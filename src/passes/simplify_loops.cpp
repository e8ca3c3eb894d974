// A Loop carries what does not change, counts what its own counter counts, asks whether to go on
// where its trips end it, and keeps what nobody reads: while loops of TensorFlow, whose every
// variable goes round, come so.

#include "passes/dead_code.h"
#include "passes/evaluate.h"
#include "passes/loops.h"
#include "passes/passes.h"

namespace tombolo::passes {

std::optional<LoopParts> LoopParts::of(const Rewriter& rewriter, Node& node) {
  if (!rewriter.is(&node, "Loop")) return std::nullopt;
  Attribute* attribute = node.attribute("body");
  Graph* body = attribute != nullptr ? attribute->graph() : nullptr;
  const size_t carried = std::max<size_t>(node.inputs().size(), 2) - 2;
  if (body == nullptr || body->inputs().size() != carried + 2 ||
      body->outputs().size() != node.outputs().size() + 1 || node.outputs().size() < carried ||
      !body->sparse_initializers().empty())
    return std::nullopt;
  for (size_t i = 0; i < carried; ++i)
    if (node.input(i + 2) == nullptr) return std::nullopt;
  for (const Value* input : body->inputs())
    if (input == nullptr || input->is_initializer()) return std::nullopt;
  for (const GraphOutput& output : body->outputs())
    if (output.value == nullptr) return std::nullopt;
  LoopParts parts;
  parts.node_ = &node;
  parts.body_ = body;
  return parts;
}

Value* behind_identity(const Rewriter& rewriter, Value* value) {
  while (value != nullptr && rewriter.is(value->producer(), "Identity"))
    value = value->producer()->input(0);
  return value;
}

namespace {

bool is_whole(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; }

bool is_cast(const Rewriter& rewriter, const Node* node, bool floats) {
  if (!rewriter.is(node, "Cast")) return false;
  const DType to = rewriter.dtype(node->output(0));
  return is_whole(to) || (floats && (to == DType::kFloat32 || to == DType::kFloat64));
}

/// a * step + b.
struct Affine {
  int64_t a, b;
};

constexpr int64_t kLargest = int64_t(1) << 40;
constexpr int kDeepestCount = 16;

std::optional<Affine> affine(const Rewriter& rewriter, const LoopParts& loop, const Value* value,
                             int depth = 0) {
  if (value == nullptr || depth > kDeepestCount) return std::nullopt;
  if (value == loop.iteration()) return Affine{1, 0};
  if (const auto number = rewriter.scalar(value)) {
    if (*number < -static_cast<double>(kLargest) || *number > static_cast<double>(kLargest) ||
        *number != static_cast<double>(static_cast<int64_t>(*number)))
      return std::nullopt;
    return Affine{0, static_cast<int64_t>(*number)};
  }
  const Node* node = value->producer();
  if (rewriter.is(node, "Identity") || is_cast(rewriter, node, true))
    return affine(rewriter, loop, node->input(0), depth + 1);
  const bool adds = rewriter.is(node, "Add"), takes = rewriter.is(node, "Sub");
  if (!adds && !takes) return std::nullopt;
  const auto x = affine(rewriter, loop, node->input(0), depth + 1);
  const auto y = affine(rewriter, loop, node->input(1), depth + 1);
  if (!x || !y) return std::nullopt;
  const int64_t sign = adds ? 1 : -1;
  const Affine sum{x->a + sign * y->a, x->b + sign * y->b};
  if (sum.a < -kLargest || sum.a > kLargest || sum.b < -kLargest || sum.b > kLargest)
    return std::nullopt;
  return sum;
}

/// A whole number that does not depend on the step, as far as inference follows lengths; also one
/// that was made a float.
SymDim whole_number(const Rewriter& rewriter, const Value* value) {
  for (int depth = 0; value != nullptr && depth < kDeepestCount; ++depth) {
    if (const auto number = rewriter.scalar(value)) {
      if (*number >= -static_cast<double>(kLargest) && *number <= static_cast<double>(kLargest) &&
          *number == static_cast<double>(static_cast<int64_t>(*number)))
        return SymDim(static_cast<int64_t>(*number));
      return {};
    }
    if (const SymShape* known = rewriter.elements(value); known != nullptr && known->size() == 1)
      return (*known)[0];
    const Node* node = value->producer();
    if (!rewriter.is(node, "Identity") && !is_cast(rewriter, node, true)) return {};
    value = node->input(0);
  }
  return {};
}

/// `value` is true wherever it is asked, by comparisons of counts with limits; largest(count): what
/// the count comes to at most, null where that is not known.
template <typename Largest>
bool holds(const Rewriter& rewriter, const LoopParts& loop, const Value* value, Largest largest,
           int depth = 0) {
  if (value == nullptr || depth > kDeepestCount) return false;
  if (const auto constant = rewriter.scalar(value)) return *constant != 0;
  const Node* node = value->producer();
  const auto again = [&](const Value* of) { return holds(rewriter, loop, of, largest, depth + 1); };
  if (rewriter.is(node, "Identity") || rewriter.is(node, "Cast"))
    return rewriter.dtype(node->input(0)) == DType::kBool &&
           rewriter.dtype(value) == DType::kBool && again(node->input(0));
  // A step begins only where that was true.
  if (value == loop.body().inputs()[1]) return true;
  if (rewriter.is(node, "And")) return again(node->input(0)) && again(node->input(1));
  const bool less = rewriter.is(node, "Less"), greater = rewriter.is(node, "Greater");
  const bool turned = greater || rewriter.is(node, "GreaterOrEqual");
  if (!less && !turned && !rewriter.is(node, "LessOrEqual")) return false;
  const auto count = affine(rewriter, loop, node->input(turned ? 1 : 0));
  const std::optional<SymDim> most = count ? largest(*count) : std::nullopt;
  if (!most) return false;
  const auto room = (whole_number(rewriter, node->input(turned ? 0 : 1)) - *most).lower_bound();
  return room && *room >= (less || greater ? 1 : 0);
}

/// True at the end of every step but the last of `trips`.
bool goes_on(const Rewriter& rewriter, const LoopParts& loop, const SymDim& trips) {
  return holds(rewriter, loop, loop.condition(), [&](const Affine& count) {
    return count.a < 0 ? std::nullopt
                       : std::optional(SymDim(count.a) * (trips - SymDim(2)) + SymDim(count.b));
  });
}

/// True before the first step, if there is one: where there is a trip, `trips` - 1 more is no less.
bool begins(const Rewriter& rewriter, const LoopParts& loop, const SymDim& trips) {
  const Value* first = loop.node().input(1);
  return first == nullptr || holds(rewriter, loop, first, [&](const Affine& count) {
           return count.a != 0 ? std::nullopt : std::optional(trips - SymDim(1) + SymDim(count.b));
         });
}

SymDim trip_count(const Rewriter& rewriter, const LoopParts& loop) {
  if (loop.node().input(0) == nullptr) return {};
  SymDim trips = whole_number(rewriter, loop.node().input(0));
  return trips.constant() && *trips.constant() < 1 ? SymDim() : trips;
}

/// Takes state i out, which nobody reads behind the Loop; what a step begins with stays an input of
/// the body, for the caller to take out when it has no readers.
Value* detach_state(Rewriter& rewriter, const LoopParts& loop, size_t i) {
  Value* state = loop.state(i);
  loop.body().remove_output(i + 1);
  loop.node().remove_output(static_cast<uint32_t>(i));
  loop.node().remove_input(static_cast<uint32_t>(i + 2));
  rewriter.changed();
  return state;
}

/// State i is what it was: it is read where it came from.
bool read_outside(Rewriter& rewriter, const LoopParts& loop, size_t i) {
  Value* state = loop.state(i);
  if (behind_identity(rewriter, loop.result(i)) != state) return false;
  const uint32_t own = loop.result(i) == state ? 1 : 0;
  if (state->output_uses() != own || !rewriter.same_dtype(state, loop.initial(i))) return false;
  Value* initial = loop.initial(i);
  if (Value* final = loop.final(i)) rewriter.replace(*final, *initial);
  detach_state(rewriter, loop, i);
  rewriter.replace(*state, *initial);
  loop.body().remove_input(state);
  return true;
}

/// State i goes up by a constant: it is computed of the number of the step.
bool count_steps(Rewriter& rewriter, const LoopParts& loop, size_t i) {
  Value* state = loop.state(i);
  const DType dtype = rewriter.dtype(state);
  if (!is_whole(dtype) || rewriter.rank(state) != 0 || rewriter.rank(loop.iteration()) != 0 ||
      rewriter.rank(loop.initial(i)) != 0 || Rewriter::is_read(loop.final(i)) ||
      state->output_uses() != 0)
    return false;
  const auto first = rewriter.scalar(loop.initial(i));
  const Node* sum = behind_identity(rewriter, loop.result(i))->producer();
  if (!first || !rewriter.is_constant(loop.initial(i)) || !rewriter.is(sum, "Add")) return false;
  const size_t at = sum->input(0) == state ? 0 : 1;
  const auto step = rewriter.scalar(sum->input(1 - at));
  if (sum->input(at) != state || !step || rewriter.rank(sum->input(1 - at)) != 0) return false;
  const auto by = filled(dtype, {}, *step), from = filled(dtype, {}, *first);
  if (!by || !from) return false;
  Graph& body = loop.body();
  Node& before = *body.first_node();
  const auto with = [&](Text op, Value* x, const Tensor& number) {
    return rewriter.add(before, op, {x, rewriter.initializer(body, number, "count")}, "count")
        .output(0);
  };
  Value* count = loop.iteration();
  if (dtype != DType::kInt64) {
    Node& cast = rewriter.add(before, "Cast", {count}, "count");
    cast.set_int("to", static_cast<int64_t>(dtype));
    rewriter.touch(cast);
    count = cast.output(0);
  }
  if (*step != 1) count = with("Mul", count, *by);
  if (*first != 0) count = with("Add", count, *from);
  rewriter.replace(*state, *count);
  loop.body().remove_input(detach_state(rewriter, loop, i));
  return true;
}

bool drop_unread(Rewriter& rewriter, const LoopParts& loop) {
  bool read = false;
  for (const Value* output : loop.node().outputs()) read |= Rewriter::is_read(output);
  if (!read) return false;  // The whole node goes.
  std::vector<bool> alive(loop.carried());
  for (size_t i = 0; i < alive.size(); ++i) alive[i] = Rewriter::is_read(loop.final(i));
  for (bool more = true; more;) {
    more = false;
    std::vector<const Value*> roots = {loop.condition()};
    for (size_t i = 0; i < loop.scanned(); ++i)
      if (Rewriter::is_read(loop.scanned_rows(i))) roots.push_back(loop.scan(i));
    for (size_t i = 0; i < alive.size(); ++i)
      if (alive[i]) roots.push_back(loop.result(i));
    const auto needed = ancestors(roots, nullptr);
    for (size_t i = 0; i < alive.size(); ++i)
      if (!alive[i] && needed.contains(loop.state(i))) alive[i] = more = true;
  }
  bool changed = false;
  for (size_t i = loop.carried() + loop.scanned(); i-- > loop.carried();)
    if (!Rewriter::is_read(loop.final(i))) {
      loop.body().remove_output(i + 1);
      loop.node().remove_output(static_cast<uint32_t>(i));
      changed = true;
    }
  // All results before any state: one that nobody reads may be computed of another.
  std::vector<Value*> states;
  for (size_t i = alive.size(); i-- > 0;)
    if (!alive[i]) states.push_back(detach_state(rewriter, loop, i));
  if (!states.empty()) erase_dead_nodes(rewriter, loop.body());
  for (Value* state : states) loop.body().remove_input(state);
  if (changed) rewriter.changed();
  return changed || !states.empty();
}

/// What the Loop puts together of the rows of a value is that value.
bool hand_on_rows(Rewriter& rewriter, const LoopParts& loop, const SymDim& trips, size_t i) {
  Value* rows = loop.rows_of(rewriter, loop.scan(i));
  Value* whole = loop.scanned_rows(i);
  if (rows == nullptr || !Rewriter::is_read(whole) || !rewriter.same_dtype(rows, whole) ||
      !(*rewriter.shape(rows))[0].equals(trips) || !rewriter.replaceable(*whole, *rows))
    return false;
  rewriter.replace(*whole, *rows);
  return true;
}

bool simplify_loop(Rewriter& rewriter, Node& node) {
  const auto found = LoopParts::of(rewriter, node);
  if (!found || !found->body().sort()) return false;
  const LoopParts& loop = *found;
  bool changed = false;
  for (size_t i = loop.carried(); i-- > 0;)
    changed |= read_outside(rewriter, loop, i) || count_steps(rewriter, loop, i);
  if (changed) rewriter.refresh();
  const SymDim trips = trip_count(rewriter, loop);
  if (!trips.is_unknown() && goes_on(rewriter, loop, trips) && begins(rewriter, loop, trips)) {
    const Value* next = behind_identity(rewriter, loop.condition());
    if (next != loop.body().inputs()[1] && !rewriter.scalar(next)) {
      const uint8_t yes[] = {1};
      Value* holds =
          rewriter.initializer(loop.body(), Tensor::of<uint8_t>(DType::kBool, {}, yes), "cond");
      // ONNX Runtime takes no initialiser for a body's output.
      Node* last = loop.body().last_node();
      if (last != nullptr) {
        Node& same = rewriter.add(*last, "Identity", {holds}, "cond");
        loop.body().set_output(0, same.output(0));
        rewriter.changed();
        changed = true;
      }
    }
    if (node.input(1) != nullptr && !rewriter.scalar(node.input(1))) {
      node.set_input(1, nullptr);
      rewriter.changed();
      changed = true;
    }
    for (size_t i = loop.scanned(); i-- > 0;) changed |= hand_on_rows(rewriter, loop, trips, i);
  }
  return drop_unread(rewriter, loop) || changed;
}

}  // namespace

std::optional<SymDim> LoopParts::trips(const Rewriter& rewriter) const {
  SymDim count = trip_count(rewriter, *this);
  const Value* next = behind_identity(rewriter, condition());
  const auto holds = rewriter.scalar(next);
  if (count.is_unknown() || (next != body_->inputs()[1] && (!holds || *holds == 0)))
    return std::nullopt;
  if (node_->input(1) != nullptr) {
    const auto first = rewriter.scalar(node_->input(1));
    if (!first || *first == 0) return std::nullopt;
  }
  return count;
}

bool LoopParts::is_step(const Rewriter& rewriter, const Value* value) const {
  for (int depth = 0; value != nullptr && depth < kDeepestCount; ++depth) {
    if (value == iteration()) return true;
    const Node* node = value->producer();
    if (!rewriter.is(node, "Identity") && !is_cast(rewriter, node, false)) return false;
    value = node->input(0);
  }
  return false;
}

Value* LoopParts::rows_of(const Rewriter& rewriter, Value* value) const {
  value = behind_identity(rewriter, value);
  const Node* gather = value != nullptr ? value->producer() : nullptr;
  if (!rewriter.is(gather, "Gather") || &gather->graph() != body_ ||
      AttributeReader(*gather).get_int("axis", 0) != 0 || !is_step(rewriter, gather->input(1)) ||
      rewriter.rank(gather->input(1)) != 0)
    return nullptr;
  Value* rows = gather->input(0);
  const bool outside = rows != nullptr && &rows->graph() != body_ && rewriter.rank(rows) > 0;
  return outside ? rows : nullptr;
}

std::vector<Node*> all_loops(Rewriter& rewriter) {
  std::vector<Node*> loops;
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes())
      if (rewriter.is(node, "Loop")) loops.push_back(node);
  });
  return loops;
}

std::unordered_set<const Value*> ancestors(const std::vector<const Value*>& roots,
                                           const Value* stop) {
  std::unordered_set<const Value*> seen;
  std::vector<const Value*> open;
  const auto reach = [&](const Value* value) {
    if (value != nullptr && seen.insert(value).second && value != stop) open.push_back(value);
  };
  for (const Value* root : roots) reach(root);
  while (!open.empty()) {
    Node* node = open.back()->producer();
    open.pop_back();
    if (node == nullptr) continue;
    for (const Value* input : node->inputs()) reach(input);
    for (Attribute& attribute : node->attributes())
      if (Graph* inner = attribute.graph())
        for_each_graph(*inner, [&](Graph& graph) {
          for (const Node* one : graph.nodes())
            for (const Value* input : one->inputs()) reach(input);
          for (const GraphOutput& output : graph.outputs()) reach(output.value);
        });
  }
  return seen;
}

/// A Loop carries only what changes, counts nothing twice, asks for no condition that always holds,
/// and gives nothing that nobody reads or that is there already.
Result<size_t> simplify_loops(Rewriter& rewriter) {
  size_t count = 0;
  for (Node* node : all_loops(rewriter)) {
    rewriter.refresh();
    count += simplify_loop(rewriter, *node);
  }
  return count;
}

}  // namespace tombolo::passes
