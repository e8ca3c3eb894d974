// Level 3: operators of com.microsoft that ONNX Runtime's CPU provider has. Only those that it
// computes faster than their parts.

#include <algorithm>

#include "passes/passes.h"
#include "passes/rule.h"

namespace tombolo::passes {
namespace {

bool is_single(Match& match) { return match.dtype("x") == DType::kFloat32; }

/// BiasGelu wants a bias of one number a column.
bool column_bias(Match& match) {
  const auto dims = match.rewriter.dims(match.value("b"));
  const auto columns = match.rewriter.dim(match.value("x"), -1);
  return is_single(match) && dims && dims->size() == 1 && columns && (*dims)[0] == *columns;
}

/// Both operands are matrices, and the Transpose turns the last two axes.
bool last_two(Match& match) {
  const auto found = match.attributes.find("perm");
  const auto rank = match.rewriter.rank(match.value("b"));
  const auto a = match.rewriter.rank(match.value("x"));
  if (!is_single(match) || !rank || !a || *rank < 2 || *a < 2) return false;
  if (found == match.attributes.end()) return *rank == 2;
  const auto perm = found->second.ints();
  if (perm.size() != *rank) return false;
  for (size_t i = 0; i + 2 < perm.size(); ++i)
    if (perm[i] != static_cast<int64_t>(i)) return false;
  return perm[perm.size() - 1] == static_cast<int64_t>(perm.size()) - 2 &&
         perm[perm.size() - 2] == static_cast<int64_t>(perm.size()) - 1;
}

/// A factor of one element that does not widen the product.
bool scale(Match& match) {
  const auto factor = match.rewriter.scalar(match.value("c"));
  const auto rank = match.rewriter.rank(match.value("c"));
  const auto own = match.rewriter.rank(match.value("x"));
  const auto other = match.rewriter.rank(match.value("b"));
  if (!is_single(match) || !factor || !rank || !own || !other || *own < 2 || *other < 2 ||
      *rank > std::max(*own, *other) || *factor == 0)
    return false;
  match.set("alpha", static_cast<float>(*factor));
  return true;
}

constexpr RewriteRule kMicrosoftRules[] = {
    {.name = "bias-gelu",
     .patterns = {"p (x, b) => (y) { s = Add (x, b) y = Gelu (s) }"},
     .replacement = "r (x, b) => (y) { y = com.microsoft.BiasGelu (x, b) }",
     .condition = column_bias},
    {.name = "matmul-scale",
     .patterns = {"p (x, b, c) => (y) { m = MatMul (x, b) y = Mul (m, c) }"},
     .replacement = "r (x, b) => (y) { y = com.microsoft.FusedMatMul <alpha = @alpha> (x, b) }",
     .condition = scale},
    {.name = "matmul-transpose",
     .patterns = {"p (x, b) => (y) { t = Transpose <perm = @perm> (b) y = MatMul (x, t) }"},
     .replacement = "r (x, b) => (y) { y = com.microsoft.FusedMatMul <transB = 1> (x, b) }",
     .condition = last_two},
    {.name = "conv-relu",
     .patterns = {"p (x, w) => (y) { c = Conv <auto_pad = @auto_pad, dilations = @dilations,"
                  " group = @group, kernel_shape = @kernel_shape, pads = @pads,"
                  " strides = @strides> (x, w) y = Relu (c) }"},
     .replacement = "r (x, w) => (y) { y = com.microsoft.FusedConv <activation = \"Relu\","
                    " auto_pad = @auto_pad, dilations = @dilations, group = @group,"
                    " kernel_shape = @kernel_shape, pads = @pads, strides = @strides> (x, w) }",
     .condition = is_single},
    {.name = "conv-bias-relu",
     .patterns = {"p (x, w, b) => (y) { c = Conv <auto_pad = @auto_pad, dilations = @dilations,"
                  " group = @group, kernel_shape = @kernel_shape, pads = @pads,"
                  " strides = @strides> (x, w, b) y = Relu (c) }"},
     .replacement = "r (x, w, b) => (y) { y = com.microsoft.FusedConv <activation = \"Relu\","
                    " auto_pad = @auto_pad, dilations = @dilations, group = @group,"
                    " kernel_shape = @kernel_shape, pads = @pads, strides = @strides> (x, w, b) }",
     .condition = is_single},
};

}  // namespace

Result<size_t> fuse_microsoft(Rewriter& rewriter) { return apply_rules(rewriter, kMicrosoftRules); }

}  // namespace tombolo::passes
