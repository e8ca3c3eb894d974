// Which tensors are one another when branches and loops come together. What a branch leaves behind
// is copied and remembers what it was (Cell::origin, Box::origin); where two sides come together to
// one tensor, it may be either of them, and AtenContext::may_share knows.

#include <algorithm>
#include <unordered_set>

#include "formats/pytorch/script/builtins.h"

namespace tombolo::script {

/// The value of a tensor for what is carried out of a branch: that of one that must not be read any
/// more is never used (Pattern::stale).
Value* Interpreter::frozen_value(const Ref& tensor) {
  return AtenContext::root(tensor)->stale ? tensor->value : c.read(tensor);
}

/// A copy of what an item holds now, that later changes do not reach.
Item Interpreter::frozen(const Item& item) {
  switch (item.kind) {
    case Item::Kind::kArg: {
      if (!item.is_tensor()) return item;
      auto cell = std::make_shared<Cell>();
      cell->value = frozen_value(item.arg.tensor);
      cell->dtype = item.arg.tensor->dtype;
      cell->layout = item.arg.tensor->layout;
      cell->strides = item.arg.tensor->strides;
      cell->quantization = item.arg.tensor->quantization;
      cell->stale = AtenContext::root(item.arg.tensor)->stale;
      cell->origin = origin_of(item.arg.tensor);
      return Item(Arg(Ref(std::move(cell))));
    }
    case Item::Kind::kList:
    case Item::Kind::kTuple:
    case Item::Kind::kDict:
    case Item::Kind::kMaybe: {
      auto box = std::make_shared<Box>(*item.box);
      box->origin = origin_of(item.box);
      for (Item& part : box->items) part = frozen(part);
      return Item::of(item.kind, std::move(box));
    }
    default:
      return item;
  }
}

/// The side of a branch on which a number is 0: of `if count > 0:` the other one; -1 where the
/// condition is not of that kind.
int Interpreter::empty_side(const Value* condition) {
  const Node* node = condition->producer();
  bool negated = false;
  if (node && node->op_type() == "Not") {
    negated = true;
    node = node->input(0)->producer();
  }
  if (node == nullptr || node->inputs().size() != 2) return -1;
  const auto zero = [&](size_t i) {
    const Tensor* number = c.b.constant_value(node->input(i));
    return number && is_integer(number->dtype()) && number->size() == 1 &&
           number->get_int64(0) == 0;
  };
  const std::string_view kind = node->op_type();
  const bool equal = kind == "Equal" && (zero(0) || zero(1));
  const bool more = (kind == "Greater" && zero(1)) || (kind == "Less" && zero(0));
  if (!equal && !more) return -1;
  // The number must be one of elements: sums of sizes.
  std::vector<const Value*> open = {node->input(zero(0) ? 1 : 0)};
  for (size_t steps = 0; !open.empty(); ++steps) {
    const Value* value = open.back();
    open.pop_back();
    if (c.b.constant_value(value)) continue;
    const Node* made = value->producer();
    if (made == nullptr || steps > 100) return -1;
    const std::string_view type = made->op_type();
    if (type == "Shape" || type == "Size" || type == "SequenceLength") continue;
    if (type != "Add" && type != "Mul" && type != "Gather" && type != "Squeeze" && type != "Cast" &&
        type != "Reshape" && type != "Slice" && type != "ReduceSum" && type != "ReduceProd")
      return -1;
    if (type == "Add" || type == "Mul") open.push_back(made->input(1));
    open.push_back(made->input(0));
  }
  return equal != negated ? 0 : 1;
}

/// A tensor of the side on which something has no elements, in the rank of the other side: what
/// follows takes one rank only, and without elements any will do. (Were there elements, the model
/// would stop.)
Item Interpreter::empty_like(const Item& item, const Item& other) {
  Value *mine = frozen_value(item.arg.tensor), *wanted = frozen_value(other.arg.tensor);
  if (!c.b.has_shape(mine) || !c.b.has_shape(wanted) || c.b.rank(mine) == c.b.rank(wanted) ||
      c.b.rank(wanted) == 0)
    return item;
  std::vector<int64_t> dims;
  for (const SymDim& dim : c.b.shape(wanted)) dims.push_back(dim.is_value() ? dim.value() : 1);
  dims[0] = 0;
  bool may_be_empty = false;
  for (const SymDim& dim : c.b.shape(mine))
    may_be_empty = may_be_empty || !dim.is_value() || dim.value() == 0;
  if (!may_be_empty) return item;
  Value* shaped = c.op("Reshape", {mine, c.b.ints(dims)}, {{"allowzero", 1}});
  Item result = frozen(item);
  result.arg.tensor->value = shaped;
  return result;
}

/// What came out of a branch or into a loop may be any of the tensors that it is on one path or
/// another.
void Interpreter::entangle() {
  for (const auto& [cell, origins] : raised_)
    for (const Ref& origin : origins) c.may_share(origin, cell);
  raised_.clear();
}

void Interpreter::Relations::leaves(const Item& item, const Pattern& pattern) {
  using PKind = Pattern::Kind;
  if (pattern.kind == PKind::kSame || pattern.kind == PKind::kSequence) return;
  if (pattern.kind == PKind::kLeaf) {
    if (pattern.torch_dtype != DType::kUndefined)
      tensors_.push_back(item.is_tensor() ? origin_of(item.arg.tensor) : nullptr);
    return;
  }
  const bool maybe = pattern.kind == PKind::kMaybe;
  const Item& held = maybe && item.is(Item::Kind::kMaybe) ? item.box->items[0] : item;
  for (size_t i = 0; i < pattern.parts.size(); ++i) {
    if (maybe) {
      leaves(held, pattern.parts[i]);
    } else {
      leaves(held.box && i < held.box->items.size() ? held.box->items[i] : Item(),
             pattern.parts[i]);
    }
  }
}

bool Interpreter::Relations::grow(AtenContext& c, uint64_t outside) {
  bool grown = false;
  const auto add = [&](uint64_t kind, uint64_t a, uint64_t b) {
    grown = known_.insert({kind, a, b}).second || grown;
  };
  std::map<uint64_t, size_t> made;  // memories of this turn, and who had them first
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i]) continue;
    const Ref root = AtenContext::root(tensors_[i]);
    if (root->pinned) add(0, i, 0);
    if (root->stale) add(1, i, 0);
    if (tensors_[i]->layout != pytorch::CellLayout::kContiguous) add(2, i, 0);
    for (const uint64_t memory : c.memories_of(root)) {
      if (memory < outside) {
        add(3, i, memory);
      } else if (const auto [first, fresh] = made.emplace(memory, i); !fresh) {
        add(4, first->second, i);
      }
    }
  }
  tensors_.clear();
  return grown;
}

}  // namespace tombolo::script
