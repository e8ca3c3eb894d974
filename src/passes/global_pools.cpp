// A pool whose one window is the whole image is a global one, which every kernel takes at a glance.

#include <algorithm>

#include "passes/each_node.h"
#include "passes/passes.h"

namespace tombolo::passes {
namespace {

Result<bool> to_global(Rewriter& rewriter, Node& node) {
  static constexpr Text kPools[][2] = {{"AveragePool", "GlobalAveragePool"},
                                       {"MaxPool", "GlobalMaxPool"},
                                       {"LpPool", "GlobalLpPool"}};
  const auto* const pool =
      std::find_if(std::begin(kPools), std::end(kPools),
                   [&](const auto& names) { return rewriter.is(&node, names[0]); });
  if (pool == std::end(kPools) || node.input(0) == nullptr || node.output(0) == nullptr ||
      rewriter.is_read(node.output(1)) || !is_float(rewriter.dtype(node.input(0))))
    return false;
  const AttributeReader attributes(node);
  const SymShape* x = rewriter.shape(node.input(0));
  const auto kernel = attributes.get_ints("kernel_shape");
  if (x == nullptr || kernel.empty() || x->size() != kernel.size() + 2) return false;
  for (size_t i = 0; i < kernel.size(); ++i)
    if (const auto size = (*x)[i + 2].constant(); !size || *size != kernel[i] || *size < 1)
      return false;
  // Neither padding nor holes, nor a second window.
  const Text automatic = attributes.get_string("auto_pad", "NOTSET");
  if (automatic != "NOTSET" && automatic != "VALID") return false;
  const auto all = [&](Text name, int64_t value) {
    const auto values = attributes.get_ints(name);
    return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == value; });
  };
  if (!all("pads", 0) || !all("dilations", 1)) return false;
  Node& made = rewriter.add(node, (*pool)[1], {node.input(0)}, node.output(0)->name());
  if ((*pool)[0] == "LpPool") made.set_int("p", attributes.get_int("p", 2));
  rewriter.touch(made);
  rewriter.supersede(*node.output(0), *made.output(0));
  return true;
}

}  // namespace

Result<size_t> global_pools(Rewriter& rewriter) { return change_each_node(rewriter, to_global); }

}  // namespace tombolo::passes
