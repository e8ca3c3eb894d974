// Elements repeated along an axis, as TensorFlow's repeat says it (an axis of length 1, Tile,
// Reshape), are what Resize makes of the nearest ones; neighbouring ones become one.

#include <algorithm>
#include <cmath>

#include "passes/passes.h"
#include "passes/reshape_target.h"
#include "passes/transposes.h"

namespace tombolo::passes {
namespace {

constexpr size_t kLeastRank = 3, kMostRank = 5;  ///< a batch, channels and places
constexpr int64_t kMostTimes = 1024;

/// What other runtimes resize on the CPU.
bool is_resizable(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kInt32 || dtype == DType::kInt8 ||
         dtype == DType::kUInt8;
}

/// Adds a Resize of `input` that repeats each element scales[axis] times.
Node& add_resize(Rewriter& rewriter, Node& before, Value* input, std::span<const double> scales) {
  const int64_t size[] = {static_cast<int64_t>(scales.size())};
  Value* factors = rewriter.float_initializer(before.graph(), size, scales, "scales");
  Node& node = rewriter.add(before, "Resize", {input, nullptr, factors}, input->name());
  node.set_string("mode", "nearest");
  node.set_string("coordinate_transformation_mode", "asymmetric");
  node.set_string("nearest_mode", "floor");
  rewriter.touch(node);
  return node;
}

/// Reshape(Tile(x)), perhaps with a Transpose between: x has length 1 on the one axis that is
/// repeated, and that joins the one before it.
size_t from_tile(Rewriter& rewriter, Node& node) {
  if (!rewriter.is(&node, "Reshape") || !Rewriter::single_use(node.input(0))) return 0;
  Value* tiled = node.input(0);
  std::vector<int64_t> perm;
  if (const Node* turn = rewriter.producer(tiled, "Transpose")) {
    const auto own = perm_of(rewriter, turn);
    if (!own) return 0;
    perm = *own;
    tiled = turn->input(0);
    if (!Rewriter::single_use(tiled)) return 0;
  }
  Node* tile = rewriter.producer(tiled, "Tile");
  if (tile == nullptr || &tile->graph() != &node.graph() || tile->input(0) == nullptr) return 0;
  const SymShape* from = rewriter.shape(tile->input(0));
  const SymShape* to = rewriter.shape(node.output(0));
  const auto times = tile->input(1) != nullptr ? rewriter.ints(tile->input(1)) : std::nullopt;
  if (from == nullptr || to == nullptr || !times || times->size() != from->size() ||
      (!perm.empty() && perm.size() != from->size()) || from->size() != to->size() + 1 ||
      to->size() < kLeastRank || to->size() > kMostRank ||
      !is_resizable(rewriter.dtype(tile->input(0))))
    return 0;
  const auto repeated =
      std::find_if(times->begin(), times->end(), [](int64_t n) { return n != 1; });
  if (repeated == times->end() || *repeated < 2 || *repeated > kMostTimes ||
      std::any_of(repeated + 1, times->end(), [](int64_t n) { return n != 1; }))
    return 0;
  const auto axis = static_cast<size_t>(repeated - times->begin());
  if ((*from)[axis].constant() != 1) return 0;
  // Without that axis: what is turned, and the place of the one that it joins.
  std::vector<SymDim> before, turned;
  std::vector<int64_t> order;
  size_t joins = axis;  // the place of the axis behind the Transpose
  for (size_t i = 0; i < from->size(); ++i) {
    if (i != axis) before.push_back((*from)[i]);
    const auto at = perm.empty() ? i : static_cast<size_t>(perm[i]);
    if (at == axis) {
      joins = i;
      continue;
    }
    order.push_back(static_cast<int64_t>(at - (at > axis ? 1 : 0)));
    turned.push_back((*from)[at]);
  }
  if (joins < 2 || turned.size() != to->size()) return 0;
  for (size_t i = 0; i < to->size(); ++i) {
    const SymDim dim = i + 1 == joins ? turned[i] * SymDim(*repeated) : turned[i];
    if (!(*to)[i].equals(dim)) return 0;
  }
  Node* whole = add_reshape(rewriter, node, tile->input(0), *from, before);
  if (whole == nullptr) return 0;
  if (!perm.empty()) {
    whole = &rewriter.add(node, "Transpose", {whole->output(0)}, tile->input(0)->name());
    whole->set_ints("perm", order);
    rewriter.touch(*whole);
  }
  std::vector<double> scales(turned.size(), 1.0);
  scales[joins - 1] = static_cast<double>(*repeated);
  rewriter.supersede(*node.output(0),
                     *add_resize(rewriter, node, whole->output(0), scales).output(0));
  return 1;
}

/// The factors of a Resize that repeats elements a whole number of times.
std::optional<std::vector<double>> repeats_of(const Rewriter& rewriter, const Node* node) {
  if (!rewriter.is(node, "Resize") || node->inputs().size() > 3 || node->input(1) != nullptr)
    return std::nullopt;
  const AttributeReader attributes(*node);
  const Tensor* scales = rewriter.constant(node->input(2));
  const auto rank = rewriter.rank(node->input(0));
  if (scales == nullptr || scales->dtype() != DType::kFloat32 || !rank ||
      scales->size() != static_cast<int64_t>(*rank) || attributes.has("axes") ||
      attributes.get_string("mode", "nearest") != "nearest" ||
      attributes.get_string("coordinate_transformation_mode", "half_pixel") != "asymmetric" ||
      attributes.get_string("nearest_mode", "round_prefer_floor") != "floor")
    return std::nullopt;
  std::vector<double> result(scales->data<float>(), scales->data<float>() + scales->size());
  for (const double scale : result)
    if (!(scale >= 1 && scale <= kMostTimes) || scale != std::floor(scale)) return std::nullopt;
  return result;
}

size_t merge_repeats(Rewriter& rewriter, Node& node) {
  auto scales = repeats_of(rewriter, &node);
  if (!scales || !Rewriter::single_use(node.input(0))) return 0;
  const Node* first = rewriter.producer(node.input(0), "Resize");
  const auto inner = repeats_of(rewriter, first);
  if (!inner || inner->size() != scales->size() || &first->graph() != &node.graph()) return 0;
  for (size_t i = 0; i < inner->size(); ++i) (*scales)[i] *= (*inner)[i];
  rewriter.supersede(*node.output(0),
                     *add_resize(rewriter, node, first->input(0), *scales).output(0));
  return 1;
}

}  // namespace

Result<size_t> recognise_repeats(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes()) {
      if (node->input(0) == nullptr || node->output(0) == nullptr) continue;
      const size_t found = from_tile(rewriter, *node);
      count += found != 0 ? found : merge_repeats(rewriter, *node);
    }
  });
  return count;
}

}  // namespace tombolo::passes
