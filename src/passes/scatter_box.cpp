// ScatterND of a box: what exporters write for x[:, 2:5, 1:] = y. Its tuples of indices, eight
// bytes for each axis of each element, are put together from one range an axis; the box itself is a
// piece of x between others.

#include <algorithm>

#include "passes/passes.h"

namespace tombolo::passes {
namespace {

bool same_dims(std::span<const SymDim> a, std::span<const SymDim> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const SymDim& x, const SymDim& y) { return x.equals(y); });
}

/// The constant or computed value that an index comes from, along nodes that keep its elements
/// where they are seen from the last axis, and how many axes of length 1 stand behind it by then.
struct Source {
  const Tensor* tensor = nullptr;
  const Value* value = nullptr;
  size_t behind = 0;
};
Source source_of(const Rewriter& rewriter, const Value* value, size_t behind) {
  for (int depth = 0; depth < 4 && value != nullptr; ++depth) {
    if (const Tensor* tensor = rewriter.constant(value)) return {tensor, value, behind};
    const Node* node = value->producer();
    if (node == nullptr || node->inputs().empty() || node->input(0) == nullptr) break;
    if (rewriter.is(node, "Unsqueeze") || rewriter.is(node, "Reshape")) {
      // Only [...] to [..., 1].
      const SymShape *to = rewriter.shape(value), *from = rewriter.shape(node->input(0));
      if (to == nullptr || from == nullptr || behind == 0 || to->empty() || !is_one(to->back()) ||
          !same_dims(*from, std::span(*to).first(to->size() - 1)))
        break;
      --behind;
    } else if (!rewriter.is(node, "Expand")) {
      break;
    }
    value = node->input(0);
  }
  return {nullptr, value, behind};
}

/// Whether a value, broadcast like a constant of start_along(), counts through an axis of so many
/// from 0 on: a Range whose other axes are 1.
bool counts_whole_axis(const Rewriter& rewriter, const Source& source, size_t depth, size_t axis,
                       const SymDim& length) {
  const SymShape* shape = source.value != nullptr ? rewriter.shape(source.value) : nullptr;
  if (shape == nullptr || shape->size() < source.behind) return false;
  const Node* node = source.value->producer();
  if (rewriter.is(node, "Reshape") || rewriter.is(node, "Unsqueeze"))
    node = node->input(0) != nullptr ? node->input(0)->producer() : nullptr;
  if (!rewriter.is(node, "Range") || node->inputs().size() != 3) return false;
  const size_t rank = shape->size() - source.behind;
  if (rank > depth || axis < depth - rank) return false;
  for (size_t j = 0; j < shape->size(); ++j)
    if (j != axis - (depth - rank) && !is_one((*shape)[j])) return false;
  const SymShape* limit = rewriter.elements(node->input(1));
  return limit != nullptr && limit->size() == 1 && (*limit)[0].equals(length) &&
         rewriter.scalar(node->input(0)) == 0.0 && rewriter.scalar(node->input(2)) == 1.0;
}

/// The first number, when element i of `indices`, broadcast to `box` and an axis of tuples behind
/// it, is that number and its place along `axis` together.
std::optional<int64_t> start_along(const Tensor& indices, size_t behind,
                                   std::span<const int64_t> box, size_t axis, int64_t at,
                                   int64_t step) {
  const auto& dims = indices.dims();
  if (indices.dtype() != DType::kInt64 || dims.size() < behind || indices.size() == 0)
    return std::nullopt;
  const size_t rank = dims.size() - behind;
  if (rank > box.size()) return std::nullopt;
  const size_t missing = box.size() - rank;
  for (size_t j = 0; j < rank; ++j)
    if (dims[j] != box[missing + j] && dims[j] != 1) return std::nullopt;
  const bool varies = axis >= missing && dims[axis - missing] == box[axis];
  if (!varies && box[axis] != 1) return std::nullopt;
  int64_t inner = 1;  // elements from one place along the axis to the next
  for (size_t j = varies ? axis - missing + 1 : rank; j < rank; ++j) inner *= dims[j];
  const int64_t* numbers = indices.data<int64_t>() + at;
  const int64_t first = numbers[0], count = indices.size() / step;
  for (int64_t i = 0; i < count; ++i)
    if (numbers[i * step] != first + (varies ? i / inner % box[axis] : 0)) return std::nullopt;
  return first;
}

/// Its size where that is a number; -1, which no constant has.
int64_t number_or_none(const SymDim& dim) { return dim.is_value() ? dim.value() : -1; }

/// First places of the box that the indices of `scatter` count through, in order.
std::optional<std::vector<int64_t>> box_starts(const Rewriter& rewriter, const Node& scatter,
                                               std::span<const SymDim> dims) {
  std::vector<int64_t> starts, box;
  for (const SymDim& dim : dims) box.push_back(number_or_none(dim));
  const auto add = [&](const Tensor* tensor, size_t behind, int64_t at, int64_t step) {
    if (tensor == nullptr || !tensor->aligned()) return false;
    const auto first = start_along(*tensor, behind, box, starts.size(), at, step);
    if (first) starts.push_back(*first);
    return first.has_value();
  };
  if (const Tensor* whole = rewriter.constant(scatter.input(1))) {
    const auto depth = static_cast<int64_t>(box.size());
    for (int64_t j = 0; j < depth; ++j)
      if (!add(whole, 1, j, depth)) return std::nullopt;
    return starts;
  }
  const Node* concat = rewriter.producer(scatter.input(1), "Concat");
  if (concat == nullptr || concat->inputs().size() != box.size()) return std::nullopt;
  const int64_t axis = AttributeReader(*concat).get_int("axis", 0);
  if (axis != -1 && axis != static_cast<int64_t>(box.size())) return std::nullopt;
  for (const Value* part : concat->inputs()) {
    const SymShape* shape = rewriter.shape(part);
    if (shape == nullptr || shape->empty() || !is_one(shape->back()) ||
        !same_dims(std::span(*shape).first(shape->size() - 1), dims))
      return std::nullopt;
    const Source source = source_of(rewriter, part, 1);
    const size_t at = starts.size();
    if (counts_whole_axis(rewriter, source, box.size(), at, dims[at]))
      starts.push_back(0);
    else if (!add(source.tensor, source.behind, 0, 1))
      return std::nullopt;
  }
  return starts;
}

struct Range {
  int64_t axis, start, end, length;
};

Value* slice(Rewriter& rewriter, Node& before, Value* x, int64_t axis, int64_t start, int64_t end) {
  Graph& graph = before.graph();
  const int64_t numbers[] = {start, end, axis};
  Value* parts[3];
  for (size_t i = 0; i < 3; ++i)
    parts[i] = rewriter.ints_initializer(graph, std::span(numbers).subspan(i, 1), "slice");
  return rewriter.add(before, "Slice", {x, parts[0], parts[1], parts[2]}, x->name()).output(0);
}

/// x with `updates` in place of the box, whose axes that are not whole are these.
Value* assign(Rewriter& rewriter, Node& before, Value* x, Value* updates,
              std::span<const Range> ranges) {
  if (ranges.empty()) return updates;
  const Range& range = ranges[0];
  Value* box =
      ranges.size() == 1 ? x : slice(rewriter, before, x, range.axis, range.start, range.end);
  box = assign(rewriter, before, box, updates, ranges.subspan(1));
  std::vector<Value*> parts;
  if (range.start > 0) parts.push_back(slice(rewriter, before, x, range.axis, 0, range.start));
  parts.push_back(box);
  if (range.end < range.length)
    parts.push_back(slice(rewriter, before, x, range.axis, range.end, range.length));
  Node& concat = rewriter.add(before, "Concat", parts, updates->name());
  concat.set_int("axis", range.axis);
  rewriter.touch(concat);
  return concat.output(0);
}

size_t to_slices(Rewriter& rewriter, Node& scatter) {
  if (AttributeReader(scatter).get_string("reduction", "none") != "none") return 0;
  const SymShape *data = rewriter.shape(scatter.input(0)),
                 *indices = rewriter.shape(scatter.input(1)),
                 *updates = rewriter.shape(scatter.input(2));
  if (data == nullptr || indices == nullptr || updates == nullptr || indices->empty() ||
      number_or_none(indices->back()) < 1)
    return 0;
  const auto depth = static_cast<size_t>(indices->back().value());
  // Tuples name the first axes; as many axes of indices as they have numbers, and it may be a box.
  if (depth > data->size() || indices->size() != depth + 1 || updates->size() != data->size())
    return 0;
  const std::span<const SymDim> box(indices->data(), depth);
  for (size_t j = 0; j < data->size(); ++j)
    if (!(*updates)[j].equals(j < depth ? box[j] : (*data)[j]) ||
        ((*updates)[j].is_value() && (*updates)[j].value() < 1))
      return 0;
  const auto starts = box_starts(rewriter, scatter, box);
  if (!starts) return 0;
  std::vector<Range> ranges;
  for (size_t j = 0; j < depth; ++j) {
    // An axis of any length is whole, or nothing is known of where the box ends.
    if ((*starts)[j] == 0 && box[j].equals((*data)[j])) continue;
    if (!box[j].is_value() || !(*data)[j].is_value()) return 0;
    const int64_t length = (*data)[j].value(), given = (*starts)[j];
    const int64_t start = given < 0 ? given + length : given, end = start + box[j].value();
    if (start < 0 || end > length) return 0;
    if (end - start < length) ranges.push_back({static_cast<int64_t>(j), start, end, length});
  }
  if (ranges.empty() && !rewriter.replaceable(*scatter.output(0), *scatter.input(2))) return 0;
  Value* result = assign(rewriter, scatter, scatter.input(0), scatter.input(2), ranges);
  rewriter.supersede(*scatter.output(0), *result);
  return 1;
}

}  // namespace

Result<size_t> scatter_to_slices(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes())
      if (rewriter.is(node, "ScatterND") && node->output(0) != nullptr)
        count += to_slices(rewriter, *node);
  });
  return count;
}

}  // namespace tombolo::passes
