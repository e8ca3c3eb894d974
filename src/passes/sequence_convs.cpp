// Convolutions and pools of sequences as TensorFlow and others write them: as images of one row,
// with an axis of length 1 put in before and taken out behind. They work on the sequences, and what
// lies between two of them has nothing in its way.

#include <algorithm>
#include <map>

#include "passes/attributes.h"
#include "passes/elements.h"
#include "passes/passes.h"
#include "passes/reshape_target.h"
#include "passes/transposes.h"

namespace tombolo::passes {
namespace {

/// Whether `image` is `sequence` with an axis of length 1 at `axis`.
bool has_row(const SymShape& image, const SymShape& sequence, size_t axis) {
  if (image.size() != sequence.size() + 1 || image[axis].constant() != 1) return false;
  for (size_t i = 0; i < sequence.size(); ++i)
    if (!sequence[i].equals(image[i + (i >= axis ? 1 : 0)])) return false;
  return true;
}

/// What an image of one row is made of: a view that puts in the row, perhaps turned behind it.
struct Row {
  Value* sequence;
  std::vector<int64_t> perm;  ///< of the sequence's axes; empty: as they are
};

std::optional<Row> row_of_image(const Rewriter& rewriter, const Node& reader, Value* image,
                                size_t axis) {
  std::vector<int64_t> perm;
  if (const Node* turn = rewriter.producer(image, "Transpose")) {
    const auto own = perm_of(rewriter, turn);
    if (!own || axis >= own->size() || &turn->graph() != &reader.graph()) return std::nullopt;
    const int64_t from = (*own)[axis];
    for (size_t i = 0; i < own->size(); ++i)
      if (i != axis) perm.push_back((*own)[i] - ((*own)[i] > from ? 1 : 0));
    image = turn->input(0);
    axis = static_cast<size_t>(from);
  }
  const Node* view = image->producer();
  if ((!rewriter.is(view, "Unsqueeze") && !rewriter.is(view, "Reshape")) ||
      view->input(0) == nullptr || &view->graph() != &reader.graph())
    return std::nullopt;
  const SymShape* whole = rewriter.shape(image);
  const SymShape* sequence = rewriter.shape(view->input(0));
  if (whole == nullptr || sequence == nullptr || !has_row(*whole, *sequence, axis))
    return std::nullopt;
  return Row{view->input(0), perm};
}

/// The windows of one graph that slide along one axis of an image of one row.
class Sequences {
 public:
  Sequences(Rewriter& rewriter, Graph& graph) : rewriter_(rewriter), graph_(graph) {}

  size_t run() {
    size_t count = 0;
    for (Node* node : graph_.nodes()) {
      follow(*node);
      count += convert(*node);
    }
    return count;
  }

 private:
  bool slides(const Node& node) const {
    return rewriter_.is(&node, "Conv") || rewriter_.is(&node, "MaxPool") ||
           rewriter_.is(&node, "AveragePool");
  }

  /// The lengths of a window; of a convolution's constant weights.
  std::optional<std::vector<int64_t>> window(const Node& node) const {
    if (!rewriter_.is(&node, "Conv")) {
      const auto kernel = AttributeReader(node).get_ints("kernel_shape");
      return std::vector<int64_t>(kernel.begin(), kernel.end());
    }
    const auto dims = rewriter_.dims(node.input(1));
    if (!dims || dims->size() < 3 || !rewriter_.is_constant(node.input(1))) return std::nullopt;
    return std::vector<int64_t>(dims->begin() + 2, dims->end());
  }

  /// Whether the node's window slides over an image of one row without touching `axis`, the row's.
  bool passes_row(const Node& node, size_t axis) const {
    if (!slides(node) || node.input(0) == nullptr || node.outputs().size() != 1 ||
        node.output(0) == nullptr)
      return false;
    const SymShape* image = rewriter_.shape(node.input(0));
    const SymShape* result = rewriter_.shape(node.output(0));
    const auto lengths = window(node);
    if (image == nullptr || result == nullptr || image->size() != 4 || result->size() != 4 ||
        !lengths || lengths->size() != 2 || (*lengths)[axis - 2] != 1 ||
        (*image)[axis].constant() != 1 || (*result)[axis].constant() != 1)
      return false;
    const auto pads = AttributeReader(node).get_ints("pads");
    return pads.empty() || (pads.size() == 4 && pads[axis - 2] == 0 && pads[axis] == 0);
  }

  /// What is done element by element with an image of one row is one, too.
  void follow(const Node& node) {
    const auto known = images_.find(element_source(rewriter_, node));
    if (known != images_.end()) images_.emplace(node.output(0), known->second);
  }

  /// Whether all who read an image take its row out, perhaps behind other windows: else a view
  /// would come between them.
  bool ends(const Value& image, size_t axis, int depth = 0) {
    constexpr int kDeepest = 1000;
    if (depth > kDeepest) return false;
    const auto [known, fresh] = ends_.emplace(std::pair(&image, axis), false);
    if (!fresh) return known->second;
    const SymShape* whole = rewriter_.shape(&image);
    if (whole == nullptr || image.output_uses() != 0 || image.uses().empty()) return false;
    for (const Use& use : image.uses()) {
      const Node& reader = *use.node;
      if (&reader.graph() != &graph_ || use.index != 0 || reader.output(0) == nullptr) return false;
      if (rewriter_.is(&reader, "Squeeze") || rewriter_.is(&reader, "Reshape")) {
        const SymShape* sequence = rewriter_.shape(reader.output(0));
        if (sequence == nullptr || !has_row(*whole, *sequence, axis)) return false;
      } else if (!(passes_row(reader, axis) || element_source(rewriter_, reader) == &image) ||
                 !ends(*reader.output(0), axis, depth + 1)) {
        return false;
      }
    }
    return ends_[std::pair(&image, axis)] = true;
  }

  bool convert(Node& node) {
    for (const size_t axis : {size_t(2), size_t(3)}) {
      if (!passes_row(node, axis)) continue;
      const auto known = images_.find(node.input(0));
      const auto row = row_of_image(rewriter_, node, node.input(0), axis);
      if ((row || (known != images_.end() && known->second == axis)) &&
          ends(*node.output(0), axis) && convert(node, axis, row))
        return true;
    }
    return false;
  }

  bool convert(Node& node, size_t axis, const std::optional<Row>& row) {
    const SymShape image = *rewriter_.shape(node.input(0)),
                   result = *rewriter_.shape(node.output(0));
    const auto flat = [&](SymShape shape) {
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
      return shape;
    };
    const SymShape from = flat(image), to = flat(result);
    const bool conv = rewriter_.is(&node, "Conv");
    const Tensor* weight = conv ? rewriter_.constant(node.input(1)) : nullptr;
    if (!reshape_target(to, result) || !reshape_target(image, from) || (conv && weight == nullptr))
      return false;
    std::vector<Value*> inputs(node.inputs().begin(), node.inputs().end());
    if (!row) {
      inputs[0] = add_reshape(rewriter_, node, node.input(0), image, from)->output(0);
    } else if (std::is_sorted(row->perm.begin(), row->perm.end())) {
      inputs[0] = row->sequence;
    } else {
      Node& turn = rewriter_.add(node, "Transpose", {row->sequence}, node.input(0)->name());
      turn.set_ints("perm", row->perm);
      rewriter_.touch(turn);
      inputs[0] = turn.output(0);
    }
    if (conv) {
      Dims dims = weight->dims();
      dims.erase(static_cast<uint32_t>(axis));
      inputs[1] = rewriter_.initializer(graph_, weight->reshaped(dims), node.input(1)->name());
    }
    Node& made = rewriter_.add(node, node.op_type(), inputs, node.output(0)->name());
    copy_attributes(node, made);
    for (const Text name :
         {Text("dilations"), Text("kernel_shape"), Text("strides"), Text("pads")}) {
      std::vector<int64_t> kept;
      const auto given = AttributeReader(node).get_ints(name);
      for (size_t i = 0; i < given.size(); ++i)
        if (i % 2 != axis - 2) kept.push_back(given[i]);
      if (!kept.empty()) made.set_ints(name, kept);
    }
    rewriter_.touch(made);
    Node* back = add_reshape(rewriter_, node, made.output(0), to, result);
    images_.emplace(back->output(0), axis);
    rewriter_.supersede(*node.output(0), *back->output(0));
    return true;
  }

  Rewriter& rewriter_;
  Graph& graph_;
  std::map<const Value*, size_t> images_;  ///< of one row, and the axis of the row
  std::map<std::pair<const Value*, size_t>, bool> ends_;
};

}  // namespace

Result<size_t> sequence_convolutions(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) { count += Sequences(rewriter, graph).run(); });
  return count;
}

}  // namespace tombolo::passes
