// For the runtime: GatherElements and ScatterElements whose indices are one number for each row,
// written out for all its elements, move whole rows.
//   GatherElements(x, Expand(i))     = Gather(x, i)
//   ScatterElements(x, Expand(i), u) = ScatterND(x, i, u), along other axes than the first
//                                      ScatterRows(x, i, u) of ai.tombolo
// What PyTorch's gather and scatter_add need, and so networks on graphs and detectors.

#include "passes/attributes.h"
#include "passes/passes.h"
#include "passes/runtime_operators.h"

namespace tombolo::passes {
namespace {

/// The indices before they were repeated along all axes but `axis`; null where they were not.
Value* one_a_row(const Rewriter& rewriter, const Node& node, size_t axis) {
  const SymShape* data = rewriter.shape(node.input(0));
  const SymShape* indices = rewriter.shape(node.input(1));
  if (data == nullptr || indices == nullptr || data->size() != indices->size()) return nullptr;
  // Of single numbers, each is a row.
  if (data->size() == 1) return node.input(1);
  Node* repeat = rewriter.producer(node.input(1), "Expand");
  if (repeat == nullptr) repeat = rewriter.producer(node.input(1), "Tile");
  if (repeat == nullptr) return nullptr;
  const SymShape* single = rewriter.shape(repeat->input(0));
  if (single == nullptr || single->size() != data->size()) return nullptr;
  for (size_t j = 0; j < data->size(); ++j) {
    const SymDim& other = j == axis ? (*single)[j] : (*data)[j];
    if (!other.equals((*indices)[j]) || (j != axis && !is_one((*single)[j]))) return nullptr;
  }
  return repeat->input(0);
}

/// Whether kernels have ScatterND and ScatterRows of that.
bool scatters_rows(const Rewriter& rewriter, const Node& node) {
  const DType dtype = rewriter.dtype(node.input(0));
  return dtype == DType::kFloat32 ||
         (bytes_of(dtype) != 0 && AttributeReader(node).get_string("reduction", "none") == "none");
}

size_t by_rows(Rewriter& rewriter, Node& node) {
  const bool gather = rewriter.is(&node, "GatherElements");
  if (!gather && !rewriter.is(&node, "ScatterElements")) return 0;
  if (node.output(0) == nullptr) return 0;
  const auto rank = rewriter.rank(node.input(0));
  int64_t axis = AttributeReader(node).get_int("axis", 0);
  if (rank && axis < 0) axis += static_cast<int64_t>(*rank);
  if (!rank || axis < 0 || axis >= static_cast<int64_t>(*rank)) return 0;
  // Those that the standard has say more than ours.
  const bool tuples = !gather && axis == 0;
  if (!gather && (axis != 0 || *rank == 1) && !scatters_rows(rewriter, node)) return 0;
  Value* indices = one_a_row(rewriter, node, static_cast<size_t>(axis));
  if (indices == nullptr) return 0;
  const Text name = node.output(0)->name();
  const int64_t list[] = {-1}, pairs[] = {-1, 1};
  Node& flat = rewriter.add(
      node, "Reshape",
      {indices, rewriter.ints_initializer(
                    node.graph(), tuples ? std::span<const int64_t>(pairs) : list, "shape")},
      indices->name());
  rewriter.touch(flat);
  std::vector<Value*> inputs(node.inputs().begin(), node.inputs().end());
  inputs[1] = flat.output(0);
  // Tuples are of int64, as what the kernels read.
  if (!gather && rewriter.dtype(indices) != DType::kInt64) {
    Node& cast = rewriter.add(node, "Cast", {inputs[1]}, indices->name());
    cast.set_int("to", static_cast<int64_t>(DType::kInt64));
    rewriter.touch(cast);
    inputs[1] = cast.output(0);
  }
  Node& made = gather   ? rewriter.add(node, "Gather", inputs, name)
               : tuples ? rewriter.add(node, "ScatterND", inputs, name)
                        : rewriter.add(node, "ScatterRows", inputs, name, 1, kOwn);
  if (!gather) copy_attributes(node, made, {"axis"});
  if (!tuples) made.set_int("axis", axis);
  rewriter.touch(made);
  rewriter.supersede(*node.output(0), *made.output(0));
  return 1;
}

}  // namespace

Result<size_t> whole_rows(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes()) count += by_rows(rewriter, *node);
  });
  if (count != 0) CHECK_OK(remove_dead_code(rewriter));
  return count;
}

}  // namespace tombolo::passes
