// Nodes that give what they are given.

#include <algorithm>
#include <cmath>

#include "passes/elements.h"
#include "passes/passes.h"

namespace tombolo::passes {
namespace {

/// `constant` against the node's other operand leaves that operand's shape: it is a single element
/// and has no more axes.
bool keeps_shape(const Rewriter& rewriter, const Value* constant, const Value* other) {
  const auto rank = rewriter.rank(constant);
  if (!rank) return false;
  if (*rank == 0) return true;
  const auto other_rank = rewriter.rank(other);
  return other_rank && *other_rank >= *rank;
}

/// Every element of a value, whatever its shape, where they are all the same constant.
std::optional<double> uniform(const Rewriter& rewriter, const Value* value) {
  if (const auto one = rewriter.scalar(value)) return one;
  if (const Node* expand = rewriter.producer(value, "Expand"))
    return rewriter.scalar(expand->input(0));
  if (const Node* fill = rewriter.producer(value, "ConstantOfShape")) return filling_of(*fill);
  const auto dims = rewriter.is_constant(value) ? rewriter.dims(value) : std::nullopt;
  if (!dims || element_count(*dims) < 1 || element_count(*dims) > (1 << 16)) return std::nullopt;
  const Tensor* tensor = rewriter.constant(value);
  if (tensor == nullptr || tensor->is_string() || is_complex(tensor->dtype())) return std::nullopt;
  const double first = tensor->get_double(0);
  for (int64_t i = 1; i < tensor->size(); ++i)
    if (!(tensor->get_double(i) == first) ||
        std::signbit(tensor->get_double(i)) != std::signbit(first))
      return std::nullopt;
  return first;
}

/// x op c = x. Adding +0 turns -0 into +0, so level 1 wants the zero that changes nothing.
Value* neutral_operand(Rewriter& rewriter, const Node& node) {
  const bool add = rewriter.is(&node, "Add"), sub = rewriter.is(&node, "Sub"),
             mul = rewriter.is(&node, "Mul"), div = rewriter.is(&node, "Div"),
             pow = rewriter.is(&node, "Pow"), both = rewriter.is(&node, "And"),
             either = rewriter.is(&node, "Or");
  if (!add && !sub && !mul && !div && !pow && !both && !either) return nullptr;
  for (const size_t side : {size_t(1), size_t(0)}) {
    if (side == 0 && (sub || div || pow)) break;
    Value* other = node.input(1 - side);
    const Value* constant = node.input(side);
    if (other == nullptr || constant == nullptr) continue;
    const auto number = uniform(rewriter, constant);
    if (!number) continue;
    bool neutral = false;
    if (mul || div || pow) neutral = *number == 1;
    if (both) neutral = *number == 1;
    if (either) neutral = *number == 0;
    if (add || sub) {
      const bool exact = is_integer(rewriter.dtype(other)) || std::signbit(*number) == add;
      neutral = *number == 0 && (exact || rewriter.level() >= 2) &&
                rewriter.dtype(other) != DType::kUndefined;
    }
    if (!neutral) continue;
    const bool single = rewriter.scalar(constant).has_value();
    if (rewriter.same_shape(node.output(0), other) ||
        (single && keeps_shape(rewriter, constant, other)))
      return other;
  }
  return nullptr;
}

bool all(const std::optional<std::vector<int64_t>>& values, int64_t wanted) {
  if (!values) return false;
  for (const int64_t value : *values)
    if (value != wanted) return false;
  return true;
}

/// Steps of a Slice that never reverse or skip.
bool unit_steps(Rewriter& rewriter, const Node& node) {
  return node.input(4) == nullptr || all(rewriter.ints(node.input(4)), 1);
}

bool slice_takes_all(Rewriter& rewriter, const Node& node) {
  if (!unit_steps(rewriter, node)) return false;
  if (rewriter.same_shape(node.input(0), node.output(0))) return true;
  const auto starts = rewriter.ints(node.input(1)), ends = rewriter.ints(node.input(2));
  if (!all(starts, 0) || !ends) return false;
  // "To the end", as exporters write it; INT32_MAX is a length that an axis may have.
  for (const int64_t end : *ends)
    if (end < (int64_t(1) << 48)) return false;
  return true;
}

/// Every value of `narrow` is one of `wide`, and comes back as it was.
bool holds(DType wide, DType narrow) {
  // Digits of whole numbers; floats of 16 bits and more.
  const auto digits = [](DType type) -> int64_t {
    switch (type) {
      case DType::kBool:
        return 1;
      case DType::kBFloat16:
        return 8;
      case DType::kFloat16:
        return 11;
      case DType::kFloat32:
        return 24;
      case DType::kFloat64:
        return 53;
      default:
        return is_integer(type) ? static_cast<int64_t>(bits_of(type)) - is_signed_integer(type) : 0;
    }
  };
  const bool from_float = is_float(narrow), to_float = is_float(wide);
  if (digits(narrow) == 0 || digits(wide) < digits(narrow)) return false;
  if (from_float) return to_float && (wide == DType::kFloat32 || wide == DType::kFloat64);
  return to_float || is_signed_integer(wide) || !is_signed_integer(narrow);
}

bool keeps_everything(Rewriter& rewriter, const Node& node) {
  const Text op = node.op_type();
  const AttributeReader attributes(node);
  const Value* input = node.input(0);
  const Value* output = node.output(0);
  if (op == "Identity") return true;
  if (op == "Dropout") {
    if (node.outputs().size() > 1 && node.output(1) != nullptr && node.output(1)->has_uses())
      return false;
    if (node.input(2) == nullptr) return true;
    const auto training = rewriter.scalar(node.input(2));
    return training && *training == 0;
  }
  if (op == "Cast")
    return rewriter.dtype(input) != DType::kUndefined &&
           attributes.get_int("to", 0) == static_cast<int64_t>(rewriter.dtype(input));
  if (op == "CastLike") return rewriter.same_dtype(input, node.input(1));
  if (op == "Reshape" || op == "Expand" || op == "Flatten" || op == "Squeeze" || op == "Unsqueeze")
    return rewriter.same_shape(input, output);
  if (op == "Tile")
    return all(rewriter.ints(node.input(1)), 1) || rewriter.same_shape(input, output);
  if (op == "Transpose") {
    const auto perm = attributes.get_ints("perm");
    const auto rank = rewriter.rank(input);
    if (perm.empty()) return rank && *rank <= 1;
    // One that does not fit must not be mended: whoever runs the node says so.
    if (rank && *rank != perm.size()) return false;
    for (size_t i = 0; i < perm.size(); ++i)
      if (perm[i] != static_cast<int64_t>(i)) return false;
    return true;
  }
  if (op == "Pad") {
    const auto pads = rewriter.ints(node.input(1));
    return all(pads, 0) && !pads->empty();  // no pads fit a scalar alone: else an error
  }
  if (op == "Slice") return slice_takes_all(rewriter, node);
  if (op == "Concat" || op == "Sum" || op == "Max" || op == "Min" || op == "Mean")
    return node.inputs().size() == 1;
  if (op == "Split") return node.outputs().size() == 1;
  if (op == "Resize" || op == "Upsample") {
    const auto sizes = rewriter.is(&node, "Resize") ? node.input(2) : nullptr;
    if (sizes == nullptr || node.input(3) != nullptr) return false;
    const Tensor* scales = rewriter.constant(sizes);
    if (scales == nullptr || scales->size() == 0 ||
        attributes.get_string("coordinate_transformation_mode", "") == "tf_crop_and_resize")
      return false;
    for (int64_t i = 0; i < scales->size(); ++i)
      if (scales->get_double(i) != 1) return false;
    return true;
  }
  return false;
}

/// The value that the node's only wanted output equals.
Value* kept(Rewriter& rewriter, Node& node) {
  if (node.outputs().empty() || node.output(0) == nullptr || node.input(0) == nullptr)
    return nullptr;
  if (!canonical_domain(node.domain()).empty() || node.opset_override() != 0 ||
      rewriter.declaration(node) == nullptr)
    return nullptr;
  if (keeps_everything(rewriter, node)) return node.input(0);
  if (node.op_type() == "Cast") {
    const Node* before = rewriter.producer(node.input(0), "Cast");
    const DType to = rewriter.dtype(node.output(0));
    if (before != nullptr && before->input(0) != nullptr &&
        rewriter.dtype(before->input(0)) == to && holds(rewriter.dtype(node.input(0)), to))
      return before->input(0);
  }
  if (Value* other = neutral_operand(rewriter, node)) return other;
  if (node.op_type() == "Where") {
    const auto condition = uniform(rewriter, node.input(0));
    Value* chosen = condition ? node.input(*condition != 0 ? 1 : 2) : nullptr;
    if (chosen != nullptr && rewriter.same_shape(chosen, node.output(0))) return chosen;
  }
  return nullptr;
}

/// Operators whose inputs all broadcast to one another.
constexpr Text kBroadcasting[] = {"Add",       "And",         "BitwiseAnd",
                                  "BitwiseOr", "BitwiseXor",  "Div",
                                  "Equal",     "Greater",     "GreaterOrEqual",
                                  "Less",      "LessOrEqual", "Max",
                                  "Mean",      "Min",         "Mod",
                                  "Mul",       "Or",          "Pow",
                                  "Sub",       "Sum",         "Where",
                                  "Xor"};

/// What an Expand spreads to the shape that the node gives anyhow, as another input has it, the
/// node takes as it is.
size_t skip_expands(Rewriter& rewriter, Node& node) {
  bool any = false;
  for (const Value* input : node.inputs()) any |= rewriter.producer(input, "Expand") != nullptr;
  if (!any || node.outputs().size() != 1 ||
      std::none_of(std::begin(kBroadcasting), std::end(kBroadcasting),
                   [&](Text op) { return rewriter.is(&node, op); }))
    return 0;
  size_t skipped = 0;
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    const Node* expand = rewriter.producer(node.input(i), "Expand");
    if (expand == nullptr || expand->input(0) == nullptr) continue;
    bool spread = false;
    for (size_t j = 0; j < node.inputs().size() && !spread; ++j)
      spread = j != i && rewriter.same_shape(node.input(j), node.output(0));
    if (!spread) continue;
    node.set_input(i, expand->input(0));
    rewriter.touch(node);
    ++skipped;
  }
  return skipped;
}

}  // namespace

Result<size_t> remove_identities(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes()) {
      count += skip_expands(rewriter, *node);
      Value* from = kept(rewriter, *node);
      if (from == nullptr) continue;
      Value& output = *node->output(0);
      if (!rewriter.replaceable(output, *from)) {
        // The name of an output: only what is more than an Identity is worth a change.
        if (node->op_type() == "Identity") {
          const std::vector<Use> uses(output.uses().begin(), output.uses().end());
          for (const Use& use : uses) use.node->set_input(use.index, from);
          count += uses.size();
          if (!uses.empty()) rewriter.changed();
          continue;
        }
      }
      rewriter.supersede(output, *from);
      ++count;
    }
  });
  return count;
}

}  // namespace tombolo::passes
