// Convolutions of sequences as TensorFlow and others write them: as images of one row, with an axis
// of length 1 put in before and taken out behind. They work on the sequences, and what lies between
// two of them has nothing in its way.

#include <algorithm>

#include "passes/attributes.h"
#include "passes/passes.h"
#include "passes/reshape_target.h"

namespace tombolo::passes {
namespace {

/// Whether `image` is `sequence` with an axis of length 1 at `axis`.
bool has_row(const SymShape& image, const SymShape& sequence, size_t axis) {
  if (image.size() != sequence.size() + 1 || image[axis].constant() != 1) return false;
  for (size_t i = 0; i < sequence.size(); ++i)
    if (!sequence[i].equals(image[i + (i >= axis ? 1 : 0)])) return false;
  return true;
}

/// The list without what it says of spatial axis `place`; nothing where it says anything but
/// `value`. `parts`: lists one after the other, of begins and of ends.
std::optional<std::vector<int64_t>> without(std::span<const int64_t> list, size_t spatial,
                                            size_t place, int64_t value, size_t parts) {
  if (list.size() != spatial * parts) return std::nullopt;
  std::vector<int64_t> result;
  for (size_t i = 0; i < list.size(); ++i) {
    if (i % spatial != place)
      result.push_back(list[i]);
    else if (list[i] != value)
      return std::nullopt;
  }
  return result;
}

Result<bool> to_sequence(Rewriter& rewriter, Node& node) {
  if (!rewriter.is(&node, "Conv") || node.input(0) == nullptr || node.output(0) == nullptr)
    return false;
  const Node* view = node.input(0)->producer();
  const bool is_view = rewriter.is(view, "Unsqueeze") || rewriter.is(view, "Reshape");
  const auto kernel = rewriter.dims(node.input(1));
  if (!is_view || view->input(0) == nullptr || !rewriter.is_constant(node.input(1)) || !kernel ||
      kernel->size() != 4)
    return false;
  const SymShape* sequence = rewriter.shape(view->input(0));
  const SymShape* image = rewriter.shape(node.input(0));
  const SymShape* result = rewriter.shape(node.output(0));
  const AttributeReader attributes(node);
  const Text automatic = attributes.get_string("auto_pad", "NOTSET");
  if (sequence == nullptr || image == nullptr || result == nullptr || sequence->size() != 3 ||
      image->size() != 4 || result->size() != 4 || (automatic != "NOTSET" && automatic != "VALID"))
    return false;
  for (const size_t axis : {size_t(2), size_t(3)}) {
    if ((*kernel)[axis] != 1 || (*result)[axis].constant() != 1 ||
        !has_row(*image, *sequence, axis))
      continue;
    const size_t place = axis - 2, spatial = 2;
    std::vector<std::pair<Text, std::vector<int64_t>>> lists;
    bool fits = true;
    for (const auto& [name, parts] : {std::pair(Text("dilations"), 1),
                                      std::pair(Text("strides"), 1), std::pair(Text("pads"), 2)}) {
      const auto given = attributes.get_ints(name);
      if (given.empty()) continue;
      // With one row, and no padding, it does not matter how far it steps.
      const bool any = name != "pads" && given.size() == spatial;
      const auto kept =
          without(given, spatial, place, any ? given[place] : 0, static_cast<size_t>(parts));
      fits &= kept.has_value();
      if (kept) lists.emplace_back(name, *kept);
    }
    SymShape rows = *result;
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(axis));
    const Tensor* weight =
        fits && reshape_target(rows, *result) ? rewriter.constant(node.input(1)) : nullptr;
    if (weight == nullptr) return false;
    Dims dims = weight->dims();
    dims.erase(static_cast<uint32_t>(axis));
    std::vector<Value*> inputs(node.inputs().begin(), node.inputs().end());
    inputs[0] = view->input(0);
    inputs[1] = rewriter.initializer(node.graph(), weight->reshaped(dims), node.input(1)->name());
    Node& conv = rewriter.add(node, "Conv", inputs, node.output(0)->name());
    for (const auto& [name, list] : lists) conv.set_ints(name, list);
    conv.set_ints("kernel_shape", std::vector<int64_t>{dims[2]});
    if (automatic != "NOTSET") conv.set_string("auto_pad", automatic);
    if (const int64_t groups = attributes.get_int("group", 1); groups != 1)
      conv.set_int("group", groups);
    rewriter.touch(conv);
    Node* back = add_reshape(rewriter, node, conv.output(0), rows, *result);
    rewriter.supersede(*node.output(0), *back->output(0));
    return true;
  }
  return false;
}

}  // namespace

Result<size_t> sequence_convolutions(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  Status status = ok();
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes()) {
      if (!status) return;
      auto made = to_sequence(rewriter, *node);
      if (!made)
        status = std::move(made).error();
      else
        count += *made;
    }
  });
  CHECK_OK(status);
  return count;
}

}  // namespace tombolo::passes
