// Level 3: operators of com.microsoft that ONNX Runtime's CPU provider has. Only those that it
// computes faster than their parts.

#include <algorithm>

#include "passes/attributes.h"
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
  return perm.size() == *rank && turns_matrices(perm);
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

/// Products of integers that become floats: one scale or one for each column, one bias a column.
bool integer_product(Match& match) {
  const auto columns = match.rewriter.dim(match.value("b"), -1);
  const auto one_or_each = [&](std::string_view name) {
    const auto dims = match.rewriter.dims(match.value(name));
    return dims && columns &&
           (dims->empty() || (dims->size() == 1 && ((*dims)[0] == 1 || (*dims)[0] == *columns)));
  };
  const auto a_scale = match.rewriter.dims(match.value("s"));
  const auto a_rank = match.rewriter.rank(match.value("a"));
  if (!a_scale || a_scale->size() > 1 || (a_scale->size() == 1 && (*a_scale)[0] != 1) || !a_rank ||
      *a_rank < 2 || match.rewriter.rank(match.value("b")) != 2u || !one_or_each("w") ||
      match.rewriter.dtype(match.output()) != DType::kFloat32)
    return false;
  const auto zero = match.values.find("az");
  if (zero != match.values.end() && zero->second != nullptr) {
    const auto dims = match.rewriter.dims(zero->second);
    if (!dims || dims->size() > 1 || (dims->size() == 1 && (*dims)[0] != 1)) return false;
  }
  if (match.values.contains("bz") && !one_or_each("bz")) return false;
  if (match.values.contains("c")) {
    const auto bias = match.rewriter.dims(match.value("c"));
    if (!bias || bias->size() != 1 || (*bias)[0] != *columns) return false;
  }
  for (const auto& [absent, of] : {std::pair{"az", "a"}, std::pair{"bz", "b"}})
    if (!match.values.contains(absent))
      match.bind(absent,
                 match.rewriter.byte_initializer(match.graph(), match.dtype(of), 0, "zero_point"));
  return true;
}

constexpr RewriteRule kIntegerRules[] = {
    {.name = "matmul-integer",
     .patterns = {"p (a, b, az, bz, s, w) => (y) { i = MatMulInteger (a, b, az, bz)"
                  " f = Cast <to = 1> (i) m = Mul (s, w) y = Mul (f, m) }",
                  "p (a, b, az, s, w) => (y) { i = MatMulInteger (a, b, az)"
                  " f = Cast <to = 1> (i) m = Mul (s, w) y = Mul (f, m) }",
                  "p (a, b, s, w) => (y) { i = MatMulInteger (a, b)"
                  " f = Cast <to = 1> (i) m = Mul (s, w) y = Mul (f, m) }",
                  "p (a, b, az, bz, s, w) => (y) { i = MatMulInteger (a, b, az, bz)"
                  " f = Cast <to = 1> (i) m = Mul (f, s) y = Mul (m, w) }",
                  "p (a, b, az, s, w) => (y) { i = MatMulInteger (a, b, az)"
                  " f = Cast <to = 1> (i) m = Mul (f, s) y = Mul (m, w) }",
                  "p (a, b, s, w) => (y) { i = MatMulInteger (a, b)"
                  " f = Cast <to = 1> (i) m = Mul (f, s) y = Mul (m, w) }"},
     .replacement = "r (a, b, s, w, az, bz) => (y) {"
                    " y = com.microsoft.MatMulIntegerToFloat (a, b, s, w, az, bz) }",
     .condition = integer_product},
    {.name = "integer-to-float-bias",
     .patterns = {"p (a, b, s, w, az, bz, c) => (y) {"
                  " p = com.microsoft.MatMulIntegerToFloat (a, b, s, w, az, bz)"
                  " y = Add (p, c) }"},
     .replacement = "r (a, b, s, w, az, bz, c) => (y) {"
                    " y = com.microsoft.MatMulIntegerToFloat (a, b, s, w, az, bz, c) }",
     .condition = integer_product},
};

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

Result<size_t> fuse_microsoft(Rewriter& rewriter) {
  TRY(const size_t products, apply_rules(rewriter, kIntegerRules));
  TRY(const size_t others, apply_rules(rewriter, kMicrosoftRules));
  return products + others;
}

Result<size_t> integer_regions(Rewriter& rewriter) {
  TRY(const size_t moved, lower_dequantised(rewriter));
  TRY(const size_t affines, integer_affines(rewriter));
  TRY(const size_t operators, integer_operators(rewriter));
  const size_t count = moved + affines + operators;
  // What was replaced would be run, and would keep its inputs from joining what they follow.
  if (count != 0) CHECK_OK(remove_dead_code(rewriter));
  TRY(const size_t floats, integer_products(rewriter));
  TRY(const size_t products, apply_rules(rewriter, kIntegerRules));
  if (floats + products != 0) CHECK_OK(remove_dead_code(rewriter));
  return count + floats + products;
}

}  // namespace tombolo::passes
