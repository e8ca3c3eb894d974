// Operators that only give their input another shape: chains of them become one Reshape or nothing,
// and shapes that are computed become constants wherever inference knows enough.

#include <algorithm>
#include <span>

#include "passes/attributes.h"
#include "passes/elements.h"
#include "passes/passes.h"
#include "passes/reshape_target.h"

namespace tombolo::passes {
namespace {

/// The node's output has the elements of its first input, in their order.
bool is_view(const Rewriter& rewriter, const Node* node) {
  return rewriter.is(node, "Reshape") || rewriter.is(node, "Flatten") ||
         rewriter.is(node, "Squeeze") || rewriter.is(node, "Unsqueeze");
}

bool has_zero(const std::vector<int64_t>& dims) {
  return std::find(dims.begin(), dims.end(), 0) != dims.end();
}

/// Makes `node` a Reshape of `input`, whose shape is `from`, to `to`; false where no list says
/// that.
bool become_reshape(Rewriter& rewriter, Node& node, Value* input, const SymShape& from,
                    const SymShape& to) {
  Node* reshape = add_reshape(rewriter, node, input, from, to, node.output(0)->name());
  if (reshape != nullptr) rewriter.supersede(*node.output(0), *reshape->output(0));
  return reshape != nullptr;
}

/// What the Reshape's shape input says, where that does not depend on the input's own shape.
bool ignores_input_shape(const Rewriter& rewriter, const Node& reshape) {
  const auto target = rewriter.ints(reshape.input(1));
  if (!target) return false;
  const bool allow_zero = AttributeReader(reshape).get_int("allowzero", 0) != 0;
  return allow_zero || !has_zero(*target);
}

size_t merge_view(Rewriter& rewriter, Node& node) {
  Value* output = node.output(0);
  // An ancestor of the same shape.
  Value* root = node.input(0);
  std::vector<Value*> ancestors = {root};
  while (is_view(rewriter, root->producer())) {
    root = root->producer()->input(0);
    if (root == nullptr) return 0;
    ancestors.push_back(root);
  }
  for (size_t i = ancestors.size(); i-- > 1;)
    if (rewriter.same_shape(ancestors[i], output) && rewriter.replaceable(*output, *ancestors[i])) {
      rewriter.supersede(*output, *ancestors[i]);
      return 1;
    }
  if (ancestors.size() < 2) return 0;
  // One Reshape of the first.
  if (rewriter.is(&node, "Reshape") && ignores_input_shape(rewriter, node)) {
    node.set_input(0, root);
    rewriter.touch(node);
    return 1;
  }
  if (!Rewriter::single_use(node.input(0))) return 0;
  const SymShape* from = rewriter.shape(root);
  const SymShape* to = rewriter.shape(output);
  return from != nullptr && to != nullptr && become_reshape(rewriter, node, root, *from, *to) ? 1
                                                                                              : 0;
}

/// For each axis of shape `to` the one of shape `from` with the same elements, or -1 where there is
/// but one: the two differ by dimensions of 1 alone. Nothing where they do not.
std::optional<std::vector<int64_t>> axes_between(const SymShape& from, const SymShape& to) {
  std::vector<int64_t> axes;
  size_t i = 0;
  const auto is_one = [](const SymDim& dim) { return dim.is_value() && dim.value() == 1; };
  while (axes.size() < to.size() || i < from.size()) {
    if (axes.size() < to.size() && i < from.size() && to[axes.size()].equals(from[i]))
      axes.push_back(static_cast<int64_t>(i++));
    else if (i < from.size() && is_one(from[i]))
      ++i;
    else if (axes.size() < to.size() && is_one(to[axes.size()]))
      axes.push_back(-1);
    else
      return std::nullopt;
  }
  return axes;
}

/// A constant with a number for each place of `from`'s last axis, which the last ones of `to` share
/// out, as a row.
std::optional<Tensor> constant_of_last_axis(const Tensor& tensor, const SymShape& from,
                                            const SymShape& to) {
  const int64_t row[] = {tensor.size()};
  if (row[0] == 1) return tensor.reshaped({});
  if (from.empty() || from.back().constant() != row[0]) return std::nullopt;
  int64_t places = 1;
  for (size_t i = to.size(), j = tensor.dims().size(); i-- > 0 && j-- > 0;) {
    if (to[i].constant() != tensor.dims()[j]) break;
    places *= tensor.dims()[j];
    if (places == row[0]) return tensor.reshaped(row);
  }
  return std::nullopt;
}

/// A constant as it broadcasts to values of shape `from`, whose view of shape `to` it broadcasts
/// to; nothing where there is none.
std::optional<Tensor> constant_behind(const Rewriter& rewriter, const Value* value,
                                      const SymShape& from, const SymShape& to) {
  const Tensor* tensor = rewriter.constant(value);
  if (tensor == nullptr || tensor->dims().size() > to.size()) return std::nullopt;
  if (tensor->dims().empty()) return *tensor;
  const auto axes = axes_between(from, to);
  if (!axes) return constant_of_last_axis(*tensor, from, to);
  Dims dims;
  for (size_t i = 0; i < from.size(); ++i) dims.push_back(1);
  const size_t skipped = to.size() - tensor->dims().size();
  for (size_t j = 0; j < tensor->dims().size(); ++j) {
    const int64_t length = tensor->dims()[j], axis = (*axes)[j + skipped];
    if (axis >= 0)
      dims[static_cast<size_t>(axis)] = length;
    else if (length != 1)
      return std::nullopt;
  }
  return tensor->reshaped(dims);
}

/// What `node` works on row by row of the last axis, beside parameters of one axis; null where it
/// is no such node.
Value* row_source(const Rewriter& rewriter, const Node& node) {
  const bool norm =
      rewriter.is(&node, "LayerNormalization") || rewriter.is(&node, "RMSNormalization");
  const bool row = norm || rewriter.is(&node, "Softmax") || rewriter.is(&node, "LogSoftmax") ||
                   rewriter.is(&node, "Hardmax") || rewriter.is(&node, "LpNormalization");
  if (!row || node.outputs().size() != 1 || node.input(0) == nullptr) return nullptr;
  const auto rank = rewriter.rank(node.input(0));
  const int64_t axis = AttributeReader(node).get_int("axis", -1);
  if (!rank || *rank == 0 || (axis != -1 && axis != static_cast<int64_t>(*rank) - 1))
    return nullptr;
  for (size_t i = 1; i < node.inputs().size(); ++i)
    if (node.input(i) != nullptr && rewriter.rank(node.input(i)).value_or(2) > 1) return nullptr;
  return node.input(0);
}

/// `link`, which works on `before` element by element, on `now` instead; `before` is a view of
/// shape `to` of what has shape `from`.
Node& link_behind(Rewriter& rewriter, Node& at, const Node& link, const Value* before, Value* now,
                  const SymShape& from, const SymShape& to) {
  std::vector<Value*> inputs(link.inputs().begin(), link.inputs().end());
  const bool by_row = row_source(rewriter, link) != nullptr;
  for (Value*& input : inputs) {
    if (input == before)
      input = now;
    else if (by_row)
      continue;
    else if (input != nullptr && rewriter.rank(input) != 0u)
      input = rewriter.initializer(at.graph(), *constant_behind(rewriter, input, from, to),
                                   input->name());
  }
  Node& made = rewriter.add(at, link.op_type(), inputs, link.output(0)->name());
  copy_attributes(link, made);
  if (by_row) made.set_int("axis", -1);
  rewriter.touch(made);
  return made;
}

/// Every constant of `link` has a place behind the view.
bool constants_fit(const Rewriter& rewriter, const Node& link, const SymShape& from,
                   const SymShape& to) {
  if (row_source(rewriter, link) != nullptr) return true;
  for (const Value* input : link.inputs())
    if (input != nullptr && rewriter.is_constant(input) &&
        !constant_behind(rewriter, input, from, to))
      return false;
  return true;
}

/// What is done element by element, or row by row where the rows stay, between two views that undo
/// each other is done without them.
size_t undo_views(Rewriter& rewriter, Graph& graph, Node& node) {
  Value* output = node.output(0);
  std::vector<Node*> chain;  // the last one first
  Value* at = node.input(0);
  bool rows = false;
  while (chain.size() < 16 && Rewriter::single_use(at) && at->producer() != nullptr &&
         &at->producer()->graph() == &graph) {
    Value* source = element_source(rewriter, *at->producer());
    if (source == nullptr) {
      source = row_source(rewriter, *at->producer());
      rows |= source != nullptr;
    }
    if (source == nullptr) break;
    chain.push_back(at->producer());
    at = source;
  }
  if (chain.empty() || !Rewriter::single_use(at) || !is_view(rewriter, at->producer())) return 0;
  Value* root = at->producer()->input(0);
  if (root == nullptr || !rewriter.same_shape(root, output)) return 0;
  if (rewriter.shape(root) == nullptr || rewriter.shape(at) == nullptr) return 0;
  const SymShape from = *rewriter.shape(root), to = *rewriter.shape(at);
  if (rows && (from.empty() || to.empty() || !from.back().equals(to.back()))) return 0;
  // Any of the constants may have no place there: nothing is made before all are known.
  for (const Node* link : chain)
    if (!constants_fit(rewriter, *link, from, to)) return 0;
  Value* now = root;
  for (size_t i = chain.size(); i-- > 0;) {
    const Value* before = i + 1 < chain.size() ? chain[i + 1]->output(0) : at;
    now = link_behind(rewriter, node, *chain[i], before, now, from, to).output(0);
  }
  rewriter.supersede(*output, *now);
  return 1;
}

/// What is done element by element behind a view of a convolution, or of a product with weights, is
/// done before the view: there it joins what it follows.
size_t sink_view(Rewriter& rewriter, Graph& graph, Node& node) {
  Value* root = node.input(0);
  const Node* sums = root->producer();
  const bool weighs = rewriter.is(sums, "Conv") || rewriter.is(sums, "ConvTranspose") ||
                      rewriter.is(sums, "MatMul") || rewriter.is(sums, "Gemm");
  if (!weighs || !rewriter.is_constant(sums->input(1)) || !Rewriter::single_use(root) ||
      rewriter.shape(root) == nullptr || rewriter.shape(node.output(0)) == nullptr)
    return 0;
  const SymShape from = *rewriter.shape(root), to = *rewriter.shape(node.output(0));
  std::vector<const Node*> chain;
  Value* last = node.output(0);
  while (chain.size() < 16 && Rewriter::single_use(last)) {
    const Node& reader = *last->uses().begin()->node;
    if (&reader.graph() != &graph || element_source(rewriter, reader) != last ||
        !constants_fit(rewriter, reader, from, to))
      break;
    chain.push_back(&reader);
    last = reader.output(0);
  }
  if (chain.empty()) return 0;
  Value* now = root;
  const Value* before = node.output(0);
  for (const Node* link : chain) {
    now = link_behind(rewriter, node, *link, before, now, from, to).output(0);
    before = link->output(0);
  }
  std::vector<Value*> inputs(node.inputs().begin(), node.inputs().end());
  inputs[0] = now;
  Node& view = rewriter.add(node, node.op_type(), inputs, last->name());
  copy_attributes(node, view);
  rewriter.touch(view);
  rewriter.supersede(*last, *view.output(0));
  return 1;
}

/// A Reshape whose target is computed, to a constant target.
size_t fix_target(Rewriter& rewriter, Node& node) {
  if (!rewriter.is(&node, "Reshape") || node.input(1) == nullptr) return 0;
  if (rewriter.is_constant(node.input(1))) return 0;
  const SymShape* from = rewriter.shape(node.input(0));
  const SymShape* to = rewriter.shape(node.output(0));
  if (to == nullptr) return 0;
  const bool numbers =
      std::all_of(to->begin(), to->end(), [](const SymDim& dim) { return dim.is_value(); });
  if (from == nullptr && !numbers) return 0;
  const SymShape source = from != nullptr ? *from : SymShape();
  return become_reshape(rewriter, node, node.input(0), source, *to) ? 1 : 0;
}

/// Where dimensions `run`, not all of them numbers, lie side by side in a shape: at `near`, or the
/// first such place.
std::optional<size_t> find_run(const SymShape& shape, const SymShape& run, size_t near) {
  if (std::all_of(run.begin(), run.end(), [](const SymDim& dim) { return dim.is_value(); }))
    return std::nullopt;
  const auto lies_at = [&](size_t start) {
    if (start + run.size() > shape.size()) return false;
    for (size_t i = 0; i < run.size(); ++i)
      if (!run[i].equals(shape[start + i])) return false;
    return true;
  };
  if (lies_at(near)) return near;
  for (size_t start = 0; start + run.size() <= shape.size(); ++start)
    if (lies_at(start)) return start;
  return std::nullopt;
}

/// The first of `values` whose shape has `run`, and where.
std::optional<std::pair<Value*, size_t>> find_among(const Rewriter& rewriter,
                                                    std::span<Value* const> values,
                                                    const SymShape& run, size_t near) {
  for (Value* value : values) {
    const SymShape* shape = value != nullptr ? rewriter.shape(value) : nullptr;
    if (shape == nullptr || value->is_initializer()) continue;
    if (const auto found = find_run(*shape, run, near)) return std::pair(value, *found);
  }
  return std::nullopt;
}

/// `count` dimensions of `source` from `start` on.
Value* dimensions_of(Rewriter& rewriter, Node& before, Value* source, size_t start, size_t count) {
  Node& direct = rewriter.add(before, "Shape", {source}, before.output(0)->name());
  if (start != 0) direct.set_int("start", static_cast<int64_t>(start));
  if (start + count != rewriter.shape(source)->size())
    direct.set_int("end", static_cast<int64_t>(start + count));
  rewriter.touch(direct);
  return direct.output(0);
}

/// The node's output is `count` dimensions of `source` from `start` on.
void become_shape(Rewriter& rewriter, Node& node, Value* source, size_t start, size_t count) {
  rewriter.supersede(*node.output(0), *dimensions_of(rewriter, node, source, start, count));
}

/// A list of a shape's elements in their order, put together by Gather, Unsqueeze, Slice and
/// Concat, is what Shape gives with start and end.
size_t shorten_shape(Rewriter& rewriter, Node& node) {
  if (!rewriter.is(&node, "Concat") && !rewriter.is(&node, "Unsqueeze") &&
      !rewriter.is(&node, "Slice") && !rewriter.is(&node, "Gather"))
    return 0;
  Value* output = node.output(0);
  if (rewriter.rank(output) != 1u) return 0;
  const SymShape* elements = rewriter.elements(output);
  if (elements == nullptr || elements->empty() || rewriter.dtype(output) != DType::kInt64) return 0;
  // The tensor whose shape is asked for.
  for (const Value* part : node.inputs()) {
    const Value* at = part;
    for (int step = 0; step < 4 && at != nullptr && at->producer() != nullptr; ++step) {
      const Node* maker = at->producer();
      if (rewriter.is(maker, "Shape")) {
        Value* source = maker->input(0);
        const SymShape* shape = rewriter.shape(source);
        if (shape == nullptr || &maker->graph() != &node.graph()) break;
        const auto start = find_run(*shape, *elements, 0);
        if (!start) break;
        become_shape(rewriter, node, source, *start, elements->size());
        return 1;
      }
      at = maker->input(0);
    }
  }
  return 0;
}

/// The last dimensions `run` of a product are those of its sides: none of it is computed for them.
/// Masks of attention are made for the shape of its scores.
size_t raise_from_product(Rewriter& rewriter, Node& node, const SymShape& run, bool to_the_end) {
  const Node* product = rewriter.producer(node.input(0), "MatMul");
  if (product == nullptr || run.size() < 2 || !to_the_end || &product->graph() != &node.graph())
    return 0;
  const SymShape* a = rewriter.shape(product->input(0));
  const SymShape* b = rewriter.shape(product->input(1));
  if (a == nullptr || b == nullptr || a->size() < run.size() || b->size() < 2) return 0;
  const size_t start = a->size() - run.size(), columns = b->size() - 1;
  for (size_t i = 0; i + 1 < run.size(); ++i)
    if (!run[i].equals((*a)[start + i])) return 0;
  Value* rows = dimensions_of(rewriter, node, product->input(0), start, run.size() - 1);
  Value* last = dimensions_of(rewriter, node, product->input(1), columns, 1);
  Node& joined = rewriter.add(node, "Concat", {rows, last}, node.output(0)->name());
  joined.set_int("axis", 0);
  rewriter.touch(joined);
  rewriter.supersede(*node.output(0), *joined.output(0));
  return 1;
}

/// Likewise of Einsum, in any order, beside those that are numbers.
size_t raise_from_einsum(Rewriter& rewriter, Node& node, const SymShape& run) {
  const Node* product = rewriter.producer(node.input(0), "Einsum");
  if (product == nullptr || &product->graph() != &node.graph()) return 0;
  std::vector<std::optional<std::pair<Value*, size_t>>> places;  // none: a number
  for (const SymDim& dim : run) {
    places.push_back(find_among(rewriter, product->inputs(), {dim}, 0));
    if (!places.back() && !dim.is_value()) return 0;
  }
  std::vector<Value*> parts;
  std::vector<int64_t> numbers;
  const auto flush = [&] {
    if (!numbers.empty())
      parts.push_back(rewriter.ints_initializer(node.graph(), numbers, "sizes"));
    numbers.clear();
  };
  for (size_t i = 0; i < run.size(); ++i) {
    if (run[i].is_value()) {
      numbers.push_back(run[i].value());
      continue;
    }
    flush();
    parts.push_back(dimensions_of(rewriter, node, places[i]->first, places[i]->second, 1));
  }
  flush();
  Node& joined = rewriter.add(node, "Concat", parts, node.output(0)->name());
  joined.set_int("axis", 0);
  rewriter.touch(joined);
  rewriter.supersede(*node.output(0), *joined.output(0));
  return 1;
}

/// Some dimensions, of which inference knows that a tensor further up has them, too: what lies
/// between is not computed for its shape alone, and nodes that ask the same become one.
size_t raise_dimensions(Rewriter& rewriter, Node& node) {
  const SymShape* shape = rewriter.shape(node.input(0));
  if (!rewriter.is(&node, "Shape") || shape == nullptr) return 0;
  const auto rank = static_cast<int64_t>(shape->size());
  const AttributeReader attributes(node);
  const auto place = [&](Text name, int64_t fallback) {
    const int64_t at = attributes.get_int(name, fallback);
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t first = place("start", 0), last = place("end", rank);
  if (first >= last) return 0;
  const SymShape run(shape->begin() + first, shape->begin() + last);
  Value* best = node.input(0);
  auto start = static_cast<size_t>(first);
  // The graph's inputs first: that is where the layers of a network ask the same.
  if (best->producer() != nullptr && &best->producer()->graph() == &node.graph())
    if (const auto found = find_among(rewriter, node.graph().inputs(), run, start)) {
      become_shape(rewriter, node, found->first, found->second, run.size());
      return 1;
    }
  for (int step = 0; step < 64 && best->producer() != nullptr; ++step) {
    const Node* maker = best->producer();
    if (&maker->graph() != &node.graph()) break;
    Value* next = nullptr;
    for (Value* input : maker->inputs()) {
      const SymShape* above = input != nullptr ? rewriter.shape(input) : nullptr;
      if (above == nullptr || rewriter.is_constant(input)) continue;
      const auto found = find_run(*above, run, start);
      if (!found) continue;
      next = input;
      start = *found;
      break;
    }
    if (next == nullptr) break;
    best = next;
  }
  if (best == node.input(0)) {
    const size_t raised = raise_from_product(rewriter, node, run, last == rank);
    return raised != 0 ? raised : raise_from_einsum(rewriter, node, run);
  }
  become_shape(rewriter, node, best, start, run.size());
  return 1;
}

/// One dimension of a shape, picked by its number, is picked from the graph's input that has it.
size_t raise_dimension(Rewriter& rewriter, Node& node) {
  const Node* measure =
      rewriter.is(&node, "Gather") ? rewriter.producer(node.input(0), "Shape") : nullptr;
  const SymShape* picked = measure != nullptr ? rewriter.elements(node.output(0)) : nullptr;
  if (picked == nullptr || picked->size() != 1 || !(*picked)[0].is_expression() ||
      rewriter.rank(node.input(1)) != 0u || measure->input(0) == nullptr ||
      measure->input(0)->producer() == nullptr || &measure->graph() != &node.graph())
    return 0;
  const auto found = find_among(rewriter, node.graph().inputs(), {(*picked)[0]}, 0);
  if (!found) return 0;
  const auto [input, place] = *found;
  Value* whole = dimensions_of(rewriter, node, input, 0, rewriter.shape(input)->size());
  Value* index = rewriter.initializer(node.graph(),
                                      Tensor::scalar_int64(static_cast<int64_t>(place)), "index");
  Node& made = rewriter.add(node, "Gather", {whole, index}, node.output(0)->name());
  rewriter.touch(made);
  rewriter.supersede(*node.output(0), *made.output(0));
  return 1;
}

/// Shape reads the dimensions, not the values: it reads them where they come from.
size_t raise_shape(Rewriter& rewriter, Node& node) {
  if (!rewriter.is(&node, "Shape") && !rewriter.is(&node, "Size")) return 0;
  Value* at = node.input(0);
  Value* best = at;
  for (int step = 0; step < 64 && at != nullptr && at->producer() != nullptr; ++step) {
    const Node* maker = at->producer();
    if (&maker->graph() != &node.graph()) break;
    // Past a node one of whose inputs has the same shape for certain.
    Value* next = nullptr;
    for (Value* input : maker->inputs())
      if (input != nullptr && rewriter.same_shape(input, best)) next = input;
    if (next == nullptr || rewriter.is_constant(next)) break;
    best = at = next;
  }
  if (best == node.input(0)) return raise_dimensions(rewriter, node);
  node.set_input(0, best);
  rewriter.touch(node);
  return 1;
}

}  // namespace

Value* element_source(const Rewriter& rewriter, const Node& node) {
  if (node.outputs().size() != 1) return nullptr;
  Value* source = nullptr;
  if (is_unary_elementwise(rewriter, node)) {
    source = node.input(0);
    for (size_t i = 1; i < node.inputs().size(); ++i)
      if (node.input(i) != nullptr && rewriter.rank(node.input(i)) != 0u) return nullptr;
  } else if (is_binary_arithmetic(rewriter, node)) {
    const bool first = rewriter.is_constant(node.input(0));
    source = node.input(first ? 1 : 0);
    if (!rewriter.is_constant(node.input(first ? 0 : 1))) return nullptr;
  }
  return source != nullptr && rewriter.same_shape(source, node.output(0)) ? source : nullptr;
}

Result<size_t> simplify_shapes(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes()) {
      if (node->outputs().size() != 1 || node->output(0) == nullptr || node->input(0) == nullptr)
        continue;
      if (const size_t shorter = shorten_shape(rewriter, *node); shorter != 0) {
        count += shorter;
      } else if (const size_t raised = raise_dimension(rewriter, *node); raised != 0) {
        count += raised;
      } else if (is_view(rewriter, node)) {
        const size_t merged = merge_view(rewriter, *node);
        count += merged;
        if (merged == 0) {
          size_t changed = undo_views(rewriter, graph, *node);
          if (changed == 0) changed = sink_view(rewriter, graph, *node);
          count += changed != 0 ? changed : fix_target(rewriter, *node);
        }
      } else {
        count += raise_shape(rewriter, *node);
      }
    }
  });
  return count;
}

}  // namespace tombolo::passes
