// Transposes: chains become one, those that only move axes of length 1 become Reshapes, and those
// on both sides of a region that does not care about the order of axes cancel through it: channels
// last, as TensorFlow exports it, becomes channels first.

#include <algorithm>
#include <map>
#include <set>

#include "passes/elements.h"
#include "passes/evaluate.h"
#include "passes/passes.h"
#include "passes/reshape_target.h"
#include "passes/transposes.h"

namespace tombolo::passes {

using Perm = std::vector<int64_t>;

std::optional<Perm> perm_of(const Rewriter& rewriter, const Node* node) {
  if (!rewriter.is(node, "Transpose") || node->input(0) == nullptr) return std::nullopt;
  const AttributeReader attributes(*node);
  Perm perm(attributes.get_ints("perm").begin(), attributes.get_ints("perm").end());
  if (perm.empty()) {
    const auto rank = rewriter.rank(node->input(0));
    if (!rank) return std::nullopt;
    for (size_t i = *rank; i-- > 0;) perm.push_back(static_cast<int64_t>(i));
  }
  std::vector<bool> seen(perm.size());
  for (const int64_t axis : perm) {
    if (axis < 0 || axis >= static_cast<int64_t>(perm.size()) || seen[static_cast<size_t>(axis)])
      return std::nullopt;
    seen[static_cast<size_t>(axis)] = true;
  }
  return perm;
}

namespace {

Perm inverse(const Perm& perm) {
  Perm out(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    out[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return out;
}

Node& add_transpose(Rewriter& rewriter, Node& before, Value* input, const Perm& perm) {
  Node& node = rewriter.add(before, "Transpose", {input}, input->name());
  node.set_ints("perm", perm);
  rewriter.touch(node);
  return node;
}

size_t merge_pair(Rewriter& rewriter, Node& node, const Perm& outer) {
  Node* first = rewriter.producer(node.input(0), "Transpose");
  const auto inner = perm_of(rewriter, first);
  if (!inner || inner->size() != outer.size()) return 0;
  Perm both(outer.size());
  for (size_t i = 0; i < outer.size(); ++i) both[i] = (*inner)[static_cast<size_t>(outer[i])];
  node.set_ints("perm", both);
  node.set_input(0, first->input(0));
  rewriter.touch(node);
  return 1;
}

/// Axes of length 1 may go anywhere without moving an element.
bool moves_no_element(const SymShape* shape, const Perm& perm) {
  if (shape == nullptr || shape->size() != perm.size()) return false;
  int64_t last = -1;
  for (const int64_t axis : perm) {
    if ((*shape)[static_cast<size_t>(axis)].constant() == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

size_t to_reshape(Rewriter& rewriter, Node& node, const Perm& perm) {
  const SymShape* shape = rewriter.shape(node.input(0));
  if (!moves_no_element(shape, perm) || std::is_sorted(perm.begin(), perm.end())) return 0;
  std::vector<int64_t> target;
  int open = 0;
  for (size_t i = 0; i < perm.size(); ++i) {
    const SymDim& dim = (*shape)[static_cast<size_t>(perm[i])];
    if (dim.is_value() && dim.value() > 0) {
      target.push_back(dim.value());
    } else if (dim.is_value()) {
      return 0;
    } else if (perm[i] == static_cast<int64_t>(i)) {
      target.push_back(0);
    } else {
      target.push_back(-1);
      ++open;
    }
  }
  // -1 beside a copied length that may be 0 is not always defined.
  if (open > 1 || (open == 1 && std::count(target.begin(), target.end(), 0) != 0)) return 0;
  Value* constant = rewriter.ints_initializer(node.graph(), target, "shape");
  Node& reshape = rewriter.add(node, "Reshape", {node.input(0), constant}, node.output(0)->name());
  rewriter.supersede(*node.output(0), *reshape.output(0));
  return 1;
}

/// Whether Reshapes alone read a value.
bool all_reshape(const Rewriter& rewriter, const Value& value) {
  return value.output_uses() == 0 && !value.uses().empty() &&
         std::all_of(value.uses().begin(), value.uses().end(), [&](const Use& use) {
           return use.index == 0 && rewriter.is(use.node, "Reshape");
         });
}

/// Between two Reshapes axes of length 1 need not be turned: TensorFlow's einsum gives each operand
/// those of the other. A batch of one stays.
size_t drop_unit_axes(Rewriter& rewriter, Node& node, const Perm& perm) {
  const SymShape* shape = rewriter.shape(node.input(0));
  if (shape == nullptr || shape->size() != perm.size() ||
      rewriter.producer(node.input(0), "Reshape") == nullptr ||
      !all_reshape(rewriter, *node.output(0)))
    return 0;
  const auto stays = [&](int64_t axis) {
    return (*shape)[static_cast<size_t>(axis)].constant() != 1 || (axis == 0 && perm[0] == 0);
  };
  std::vector<SymDim> before, after, turned;
  std::vector<int64_t> places;
  for (size_t i = 0; i < shape->size(); ++i) {
    places.push_back(static_cast<int64_t>(before.size()));
    if (stays(static_cast<int64_t>(i))) before.push_back((*shape)[i]);
  }
  if (before.size() == shape->size()) return 0;
  Perm moved;
  for (const int64_t axis : perm) {
    const SymDim& dim = (*shape)[static_cast<size_t>(axis)];
    turned.push_back(dim);
    if (!stays(axis)) continue;
    moved.push_back(places[static_cast<size_t>(axis)]);
    after.push_back(dim);
  }
  if (!reshape_target(after, turned)) return 0;
  Node* first = add_reshape(rewriter, node, node.input(0), *shape, before);
  if (first == nullptr) return 0;
  Node& middle = add_transpose(rewriter, node, first->output(0), moved);
  Node* last = add_reshape(rewriter, node, middle.output(0), after, turned);
  rewriter.supersede(*node.output(0), *last->output(0));
  return 1;
}

/// Axes turned, the leading ones joined, the last two exchanged: the exchange joins the Transpose.
size_t exchange_before_join(Rewriter& rewriter, Node& node, const Perm& perm) {
  const Node* joined = rewriter.producer(node.input(0), "Reshape");
  if (perm != Perm{0, 2, 1} || joined == nullptr || !Rewriter::single_use(node.input(0)) ||
      &joined->graph() != &node.graph() ||
      rewriter.producer(joined->input(0), "Transpose") == nullptr)
    return 0;
  const SymShape* x = rewriter.shape(joined->input(0));
  const SymShape* flat = rewriter.shape(joined->output(0));
  if (x == nullptr || flat == nullptr || x->size() < 4 || flat->size() != 3) return 0;
  const size_t rank = x->size();
  if (!(*flat)[1].equals((*x)[rank - 2]) || !(*flat)[2].equals((*x)[rank - 1])) return 0;
  Perm whole;
  for (size_t i = 0; i < rank; ++i) whole.push_back(static_cast<int64_t>(i));
  std::swap(whole[rank - 1], whole[rank - 2]);
  std::vector<SymDim> turned(x->begin(), x->end());
  std::swap(turned[rank - 1], turned[rank - 2]);
  const std::vector<SymDim> target = {(*flat)[0], (*flat)[2], (*flat)[1]};
  if (!reshape_target(turned, target)) return 0;
  Node& exchanged = add_transpose(rewriter, node, joined->input(0), whole);
  Node* again = add_reshape(rewriter, node, exchanged.output(0), turned, target);
  rewriter.supersede(*node.output(0), *again->output(0));
  return 1;
}

/// The leading axes joined, the last two exchanged, the leading axes apart again: one Transpose.
size_t unbatch(Rewriter& rewriter, Node& node) {
  if (!rewriter.is(&node, "Reshape")) return 0;
  Node* middle = rewriter.producer(node.input(0), "Transpose");
  if (middle == nullptr || perm_of(rewriter, middle) != Perm{0, 2, 1} ||
      &middle->graph() != &node.graph())
    return 0;
  const Node* joined = rewriter.producer(middle->input(0), "Reshape");
  if (joined == nullptr || joined->input(0) == nullptr) return 0;
  const SymShape* x = rewriter.shape(joined->input(0));
  const SymShape* flat = rewriter.shape(joined->output(0));
  const SymShape* y = rewriter.shape(node.output(0));
  if (x == nullptr || flat == nullptr || y == nullptr || x->size() < 4 || flat->size() != 3 ||
      y->size() != x->size())
    return 0;
  const size_t rank = x->size();
  if (!(*flat)[1].equals((*x)[rank - 2]) || !(*flat)[2].equals((*x)[rank - 1])) return 0;
  Perm perm;
  for (size_t i = 0; i < rank; ++i) perm.push_back(static_cast<int64_t>(i));
  std::swap(perm[rank - 1], perm[rank - 2]);
  for (size_t i = 0; i < rank; ++i)
    if (!(*y)[i].equals((*x)[static_cast<size_t>(perm[i])])) return 0;
  Node& whole = add_transpose(rewriter, node, joined->input(0), perm);
  rewriter.supersede(*node.output(0), *whole.output(0));
  return 1;
}

}  // namespace

Result<size_t> merge_transposes(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes()) {
      if (node->output(0) != nullptr) count += unbatch(rewriter, *node);
      const auto perm = perm_of(rewriter, node);
      if (!perm || node->output(0) == nullptr) continue;
      const size_t merged = merge_pair(rewriter, *node, *perm);
      count += merged;
      if (merged != 0) continue;
      for (const auto rule : {to_reshape, drop_unit_axes, exchange_before_join})
        if (rule(rewriter, *node, *perm) != 0) {
          ++count;
          break;
        }
    }
  });
  return count;
}

namespace {

/// How an operator takes a permutation of its axes.
enum class Axes : uint8_t {
  kUnary,      ///< the first input; the others have no axes
  kBroadcast,  ///< all inputs, broadcast against each other
  kAxis,       ///< as kUnary, and an attribute `axis`
  kScale,      ///< as kUnary, or as kAxis where the second input is one number for each place there
  kConcat,     ///< all inputs, and an attribute `axis`
  kReduce,     ///< axes as second input, keepdims = 1
  kPad,        ///< pads, and axes or all of them
  kSlice,      ///< axes as fourth input
  kScales,     ///< a factor for each axis as third input
};
struct Row {
  std::string_view op;
  Axes axes;
  int64_t default_axis = 0;
};
constexpr Row kRows[] = {
    {"Abs", Axes::kUnary},
    {"Acos", Axes::kUnary},
    {"Acosh", Axes::kUnary},
    {"Add", Axes::kBroadcast},
    {"And", Axes::kBroadcast},
    {"Asin", Axes::kUnary},
    {"Atan", Axes::kUnary},
    {"Cast", Axes::kUnary},
    {"Ceil", Axes::kUnary},
    {"Celu", Axes::kUnary},
    {"Clip", Axes::kUnary},
    {"Concat", Axes::kConcat},
    {"Cos", Axes::kUnary},
    {"DequantizeLinear", Axes::kScale, 1},
    {"Div", Axes::kBroadcast},
    {"Elu", Axes::kUnary},
    {"Equal", Axes::kBroadcast},
    {"Erf", Axes::kUnary},
    {"Exp", Axes::kUnary},
    {"Floor", Axes::kUnary},
    {"Gelu", Axes::kUnary},
    {"Greater", Axes::kBroadcast},
    {"GreaterOrEqual", Axes::kBroadcast},
    {"HardSigmoid", Axes::kUnary},
    {"HardSwish", Axes::kUnary},
    {"Identity", Axes::kUnary},
    {"IsInf", Axes::kUnary},
    {"IsNaN", Axes::kUnary},
    {"LeakyRelu", Axes::kUnary},
    {"Less", Axes::kBroadcast},
    {"LessOrEqual", Axes::kBroadcast},
    {"Log", Axes::kUnary},
    {"LogSoftmax", Axes::kAxis, -1},
    {"Max", Axes::kBroadcast},
    {"Mean", Axes::kBroadcast},
    {"Min", Axes::kBroadcast},
    {"Mish", Axes::kUnary},
    {"Mod", Axes::kBroadcast},
    {"Mul", Axes::kBroadcast},
    {"Neg", Axes::kUnary},
    {"Not", Axes::kUnary},
    {"Or", Axes::kBroadcast},
    {"PRelu", Axes::kBroadcast},
    {"Pad", Axes::kPad},
    {"Pow", Axes::kBroadcast},
    {"QuantizeLinear", Axes::kScale, 1},
    {"Reciprocal", Axes::kUnary},
    {"ReduceL1", Axes::kReduce},
    {"ReduceL2", Axes::kReduce},
    {"ReduceMax", Axes::kReduce},
    {"ReduceMean", Axes::kReduce},
    {"ReduceMin", Axes::kReduce},
    {"ReduceProd", Axes::kReduce},
    {"ReduceSum", Axes::kReduce},
    {"ReduceSumSquare", Axes::kReduce},
    {"Relu", Axes::kUnary},
    {"Resize", Axes::kScales},
    {"Round", Axes::kUnary},
    {"Selu", Axes::kUnary},
    {"Shrink", Axes::kUnary},
    {"Sigmoid", Axes::kUnary},
    {"Sign", Axes::kUnary},
    {"Sin", Axes::kUnary},
    {"Slice", Axes::kSlice},
    {"Softmax", Axes::kAxis, -1},
    {"Softplus", Axes::kUnary},
    {"Softsign", Axes::kUnary},
    {"Sqrt", Axes::kUnary},
    {"Sub", Axes::kBroadcast},
    {"Sum", Axes::kBroadcast},
    {"Swish", Axes::kUnary},
    {"Tan", Axes::kUnary},
    {"Tanh", Axes::kUnary},
    {"ThresholdedRelu", Axes::kUnary},
    {"Where", Axes::kBroadcast},
    {"Xor", Axes::kBroadcast},
};

const Row* row_of(const Rewriter& rewriter, const Node& node) {
  for (const Row& row : kRows)
    if (row.op == node.op_type()) return rewriter.is(&node, node.op_type()) ? &row : nullptr;
  return nullptr;
}

/// The axes before a Transpose by `perm` that stand for those a node reduces behind it, if it drops
/// them and those it leaves keep their order: then it needs no Transpose.
std::optional<std::vector<int64_t>> reduced_before(const Rewriter& rewriter, const Node& node,
                                                   const Perm& perm) {
  const Row* row = row_of(rewriter, node);
  if (row == nullptr || row->axes != Axes::kReduce || node.outputs().size() != 1 ||
      AttributeReader(node).get_int("keepdims", 1) != 0 || node.input(1) == nullptr)
    return std::nullopt;
  auto axes = rewriter.ints(node.input(1));
  if (!axes || axes->empty()) return std::nullopt;
  const auto rank = static_cast<int64_t>(perm.size());
  std::vector<bool> reduced(perm.size());
  for (int64_t& axis : *axes) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return std::nullopt;
    reduced[static_cast<size_t>(axis)] = true;
    axis = perm[static_cast<size_t>(axis)];
  }
  int64_t last = -1;
  for (size_t i = 0; i < perm.size(); ++i) {
    if (reduced[i]) continue;
    if (perm[i] < last) return std::nullopt;
    last = perm[i];
  }
  return axes;
}

/// Readers of a Transpose that reduce its axes do so before it.
size_t reduce_before(Rewriter& rewriter, Node& transpose, const Perm& perm) {
  const Value& turned = *transpose.output(0);
  const std::vector<Use> uses(turned.uses().begin(), turned.uses().end());
  size_t count = 0;
  for (const Use& use : uses) {
    Node& node = *use.node;
    if (use.index != 0 || &node.graph() != &transpose.graph()) continue;
    const auto axes = reduced_before(rewriter, node, perm);
    if (!axes) continue;
    node.set_input(0, transpose.input(0));
    node.set_input(1, rewriter.ints_initializer(node.graph(), *axes, "axes"));
    rewriter.touch(node);
    ++count;
  }
  return count;
}

/// Nodes between Transposes by `perm` above and its inverse below, whose values can all be held in
/// the other order.
class Region {
 public:
  Region(Rewriter& rewriter, Graph& graph, Perm perm)
      : rewriter_(rewriter), graph_(graph), perm_(std::move(perm)), back_(inverse(perm_)) {}

  /// Grows from the readers of `start`, a Transpose. True when moving pays.
  bool grow(Node& start) {
    std::vector<Node*> queue;
    const auto offer = [&](const Value* value) {
      for (const Use& use : value->uses())
        if (&use.node->graph() == &graph_) queue.push_back(use.node);
    };
    offer(start.output(0));
    while (!queue.empty()) {
      Node* node = queue.back();
      queue.pop_back();
      if (nodes_.contains(node) || nodes_.size() > 10'000 || !movable(*node)) continue;
      nodes_.insert(node);
      offer(node->output(0));
      // Upwards too: a branch that joins here may have its own Transpose.
      for (size_t i = 0; i < node->inputs().size(); ++i) {
        const Value* input = node->inputs()[i];
        if (!carries_axes(*node, i) || input->producer() == nullptr || is_ours(*input)) continue;
        if (input->producer()->outputs().size() == 1) queue.push_back(input->producer());
      }
    }
    return gain() > 0;
  }

  /// What comes in and goes out, and how many Transposes are saved. Those that would be added where
  /// they move no element, as around a mean over all pixels, become Reshapes and do not count.
  int gain() {
    int saved = 0;
    std::set<const Node*> above, below;
    std::set<const Value*> added_in;
    for (Node* node : nodes_) {
      for (size_t i = 0; i < node->inputs().size(); ++i) {
        const Value* input = node->inputs()[i];
        if (!carries_axes(*node, i) || inside(*input)) continue;
        if (is_ours(*input))
          above.insert(input->producer());
        else if (!rewriter_.is_constant(input) && codes_of(*input) == nullptr &&
                 !moves_nothing(*input))
          added_in.insert(input);
      }
      const Value* output = node->output(0);
      bool needs = output->output_uses() != 0;
      for (const Use& use : output->uses()) {
        if (nodes_.contains(use.node)) continue;
        if (undoes(*use.node))
          below.insert(use.node);
        else if (use.index != 0 || !reduced_before(rewriter_, *use.node, perm_))
          needs = true;
      }
      if (needs && !moves_nothing(*output)) --saved;
    }
    for (const Node* node : above) {
      bool gone = node->output(0)->output_uses() == 0;
      for (const Use& use : node->output(0)->uses()) gone &= nodes_.contains(use.node);
      saved += gone;
    }
    return saved + static_cast<int>(below.size()) - static_cast<int>(added_in.size());
  }

  Status apply() {
    std::vector<Node*> ordered;
    for (Node* node : graph_.nodes())
      if (nodes_.contains(node)) ordered.push_back(node);
    std::map<const Value*, Value*> moved;    // the value in the other order
    std::map<const Value*, Value*> entered;  // of values from outside
    for (Node* node : ordered) {
      std::vector<Value*> inputs;
      for (size_t i = 0; i < node->inputs().size(); ++i) {
        Value* input = node->inputs()[i];
        if (!carries_axes(*node, i)) {
          inputs.push_back(input);
        } else if (moved.contains(input)) {
          inputs.push_back(moved.at(input));
        } else {
          TRY(Value * other, enter(*node, input, entered));
          inputs.push_back(other);
        }
      }
      Node& copy = rewriter_.add(*node, node->op_type(), inputs, node->output(0)->name());
      for (const Attribute& attribute : node->attributes()) {
        if (attribute.i() != nullptr) copy.set_int(attribute.name, *attribute.i());
        if (attribute.f() != nullptr) copy.set_float(attribute.name, *attribute.f());
        if (attribute.s() != nullptr) copy.set_string(attribute.name, *attribute.s());
        if (attribute.type == AttrType::kInts) copy.set_ints(attribute.name, attribute.ints());
      }
      move_axes(*node, copy);
      rewriter_.touch(copy);
      moved[node->output(0)] = copy.output(0);
    }
    // Readers outside see the old order again.
    for (size_t at = ordered.size(); at-- > 0;) {
      Node* node = ordered[at];
      Value& old = *node->output(0);
      Value& fresh = *moved.at(&old);
      const std::vector<Use> uses(old.uses().begin(), old.uses().end());
      for (const Use& use : uses)
        if (undoes(*use.node) && use.node->output(0) != nullptr &&
            rewriter_.replaceable(*use.node->output(0), fresh))
          rewriter_.supersede(*use.node->output(0), fresh);
    }
    for (size_t at = ordered.size(); at-- > 0;) {
      Node* node = ordered[at];
      Value& old = *node->output(0);
      if (old.has_uses())
        rewriter_.replace(old, *add_transpose(rewriter_, *node, moved.at(&old), perm_).output(0));
      rewriter_.erase(*node);
    }
    return ok();
  }

 private:
  bool inside(const Value& value) const {
    return value.producer() != nullptr && nodes_.contains(value.producer());
  }
  bool is_ours(const Value& value) const {
    return &value.graph() == &graph_ && perm_of(rewriter_, value.producer()) == perm_;
  }
  bool moves_nothing(const Value& value) const {
    return moves_no_element(rewriter_.shape(&value), back_);
  }
  bool undoes(const Node& node) const {
    return &node.graph() == &graph_ && perm_of(rewriter_, &node) == back_;
  }

  /// Constant codes of one scale that the value is dequantised from.
  Value* codes_of(const Value& value) const {
    const Node* node = rewriter_.producer(&value, "DequantizeLinear");
    return node != nullptr && rewriter_.is_constant(node->input(0)) &&
                   bits_of(rewriter_.dtype(node->input(0))) >= 8 &&
                   rewriter_.scalar(node->input(1)) && node->attributes().empty()
               ? node->input(0)
               : nullptr;
  }

  /// The input has the axes that the node computes along (not a scalar, not a list of axes).
  bool carries_axes(const Node& node, size_t index) const {
    const Value* input = node.inputs()[index];
    if (input == nullptr) return false;
    const Row* row = row_of(rewriter_, node);
    if (row == nullptr) return false;
    if (row->axes == Axes::kBroadcast)
      return !(rewriter_.rank(input) == 0u ||
               (rewriter_.is_constant(input) && rewriter_.scalar(input) &&
                rewriter_.rank(input).value_or(99) <= perm_.size()));
    return row->axes == Axes::kConcat || index == 0;
  }

  bool movable(const Node& node) const {
    const Row* row = row_of(rewriter_, node);
    if (row == nullptr || node.outputs().size() != 1 || node.output(0) == nullptr ||
        rewriter_.rank(node.output(0)) != perm_.size())
      return false;
    for (const Attribute& attribute : node.attributes())
      if (attribute.graph() != nullptr || attribute.tensor() != nullptr) return false;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const Value* input = node.inputs()[i];
      if (input == nullptr || !carries_axes(node, i)) continue;
      const auto rank = rewriter_.rank(input);
      if (!rank) return false;
      if (*rank == perm_.size()) continue;
      // Fewer axes: only a constant can be given the missing ones.
      if (row->axes != Axes::kBroadcast || *rank > perm_.size() ||
          (!rewriter_.is_constant(input) && codes_of(*input) == nullptr))
        return false;
    }
    const AttributeReader attributes(node);
    switch (row->axes) {
      case Axes::kReduce:
        return attributes.get_int("keepdims", 1) == 1 && node.input(1) != nullptr &&
               rewriter_.ints(node.input(1)).has_value() && !rewriter_.ints(node.input(1))->empty();
      case Axes::kPad: {
        const auto pads = rewriter_.ints(node.input(1));
        return pads && (node.input(3) == nullptr ? pads->size() == 2 * perm_.size()
                                                 : rewriter_.ints(node.input(3)).has_value());
      }
      case Axes::kScale: {
        // Codes that share a byte are slow to turn.
        const bool dequantises = node.op_type() == "DequantizeLinear";
        return rewriter_.rank(node.input(1)).value_or(99) <= 1 &&
               attributes.get_int("block_size", 0) == 0 &&
               bits_of(rewriter_.dtype(dequantises ? node.input(0) : node.output(0))) >= 8;
      }
      case Axes::kSlice:
        return rewriter_.ints(node.input(1)) &&
               (node.input(3) == nullptr || rewriter_.ints(node.input(3)).has_value());
      case Axes::kScales: {
        // A box (the second input) or sizes in place of factors are left alone. Channels come first
        // behind it: kernels, and other runtimes, have that order for all modes.
        const Tensor* scales = rewriter_.constant(node.input(2));
        if (node.inputs().size() != 3 || node.input(1) != nullptr || scales == nullptr ||
            scales->dtype() != DType::kFloat32 || attributes.has("axes") ||
            scales->size() != static_cast<int64_t>(perm_.size()))
          return false;
        for (size_t i = 0; i < perm_.size(); ++i)
          if (perm_[i] < 2 && scales->data<float>()[i] != 1) return false;
        return true;
      }
      default:
        return true;
    }
  }

  /// An operand from outside, in the other order.
  Result<Value*> enter(Node& before, Value* input, std::map<const Value*, Value*>& entered) {
    if (is_ours(*input)) return input->producer()->input(0);
    if (const auto known = entered.find(input); known != entered.end()) return known->second;
    Value* value = nullptr;
    Value* const codes = codes_of(*input);
    if (const Tensor* tensor = rewriter_.constant(codes != nullptr ? codes : input)) {
      Dims dims;
      for (size_t i = tensor->rank(); i < perm_.size(); ++i) dims.push_back(1);
      for (const int64_t dim : tensor->dims()) dims.push_back(dim);
      TRY(const Tensor turned, transposed(tensor->reshaped(dims), back_));
      value = rewriter_.initializer(graph_, turned, input->name());
      if (codes != nullptr) {
        std::vector<Value*> inputs(input->producer()->inputs().begin(),
                                   input->producer()->inputs().end());
        inputs[0] = value;
        Node& made = rewriter_.add(before, "DequantizeLinear", inputs, input->name());
        rewriter_.touch(made);
        value = made.output(0);
      }
    } else {
      value = add_transpose(rewriter_, before, input, back_).output(0);
    }
    return entered[input] = value;
  }

  /// Axis a of the old order is axis perm[a] of the new one.
  int64_t axis(int64_t old) const {
    if (old < 0) old += static_cast<int64_t>(perm_.size());
    return old >= 0 && old < static_cast<int64_t>(perm_.size()) ? perm_[static_cast<size_t>(old)]
                                                                : old;
  }

  void move_axes(const Node& node, Node& copy) {
    const Row& row = *row_of(rewriter_, node);
    const AttributeReader attributes(node);
    switch (row.axes) {
      case Axes::kScale:
        if (rewriter_.rank(node.input(1)) == 0u || rewriter_.scalar(node.input(1))) break;
        [[fallthrough]];
      case Axes::kAxis:
      case Axes::kConcat:
        copy.set_int("axis", axis(attributes.get_int("axis", row.default_axis)));
        break;
      case Axes::kReduce:
        move_list(node, copy, 1);
        break;
      case Axes::kSlice:
        if (node.input(3) != nullptr) {
          move_list(node, copy, 3);
        } else {
          std::vector<int64_t> axes;
          for (size_t i = 0; i < rewriter_.ints(node.input(1))->size(); ++i)
            axes.push_back(axis(static_cast<int64_t>(i)));
          copy.set_input(3, rewriter_.ints_initializer(graph_, axes, "axes"));
        }
        break;
      case Axes::kPad:
        if (node.input(3) != nullptr) {
          move_list(node, copy, 3);
        } else {
          const auto pads = *rewriter_.ints(node.input(1));
          std::vector<int64_t> turned(pads.size());
          for (size_t i = 0; i < perm_.size(); ++i) {
            turned[static_cast<size_t>(perm_[i])] = pads[i];
            turned[static_cast<size_t>(perm_[i]) + perm_.size()] = pads[i + perm_.size()];
          }
          copy.set_input(1, rewriter_.ints_initializer(graph_, turned, "pads"));
        }
        break;
      case Axes::kScales: {
        const Tensor& scales = *rewriter_.constant(node.input(2));
        std::vector<double> turned(perm_.size());
        for (size_t i = 0; i < perm_.size(); ++i)
          turned[static_cast<size_t>(perm_[i])] = scales.get_double(static_cast<int64_t>(i));
        const int64_t size[] = {scales.size()};
        copy.set_input(2, rewriter_.float_initializer(graph_, size, turned, "scales"));
        break;
      }
      default:
        break;
    }
  }
  void move_list(const Node& node, Node& copy, uint32_t index) {
    std::vector<int64_t> axes = *rewriter_.ints(node.input(index));
    for (int64_t& one : axes) one = axis(one);
    copy.set_input(index, rewriter_.ints_initializer(graph_, axes, "axes"));
  }

  Rewriter& rewriter_;
  Graph& graph_;
  const Perm perm_, back_;
  std::set<Node*> nodes_;
};

}  // namespace

bool is_unary_elementwise(const Rewriter& rewriter, const Node& node) {
  const Row* row = row_of(rewriter, node);
  return row != nullptr && row->axes == Axes::kUnary;
}
bool is_binary_arithmetic(const Rewriter& rewriter, const Node& node) {
  for (const Text name : {Text("Add"), Text("Sub"), Text("Mul"), Text("Div"), Text("Max"),
                          Text("Min"), Text("Pow"), Text("PRelu")})
    if (rewriter.is(&node, name)) return node.inputs().size() == 2;
  return false;
}

Result<size_t> move_transposes(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  Status status = ok();
  rewriter.for_each([&](Graph& graph) {
    bool again = true;
    for (int round = 0; again && round < 100; ++round) {
      again = false;
      for (Node* node : graph.nodes()) {
        if (!status) return;
        const auto perm = perm_of(rewriter, node);
        if (!perm || node->output(0) == nullptr) continue;
        count += reduce_before(rewriter, *node, *perm);
        Region region(rewriter, graph, *perm);
        if (!region.grow(*node)) continue;
        status = region.apply();
        ++count;
        again = true;
        break;  // the graph changed under the iteration
      }
    }
    if (graph.node_count() != 0) graph.sort();
  });
  CHECK_OK(status);
  return count;
}

}  // namespace tombolo::passes
