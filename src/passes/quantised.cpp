// Pairs of DequantizeLinear and QuantizeLinear with one scale and zero point, with nothing between
// them but data movement: the integers themselves move. (k s) / s rounds to k, so nothing changes.
// Constants that are dequantised and turned are turned first.

#include <algorithm>
#include <cmath>

#include "passes/attributes.h"
#include "passes/codes.h"
#include "passes/passes.h"

namespace tombolo::passes {
namespace {

/// One scale for the whole tensor, large enough that (k * scale) / scale rounds to k.
bool is_plain_scale(const Rewriter& rewriter, const Value* scale) {
  const auto number = rewriter.scalar(scale);
  if (!number || !(*number > 1e-4) || !(*number < 1e4)) return false;
  return rewriter.rank(scale).value_or(9) <= 1;
}

bool same_constant(const Rewriter& rewriter, const Value* a, const Value* b) {
  if (a == b) return true;
  const auto x = rewriter.scalar(a), y = rewriter.scalar(b);
  return x && y && *x == *y && rewriter.same_dtype(a, b);
}

/// `quantize` undoes `dequantize`, element by element.
bool is_pair(const Rewriter& rewriter, const Node& dequantize, const Node& quantize) {
  if (!is_plain_scale(rewriter, quantize.input(1)) ||
      !same_constant(rewriter, dequantize.input(1), quantize.input(1)))
    return false;
  const Value* from = dequantize.input(2);
  const Value* to = quantize.input(2);
  if ((from == nullptr) != (to == nullptr)) return false;
  if (from != nullptr && !same_constant(rewriter, from, to)) return false;
  const DType dtype = rewriter.dtype(dequantize.input(0));
  if (dtype != rewriter.dtype(quantize.output(0)) || !is_integer(dtype) || bits_of(dtype) > 8)
    return false;
  for (const Node* node : {&dequantize, &quantize}) {
    const AttributeReader attributes(*node);
    if (attributes.get_int("block_size", 0) != 0 || attributes.get_int("precision", 0) != 0)
      return false;
  }
  return true;
}

/// The code of what a Pad fills with, or null: not where it is no constant.
Value* filling(Rewriter& rewriter, const Node& pad, const Node& quantize) {
  const auto number = pad.input(2) == nullptr ? 0.0 : rewriter.scalar(pad.input(2));
  const auto scale = one_scale(rewriter, quantize);
  const auto zero = quantize.input(2) == nullptr ? 0.0 : rewriter.scalar(quantize.input(2));
  const DType dtype = rewriter.dtype(quantize.output(0));
  if (!number || !scale || !zero || !is_byte(dtype)) return nullptr;
  const double code = std::nearbyint(static_cast<double>(static_cast<float>(*number) /
                                                         static_cast<float>(*scale))) +
                      *zero;
  const double least = dtype == DType::kInt8 ? -128 : 0;
  if (std::isnan(code)) return nullptr;
  return rewriter.byte_initializer(
      quantize.graph(), dtype, static_cast<int64_t>(std::clamp(code, least, least + 255)), "fill");
}

size_t shrink(Rewriter& rewriter, Node& quantize) {
  Node* node = quantize.input(0) != nullptr ? quantize.input(0)->producer() : nullptr;
  if (node == nullptr || &node->graph() != &quantize.graph()) return 0;
  if (rewriter.is(node, "DequantizeLinear")) {
    if (!is_pair(rewriter, *node, quantize) ||
        !rewriter.replaceable(*quantize.output(0), *node->input(0)))
      return 0;
    rewriter.supersede(*quantize.output(0), *node->input(0));
    return 1;
  }
  if (!Rewriter::single_use(quantize.input(0))) return 0;
  const bool concat = rewriter.is(node, "Concat"), pad = rewriter.is(node, "Pad");
  if (!concat && !pad && !moves_data(rewriter, *node)) return 0;
  std::vector<Value*> inputs(node->inputs().begin(), node->inputs().end());
  for (size_t i = 0; i < (concat ? inputs.size() : 1); ++i) {
    Node* dequantize = rewriter.producer(inputs[i], "DequantizeLinear");
    if (dequantize == nullptr || !is_pair(rewriter, *dequantize, quantize)) return 0;
    inputs[i] = dequantize->input(0);
  }
  if (pad) {
    Value* fill = nullptr;
    if (AttributeReader(*node).get_string("mode", "constant") == "constant") {
      fill = filling(rewriter, *node, quantize);
      if (fill == nullptr) return 0;
    }
    inputs.resize(std::max<size_t>(inputs.size(), 3));
    inputs[2] = fill;
    while (inputs.back() == nullptr) inputs.pop_back();
  }
  Node& moved = rewriter.add(quantize, node->op_type(), inputs, quantize.output(0)->name());
  for (const Attribute& attribute : node->attributes()) {
    if (attribute.i() != nullptr) moved.set_int(attribute.name, *attribute.i());
    if (attribute.s() != nullptr) moved.set_string(attribute.name, *attribute.s());
    if (attribute.type == AttrType::kInts) moved.set_ints(attribute.name, attribute.ints());
  }
  rewriter.touch(moved);
  rewriter.supersede(*quantize.output(0), *moved.output(0));
  rewriter.erase(*node);
  return 1;
}

/// A Transpose of constants behind DequantizeLinear goes before it, where it is done once. What
/// exporters of PyTorch write around Linear: operators of integers look for weights there.
size_t turn_codes(Rewriter& rewriter, Node& node) {
  Node* dequantize = rewriter.producer(node.input(0), "DequantizeLinear");
  if (dequantize == nullptr || &dequantize->graph() != &node.graph() ||
      !Rewriter::single_use(dequantize->output(0)))
    return 0;
  for (const Value* input : dequantize->inputs())
    if (input != nullptr && !rewriter.is_constant(input)) return 0;
  const auto rank = rewriter.rank(dequantize->input(0));
  const auto scales = rewriter.dims(dequantize->input(1));
  if (!rank || !scales) return 0;
  const auto given = AttributeReader(node).get_ints("perm");
  std::vector<int64_t> perm(given.begin(), given.end());
  for (size_t i = *rank; given.empty() && i-- > 0;) perm.push_back(static_cast<int64_t>(i));
  const AttributeReader attributes(*dequantize);
  const bool blocks = attributes.get_int("block_size", 0) != 0;
  int64_t axis = attributes.get_int("axis", 1);
  if (axis < 0) axis += static_cast<int64_t>(*rank);
  const auto place = std::find(perm.begin(), perm.end(), axis);
  const bool one = scales->empty() || (!blocks && scales->size() == 1 && (*scales)[0] == 1);
  if (perm.size() != *rank || (!one && place == perm.end())) return 0;
  std::vector<Value*> inputs(dequantize->inputs().begin(), dequantize->inputs().end());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr || (i > 0 && !blocks)) continue;
    Node& turned = rewriter.add(node, "Transpose", {inputs[i]}, inputs[i]->name());
    turned.set_ints("perm", perm);
    rewriter.touch(turned);
    inputs[i] = turned.output(0);
  }
  Node& made = rewriter.add(node, "DequantizeLinear", inputs, node.output(0)->name());
  copy_attributes(*dequantize, made, {"axis"});
  if (!one) made.set_int("axis", place - perm.begin());
  rewriter.touch(made);
  rewriter.supersede(*node.output(0), *made.output(0));
  rewriter.erase(*dequantize);
  return 1;
}

/// The DequantizeLinear of one scale from which `value` comes through nothing but data movement,
/// which is appended to `path`, the last node first.
Node* dequantised_source(const Rewriter& rewriter, const Value* value, std::vector<Node*>& path) {
  while (value != nullptr) {
    Node* node = value->producer();
    if (node == nullptr || (!path.empty() && &node->graph() != &path.back()->graph()))
      return nullptr;
    if (rewriter.is(node, "DequantizeLinear")) {
      const DType dtype = rewriter.dtype(node->input(0));
      const bool plain = AttributeReader(*node).get_int("block_size", 0) == 0 &&
                         rewriter.scalar(node->input(1)) &&
                         (node->input(2) == nullptr || rewriter.scalar(node->input(2)));
      return plain && is_integer(dtype) && bits_of(dtype) == 8 ? node : nullptr;
    }
    if (!Rewriter::single_use(value) || !moves_data(rewriter, *node)) return nullptr;
    path.push_back(node);
    value = node->input(0);
  }
  return nullptr;
}

/// The codes move, and are dequantised after that.
void move_codes(Rewriter& rewriter, Node& before, const Node& dequantize,
                const std::vector<Node*>& path) {
  Graph& graph = before.graph();
  const auto one_number = [&](Value* value) {
    if (value == nullptr || rewriter.rank(value) == 0u) return value;
    return rewriter.initializer(graph, rewriter.constant(value)->reshaped({}), value->name());
  };
  std::vector<Value*> made = {dequantize.input(0), one_number(dequantize.input(1)),
                              one_number(dequantize.input(2))};
  if (made.back() == nullptr) made.pop_back();
  for (size_t i = path.size(); i-- > 0;) {
    std::vector<Value*> inputs(path[i]->inputs().begin(), path[i]->inputs().end());
    inputs[0] = made[0];
    Node& moved = rewriter.add(before, path[i]->op_type(), inputs, path[i]->output(0)->name());
    copy_attributes(*path[i], moved);
    rewriter.touch(moved);
    made[0] = moved.output(0);
  }
  Node& after = rewriter.add(before, "DequantizeLinear", made, path[0]->output(0)->name());
  rewriter.touch(after);
  rewriter.supersede(*path[0]->output(0), *after.output(0));
  for (size_t i = 1; i < path.size(); ++i) rewriter.erase(*path[i]);
}

}  // namespace

Result<size_t> lower_dequantised(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes()) {
      if (!rewriter.is(node, "MatMul") && !rewriter.is(node, "Gemm")) continue;
      std::vector<Node*> paths[2];
      Node* sources[2] = {dequantised_source(rewriter, node->input(0), paths[0]), nullptr};
      if (sources[0] == nullptr) continue;
      sources[1] = rewriter.producer(node->input(1), "DequantizeLinear");
      if (sources[1] == nullptr)
        sources[1] = dequantised_source(rewriter, node->input(1), paths[1]);
      for (size_t i = 0; sources[1] != nullptr && i < 2; ++i) {
        if (paths[i].empty() || &paths[i].back()->graph() != &graph) continue;
        move_codes(rewriter, *node, *sources[i], paths[i]);
        ++count;
      }
    }
  });
  return count;
}

Result<size_t> shrink_quantised(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes())
      if (rewriter.is(node, "QuantizeLinear") && node->output(0) != nullptr)
        count += shrink(rewriter, *node);
      else if (rewriter.is(node, "Transpose") && node->output(0) != nullptr)
        count += turn_codes(rewriter, *node);
  });
  return count;
}

}  // namespace tombolo::passes
