// PyTorch's bmm takes three axes, so implementations of attention join batch and heads before it
// and take them apart behind it. MatMul takes them as they are:
//   Reshape(MatMul(Reshape(a), Reshape(b))) = MatMul(a, b)
// also with a softmax, a mask or a Transpose of the matrices between, and where the sequence comes
// first (nn.MultiheadAttention): x[T, B, h d] as [T, B h, d], turned to [B h, T, d].

#include <algorithm>
#include <array>
#include <vector>

#include "passes/attributes.h"
#include "passes/each_node.h"
#include "passes/passes.h"
#include "passes/reshape_target.h"
#include "passes/transposes.h"

namespace tombolo::passes {
namespace {

using Perm = std::vector<int64_t>;
using Perm3 = std::array<int64_t, 3>;
constexpr Perm3 kMatrices = {0, 2, 1}, kSequenceFirst = {1, 0, 2}, kSequenceFirstTurned = {1, 2, 0};

bool turns(const Rewriter& rewriter, const Node* node, const Perm3& wanted) {
  const auto perm = perm_of(rewriter, node);
  return perm && std::equal(perm->begin(), perm->end(), wanted.begin(), wanted.end());
}

/// Values of three axes [product of `lead`, rows, columns], with the axes `lead` apart.
class Unflattened {
 public:
  Unflattened(Rewriter& rewriter, Node& before, SymShape lead)
      : rewriter_(rewriter), before_(before), lead_(std::move(lead)) {}

  /// Whether nothing has to be moved for it.
  bool can(const Value* value, int depth = 0) const {
    constexpr int kMaxDepth = 24;
    const SymShape* shape = value != nullptr ? rewriter_.shape(value) : nullptr;
    const Node* node = shape != nullptr ? value->producer() : nullptr;
    if (shape == nullptr || shape->size() != 3 || node == nullptr || depth > kMaxDepth ||
        &node->graph() != &before_.graph())
      return false;
    if (joined(*node) || joined_row(*node) || sequence_first(*node)) return true;
    if (!Rewriter::single_use(value)) return false;
    if (rewriter_.is(node, "Transpose"))
      return turns(rewriter_, node, kMatrices) && can(node->input(0), depth + 1);
    if (rewriter_.is(node, "Softmax")) {
      const int64_t axis = AttributeReader(*node).get_int("axis", -1);
      return (axis == -1 || axis == 2) && can(node->input(0), depth + 1);
    }
    const bool product = rewriter_.is(node, "MatMul");
    if (!product && !is_elementwise(*node)) return false;
    bool any = false;
    for (const Value* input : node->inputs()) {
      if (!product && broadcasts(input)) continue;
      const SymShape* own = input != nullptr ? rewriter_.shape(input) : nullptr;
      if (own == nullptr || own->size() != 3 || !(*own)[0].equals((*shape)[0]) ||
          !can(input, depth + 1))
        return false;
      any = true;
    }
    return any;
  }

  Value* build(Value* value) {
    Node& node = *value->producer();
    if (joined(node)) return node.input(0);
    const auto axes = static_cast<int64_t>(lead_.size());
    if (joined_row(node)) {
      const int64_t row[] = {axes};
      Value* place = rewriter_.ints_initializer(before_.graph(), row, "axes");
      Node& made = rewriter_.add(before_, "Unsqueeze", {node.input(0), place}, value->name());
      rewriter_.touch(made);
      return made.output(0);
    }
    if (sequence_first(node)) {
      const bool turned = turns(rewriter_, &node, kSequenceFirstTurned);
      Value* x = node.input(0)->producer()->input(0);
      const SymShape from = *rewriter_.shape(x);
      const SymShape to = {from[0], lead_[0], lead_[1], (*rewriter_.shape(value))[turned ? 1 : 2]};
      return transposed(add_reshape(rewriter_, before_, x, from, to)->output(0),
                        turned ? Perm{1, 2, 3, 0} : Perm{1, 2, 0, 3});
    }
    if (rewriter_.is(&node, "Transpose")) {
      Perm perm;
      for (int64_t i = 0; i < axes; ++i) perm.push_back(i);
      perm.insert(perm.end(), {axes + 1, axes});
      return transposed(build(node.input(0)), perm);
    }
    std::vector<Value*> inputs;
    for (Value* input : node.inputs())
      inputs.push_back(!rewriter_.is(&node, "MatMul") && broadcasts(input) ? input : build(input));
    Node& made = rewriter_.add(before_, node.op_type(), inputs, value->name());
    copy_attributes(node, made, {"axis"});
    if (rewriter_.is(&node, "Softmax")) made.set_int("axis", axes + 1);
    rewriter_.touch(made);
    return made.output(0);
  }

  Value* transposed(Value* x, const Perm& perm) {
    Node& made = rewriter_.add(before_, "Transpose", {x}, x->name());
    made.set_ints("perm", perm);
    rewriter_.touch(made);
    return made.output(0);
  }

 private:
  bool is_elementwise(const Node& node) const {
    return rewriter_.is(&node, "Mul") || rewriter_.is(&node, "Div") || rewriter_.is(&node, "Add") ||
           rewriter_.is(&node, "Sub") || rewriter_.is(&node, "Where");
  }
  /// An operand that is the same for the whole batch.
  bool broadcasts(const Value* input) const {
    const SymShape* shape = input != nullptr ? rewriter_.shape(input) : nullptr;
    return shape != nullptr && (shape->size() < 3 || (shape->size() == 3 && is_one((*shape)[0])));
  }
  /// Reshape of `rank` axes, the first ones `lead`, the last one left as it is.
  bool joins(const Node& node, size_t rank) const {
    if (!rewriter_.is(&node, "Reshape") || node.input(0) == nullptr) return false;
    const SymShape* from = rewriter_.shape(node.input(0));
    const SymShape* to = rewriter_.shape(node.output(0));
    if (from == nullptr || to == nullptr || from->size() != rank) return false;
    for (size_t i = 0; i < lead_.size(); ++i)
      if (!(*from)[i].equals(lead_[i])) return false;
    return from->back().equals(to->back());
  }
  /// Reshape of [lead, rows, columns].
  bool joined(const Node& node) const {
    return joins(node, lead_.size() + 2) && (*rewriter_.shape(node.input(0)))[lead_.size()].equals(
                                                (*rewriter_.shape(node.output(0)))[1]);
  }
  /// Reshape of [lead, columns]: what is added to all rows alike, as Bloom's slopes are.
  bool joined_row(const Node& node) const {
    return joins(node, lead_.size() + 1) && is_one((*rewriter_.shape(node.output(0)))[1]);
  }
  /// [B h, T, d] of x[T, B, h d].
  bool sequence_first(const Node& node) const {
    const bool turned = turns(rewriter_, &node, kSequenceFirstTurned);
    if (lead_.size() != 2 || (!turned && !turns(rewriter_, &node, kSequenceFirst))) return false;
    const Node* reshape = rewriter_.producer(node.input(0), "Reshape");
    const SymShape* from = reshape != nullptr && reshape->input(0) != nullptr
                               ? rewriter_.shape(reshape->input(0))
                               : nullptr;
    const SymShape* to = rewriter_.shape(node.output(0));
    if (from == nullptr || to == nullptr || from->size() != 3 || to->size() != 3) return false;
    const SymDim &length = (*to)[turned ? 2 : 1], &width = (*to)[turned ? 1 : 2];
    return (*from)[0].equals(length) && (*from)[1].equals(lead_[0]) &&
           (*from)[2].equals(lead_[1] * width) &&
           reshape_target(*from, {(*from)[0], lead_[0], lead_[1], width}).has_value();
  }

  Rewriter& rewriter_;
  Node& before_;
  const SymShape lead_;
};

/// Reshape of a product to the axes that its operands had.
bool unflatten_batch(Rewriter& rewriter, Node& node, Value* product) {
  const SymShape* from = rewriter.shape(product);
  const SymShape* to = rewriter.shape(node.output(0));
  if (from == nullptr || to == nullptr || from->size() != 3 || to->size() < 4 ||
      !(*from)[1].equals((*to)[to->size() - 2]) || !from->back().equals(to->back()))
    return false;
  Unflattened unflattened(rewriter, node, SymShape(to->begin(), to->end() - 2));
  if (!unflattened.can(product)) return false;
  rewriter.supersede(*node.output(0), *unflattened.build(product));
  return true;
}

/// Batch and heads that were joined to make a factor of this product, of x[T, B, h d].
std::optional<SymShape> joined_heads(const Rewriter& rewriter, const Value* product) {
  constexpr int kMaxSteps = 24;
  const Value* value = product;
  for (int i = 0; i < kMaxSteps && value->producer() != nullptr; ++i) {
    const Node* node = value->producer();
    if (turns(rewriter, node, kSequenceFirst)) {
      const Node* reshape = rewriter.producer(node->input(0), "Reshape");
      const SymShape* x = reshape != nullptr && reshape->input(0) != nullptr
                              ? rewriter.shape(reshape->input(0))
                              : nullptr;
      const SymShape* heads = rewriter.shape(value);
      if (x == nullptr || heads == nullptr || x->size() != 3 || heads->size() != 3)
        return std::nullopt;
      const auto width = (*x)[2].constant(), one = (*heads)[2].constant();
      if (!width || !one || *one < 1 || *width % *one != 0) return std::nullopt;
      return SymShape{(*x)[1], SymDim(*width / *one)};
    }
    // The values: the factor that stands last.
    value = node->inputs().empty() ? nullptr : node->inputs().back();
    if (value == nullptr) break;
  }
  return std::nullopt;
}

/// Reshape of Transpose(product), which gives the sequence first again.
bool unflatten_sequence(Rewriter& rewriter, Node& node, Node& turn) {
  Value* product = turn.input(0);
  const SymShape* from = rewriter.shape(product);
  const SymShape* to = rewriter.shape(node.output(0));
  if (!Rewriter::single_use(turn.output(0)) || from == nullptr || to == nullptr ||
      from->size() != 3)
    return false;
  const auto lead = joined_heads(rewriter, product);
  if (!lead) return false;
  const SymShape apart = {(*from)[1], (*lead)[0], (*lead)[1], (*from)[2]};
  Unflattened unflattened(rewriter, node, *lead);
  if (!reshape_target(apart, *to) || !unflattened.can(product)) return false;
  const SymShape whole = *to;
  Value* y = unflattened.transposed(unflattened.build(product), {2, 0, 1, 3});
  rewriter.supersede(*node.output(0), *add_reshape(rewriter, node, y, apart, whole)->output(0));
  return true;
}

/// A product, perhaps times a number and with something added, as baddbmm has it.
bool is_product(const Rewriter& rewriter, const Node* node) {
  constexpr int kMaxSteps = 4;
  for (int i = 0; i < kMaxSteps && node != nullptr; ++i) {
    if (rewriter.is(node, "MatMul")) return true;
    if (!rewriter.is(node, "Mul") && !rewriter.is(node, "Div") && !rewriter.is(node, "Add"))
      return false;
    const Node* next = nullptr;
    for (const Value* input : node->inputs())
      if (next == nullptr && input != nullptr && input->producer() != nullptr &&
          !rewriter.is(input->producer(), "Reshape"))
        next = input->producer();
    node = next;
  }
  return false;
}

Result<bool> unflatten(Rewriter& rewriter, Node& node) {
  if (!rewriter.is(&node, "Reshape") || node.input(0) == nullptr) return false;
  Node* inner = node.input(0)->producer();
  if (is_product(rewriter, inner)) return unflatten_batch(rewriter, node, node.input(0));
  if (turns(rewriter, inner, kSequenceFirst) &&
      rewriter.producer(inner->input(0), "MatMul") != nullptr)
    return unflatten_sequence(rewriter, node, *inner);
  return false;
}

}  // namespace

Result<size_t> unflatten_matmul(Rewriter& rewriter) {
  return change_each_node(rewriter, unflatten);
}

}  // namespace tombolo::passes
