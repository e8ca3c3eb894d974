// Split, Concat, Gather and Slice that undo or spell out each other.

#include <algorithm>
#include <limits>

#include "passes/passes.h"
#include "passes/slice_bounds.h"

namespace tombolo::passes {
namespace {

int64_t axis_of(const Rewriter& rewriter, const Node& node, const Value* ranked) {
  const int64_t axis = AttributeReader(node).get_int("axis", 0);
  const auto rank = rewriter.rank(ranked);
  return rank && axis < 0 ? axis + static_cast<int64_t>(*rank) : axis;
}

/// All outputs of a Split, in order, put together along the same axis.
size_t rejoin(Rewriter& rewriter, Node& concat) {
  Node* split = rewriter.producer(concat.input(0), "Split");
  if (split == nullptr || &split->graph() != &concat.graph() ||
      split->outputs().size() != concat.inputs().size() ||
      axis_of(rewriter, *split, split->input(0)) != axis_of(rewriter, concat, concat.output(0)))
    return 0;
  for (size_t i = 0; i < concat.inputs().size(); ++i)
    if (concat.input(i) == nullptr || concat.input(i) != split->output(i)) return 0;
  if (!rewriter.replaceable(*concat.output(0), *split->input(0))) return 0;
  rewriter.supersede(*concat.output(0), *split->input(0));
  return 1;
}

/// A Split into just the parts that a Concat put together.
size_t take_apart(Rewriter& rewriter, Node& split) {
  Node* concat = rewriter.producer(split.input(0), "Concat");
  if (concat == nullptr || &split.graph() != &concat->graph() ||
      split.outputs().size() != concat->inputs().size())
    return 0;
  const int64_t axis = axis_of(rewriter, split, split.input(0));
  if (axis < 0 || axis != axis_of(rewriter, *concat, concat->output(0))) return 0;
  for (size_t i = 0; i < split.outputs().size(); ++i) {
    if (split.output(i) == nullptr) continue;
    const SymShape* part = rewriter.shape(concat->input(i));
    const SymShape* out = rewriter.shape(split.output(i));
    if (part == nullptr || out == nullptr || static_cast<size_t>(axis) >= part->size() ||
        part->size() != out->size() ||
        !(*part)[static_cast<size_t>(axis)].equals((*out)[static_cast<size_t>(axis)]) ||
        !rewriter.replaceable(*split.output(i), *concat->input(i)))
      return 0;
  }
  for (size_t i = 0; i < split.outputs().size(); ++i)
    if (split.output(i) != nullptr) rewriter.replace(*split.output(i), *concat->input(i));
  rewriter.erase(split);
  return 1;
}

/// What node gives is [start, end) of x along the axis: a Slice in its place.
void take_slice(Rewriter& rewriter, Node& node, Value& x, int64_t axis, int64_t start,
                int64_t end) {
  Graph& graph = node.graph();
  Node& slice = rewriter.add(node, "Slice",
                             {&x, rewriter.ints_initializer(graph, {&start, 1}, "starts"),
                              rewriter.ints_initializer(graph, {&end, 1}, "ends"),
                              rewriter.ints_initializer(graph, {&axis, 1}, "axes")},
                             node.output(0)->name());
  rewriter.supersede(*node.output(0), *slice.output(0));
}

/// A Slice along the axis of a Concat, out of one of its parts: that part, or a Slice of it.
size_t take_part(Rewriter& rewriter, Node& slice) {
  Node* concat = rewriter.producer(slice.input(0), "Concat");
  const auto rank = rewriter.rank(slice.input(0));
  if (concat == nullptr || &slice.graph() != &concat->graph() || !rank) return 0;
  const int64_t axis = axis_of(rewriter, *concat, concat->output(0));
  const auto bounds = slice_bounds(rewriter, slice, *rank);
  const auto ends = rewriter.ints(slice.input(2));
  if (!bounds || !ends || ends->size() != 1 || bounds->starts.size() != 1 ||
      bounds->axes[0] != axis || bounds->steps[0] != 1)
    return 0;
  const int64_t first = bounds->starts[0], end = (*ends)[0];
  const auto length = rewriter.dim(slice.input(0), axis);
  if (!length && (first < 0 || end < 0)) return 0;
  const auto clamped = [&](int64_t at) {
    if (!length) return at;
    return std::clamp<int64_t>(at < 0 ? std::max(at, -*length) + *length : at, 0, *length);
  };
  const int64_t from = clamped(first), to = clamped(end);
  int64_t before = 0;
  for (Value* part : concat->inputs()) {
    const auto own = part == nullptr ? std::nullopt : rewriter.dim(part, axis);
    if (!own || from >= to || *own > std::numeric_limits<int64_t>::max() - before) return 0;
    if (from >= before + *own) {
      before += *own;
      continue;
    }
    if (to > before + *own) return 0;
    if (to - from == *own) {
      if (!rewriter.replaceable(*slice.output(0), *part)) return 0;
      rewriter.supersede(*slice.output(0), *part);
      return 1;
    }
    take_slice(rewriter, slice, *part, axis, from - before, to - before);
    return 1;
  }
  return 0;
}

/// Gather of neighbouring indices along an axis is a Slice.
size_t to_slice(Rewriter& rewriter, Node& gather) {
  if (rewriter.rank(gather.input(1)) != 1u || !rewriter.is_constant(gather.input(1))) return 0;
  const auto indices = rewriter.ints(gather.input(1));
  if (!indices || indices->empty()) return 0;
  // Gather refuses what is out of range, Slice does not: the length must be known.
  const int64_t axis = axis_of(rewriter, gather, gather.input(0));
  const auto length = rewriter.dim(gather.input(0), axis);
  const auto count = static_cast<int64_t>(indices->size());
  const int64_t first = (*indices)[0];
  if (!length || first < -*length || first > *length - count) return 0;
  for (int64_t i = 1; i < count; ++i)
    if ((*indices)[static_cast<size_t>(i)] != first + i) return 0;
  const int64_t end = first + count;
  if (first < 0 && end > 0) return 0;
  const int64_t shift = first < 0 ? *length : 0;
  take_slice(rewriter, gather, *gather.input(0), axis, first + shift, end + shift);
  return 1;
}

}  // namespace

Result<size_t> merge_split_concat(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes()) {
      if (node->outputs().empty() || node->output(0) == nullptr || node->input(0) == nullptr)
        continue;
      if (rewriter.is(node, "Concat"))
        count += rejoin(rewriter, *node);
      else if (rewriter.is(node, "Split"))
        count += take_apart(rewriter, *node);
      else if (rewriter.is(node, "Slice"))
        count += take_part(rewriter, *node);
    }
  });
  return count;
}

Result<size_t> gather_to_slice(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes())
      if (rewriter.is(node, "Gather") && node->output(0) != nullptr)
        count += to_slice(rewriter, *node);
  });
  return count;
}

}  // namespace tombolo::passes
