// Two nodes of a kind, one after the other, that one node can say.

#include <algorithm>
#include <cmath>
#include <vector>

#include "passes/elements.h"
#include "passes/evaluate.h"
#include "passes/passes.h"
#include "passes/slice_bounds.h"

namespace tombolo::passes {
namespace {

/// Every value of `from` is a value of `to`.
bool holds_all(DType from, DType to) {
  if (from == to) return true;
  if (is_string(from) || is_string(to) || is_complex(from) || is_complex(to)) return false;
  if (to == DType::kBool) return false;
  if (from == DType::kBool) return true;
  const auto digits = [](DType type) -> int {  // of the significand
    switch (type) {
      case DType::kFloat64:
        return 53;
      case DType::kFloat32:
        return 24;
      case DType::kFloat16:
        return 11;
      case DType::kBFloat16:
        return 8;
      default:
        return 0;
    }
  };
  const auto bits = [](DType type) { return static_cast<int>(bits_of(type)); };
  if (is_integer(from) && is_integer(to)) {
    if (is_unsigned_integer(from))
      return is_unsigned_integer(to) ? bits(to) >= bits(from) : bits(to) > bits(from);
    return is_signed_integer(to) && bits(to) >= bits(from);
  }
  if (is_integer(from)) {
    const int needed = bits(from) - (is_signed_integer(from) ? 1 : 0);
    if (to == DType::kFloat16) return needed <= 11;  // the range reaches 65504
    return digits(to) >= needed;
  }
  if (digits(from) == 0 || digits(to) == 0) return false;
  if (from == DType::kBFloat16 && to == DType::kFloat16) return false;
  return digits(to) > digits(from);
}

size_t merge_casts(Rewriter& rewriter, Node& node) {
  Node* first = rewriter.producer(node.input(0), "Cast");
  if (first == nullptr || first->input(0) == nullptr) return 0;
  const DType from = rewriter.dtype(first->input(0)), middle = rewriter.dtype(first->output(0)),
              to = rewriter.dtype(node.output(0));
  if (from == DType::kUndefined || to == DType::kUndefined || !holds_all(from, middle)) return 0;
  // Through a float, an integer that a float holds comes out as it went in; saturation and wrapping
  // are decided by the last Cast, which must see the same kind of number.
  if (is_float(from) != is_float(middle) && from != to && !(is_integer(from) && is_float(to)) &&
      from != DType::kBool)
    return 0;
  if (is_string(to) || is_float8(to) || bits_of(to) < 8)
    return 0;  // their Cast has attributes and rules of its own
  if (from == to) {
    if (!rewriter.replaceable(*node.output(0), *first->input(0))) return 0;
    rewriter.supersede(*node.output(0), *first->input(0));
    return 1;
  }
  node.set_input(0, first->input(0));
  rewriter.touch(node);
  return 1;
}

size_t merge_same(Rewriter& rewriter, Node& node) {
  const Text op = node.op_type();
  constexpr std::string_view kIdempotent[] = {"Relu", "Abs", "Ceil", "Floor", "Round", "Sign"};
  constexpr std::string_view kInvolution[] = {"Not", "Neg", "BitwiseNot"};
  const bool idempotent =
      std::find(std::begin(kIdempotent), std::end(kIdempotent), op) != std::end(kIdempotent);
  const bool involution =
      std::find(std::begin(kInvolution), std::end(kInvolution), op) != std::end(kInvolution);
  if (!idempotent && !involution) return 0;
  Node* first = rewriter.producer(node.input(0), op);
  if (first == nullptr) return 0;
  Value* to = idempotent ? node.input(0) : first->input(0);
  if (to == nullptr || !rewriter.replaceable(*node.output(0), *to)) return 0;
  rewriter.supersede(*node.output(0), *to);
  return 1;
}

/// Concat of a Concat along the same axis.
size_t merge_concats(Rewriter& rewriter, Node& node) {
  const auto rank = rewriter.rank(node.output(0));
  const auto axis_of = [&](const Node& concat) {
    const int64_t axis = AttributeReader(concat).get_int("axis", 0);
    return rank && axis < 0 ? axis + static_cast<int64_t>(*rank) : axis;
  };
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    Node* inner = rewriter.producer(node.input(i), "Concat");
    if (inner == nullptr || &inner->graph() != &node.graph() ||
        !Rewriter::single_use(inner->output(0)) || axis_of(*inner) != axis_of(node))
      continue;
    const std::vector<Value*> parts(inner->inputs().begin(), inner->inputs().end());
    node.remove_input(static_cast<uint32_t>(i));
    for (size_t k = 0; k < parts.size(); ++k)
      node.insert_input(static_cast<uint32_t>(i + k), parts[k]);
    rewriter.erase(*inner);
    rewriter.touch(node);
    return 1;
  }
  return 0;
}

/// Neighbouring constants of a Concat.
Result<size_t> merge_concat_constants(Rewriter& rewriter, Node& node) {
  for (size_t i = 0; i + 1 < node.inputs().size(); ++i) {
    const auto small = [&](const Value* value) {
      const auto dims = rewriter.is_constant(value) ? rewriter.dims(value) : std::nullopt;
      return dims && element_count(*dims) <= 4096;
    };
    if (!small(node.input(i)) || !small(node.input(i + 1))) continue;
    const Tensor* a = rewriter.constant(node.input(i));
    const Tensor* b = rewriter.constant(node.input(i + 1));
    if (a == nullptr || b == nullptr || a->rank() != 1 || b->rank() != 1 || a->is_string() ||
        a->dtype() != b->dtype() || bits_of(a->dtype()) < 8)
      continue;
    const int64_t dims[] = {a->size() + b->size()};
    TRY(Tensor joined, Tensor::allocate(a->dtype(), dims));
    std::copy(a->bytes().begin(), a->bytes().end(), joined.mutable_bytes().begin());
    std::copy(b->bytes().begin(), b->bytes().end(),
              joined.mutable_bytes().begin() + static_cast<std::ptrdiff_t>(a->bytes().size()));
    node.set_input(static_cast<uint32_t>(i),
                   rewriter.initializer(node.graph(), joined, node.input(i)->name()));
    node.remove_input(static_cast<uint32_t>(i + 1));
    rewriter.touch(node);
    return size_t(1);
  }
  return size_t(0);
}

/// Slice of a Slice along other axes, both with constant bounds.
size_t merge_slices(Rewriter& rewriter, Node& node) {
  Node* first = rewriter.producer(node.input(0), "Slice");
  if (first == nullptr || &first->graph() != &node.graph() ||
      !Rewriter::single_use(first->output(0)))
    return 0;
  const auto rank = rewriter.rank(node.output(0));
  if (!rank) return 0;
  auto a = slice_bounds(rewriter, *first, *rank);
  const auto b = slice_bounds(rewriter, node, *rank);
  auto ends = rewriter.ints(first->input(2));
  const auto more_ends = rewriter.ints(node.input(2));
  if (!a || !b || !ends || !more_ends || ends->size() != a->starts.size() ||
      more_ends->size() != b->starts.size())
    return 0;
  for (const int64_t axis : b->axes)
    if (std::find(a->axes.begin(), a->axes.end(), axis) != a->axes.end()) return 0;
  a->starts.insert(a->starts.end(), b->starts.begin(), b->starts.end());
  ends->insert(ends->end(), more_ends->begin(), more_ends->end());
  a->axes.insert(a->axes.end(), b->axes.begin(), b->axes.end());
  a->steps.insert(a->steps.end(), b->steps.begin(), b->steps.end());
  Graph& graph = node.graph();
  Node& merged =
      rewriter.add(node, "Slice",
                   {first->input(0), rewriter.ints_initializer(graph, a->starts, "starts"),
                    rewriter.ints_initializer(graph, *ends, "ends"),
                    rewriter.ints_initializer(graph, a->axes, "axes"),
                    rewriter.ints_initializer(graph, a->steps, "steps")},
                   node.output(0)->name());
  rewriter.supersede(*node.output(0), *merged.output(0));
  if (!first->output(0)->has_uses()) rewriter.erase(*first);
  return 1;
}

/// A small whole exponent says the same as a float: what looks for squares need know one type only.
size_t same_type_exponent(Rewriter& rewriter, Node& node) {
  const DType base = rewriter.dtype(node.input(0)), given = rewriter.dtype(node.input(1));
  const auto exponent = rewriter.scalar(node.input(1));
  constexpr double kMost = 64;
  if ((base != DType::kFloat32 && base != DType::kFloat64) || !is_integer(given) || !exponent ||
      std::fabs(*exponent) > kMost)
    return 0;
  const Tensor* old = rewriter.constant(node.input(1));
  if (old == nullptr) return 0;
  Tensor number =
      base == DType::kFloat32
          ? Tensor::of<float>(base, old->dims(), std::vector<float>{static_cast<float>(*exponent)})
          : Tensor::of<double>(base, old->dims(), std::vector<double>{*exponent});
  node.set_input(1, rewriter.initializer(node.graph(), number, node.input(1)->name()));
  rewriter.touch(node);
  return 1;
}

/// The places of nothing but ones in a row are a Range: so PyTorch counts before operator set 11.
/// Inference knows the length of a Range.
Result<size_t> nonzero_to_range(Rewriter& rewriter, Node& node) {
  const Node* fill = rewriter.producer(node.input(0), "ConstantOfShape");
  if (fill == nullptr || fill->input(0) == nullptr || rewriter.rank(node.input(0)) != 1u) return 0;
  if (filling_of(*fill).value_or(0) == 0) return 0;
  const int64_t first[] = {0};
  TRY(const Tensor zero, filled(DType::kInt64, {}, 0));
  TRY(const Tensor step, filled(DType::kInt64, {}, 1));
  Graph& graph = node.graph();
  const Text name = node.output(0)->name();
  const auto add = [&](Text op, const std::vector<Value*>& inputs) {
    Node& made = rewriter.add(node, op, inputs, name);
    rewriter.touch(made);
    return made.output(0);
  };
  Value* length = add("Squeeze", {fill->input(0), rewriter.ints_initializer(graph, first, "axes")});
  Value* places = add("Range", {rewriter.initializer(graph, zero, "start"), length,
                                rewriter.initializer(graph, step, "delta")});
  Value* row = add("Unsqueeze", {places, rewriter.ints_initializer(graph, first, "axes")});
  rewriter.supersede(*node.output(0), *row);
  return 1;
}

}  // namespace

Result<size_t> merge_chains(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  Status status = ok();
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes()) {
      if (!status || node->outputs().size() != 1 || node->output(0) == nullptr ||
          node->input(0) == nullptr)
        continue;
      if (rewriter.is(node, "Cast")) {
        count += merge_casts(rewriter, *node);
      } else if (rewriter.is(node, "Pow")) {
        count += same_type_exponent(rewriter, *node);
      } else if (rewriter.is(node, "Concat")) {
        size_t merged = merge_concats(rewriter, *node);
        if (merged == 0) {
          auto joined = merge_concat_constants(rewriter, *node);
          if (!joined)
            status = std::move(joined).error();
          else
            merged = *joined;
        }
        count += merged;
      } else if (rewriter.is(node, "NonZero")) {
        auto counted = nonzero_to_range(rewriter, *node);
        if (!counted)
          status = std::move(counted).error();
        else
          count += *counted;
      } else if (rewriter.is(node, "Slice")) {
        count += merge_slices(rewriter, *node);
      } else if (rewriter.is(node, node->op_type())) {
        count += merge_same(rewriter, *node);
      }
    }
  });
  CHECK_OK(status);
  return count;
}

namespace {

/// The bounds of a Clip or Relu; empty: none. False when they are not constants.
struct Bounds {
  std::optional<double> low, high;
};
bool bounds_of(const Rewriter& rewriter, const Node& node, Bounds& bounds) {
  if (rewriter.is(&node, "Relu")) {
    bounds.low = 0;
    return true;
  }
  if (!rewriter.is(&node, "Clip")) return false;
  for (const size_t index : {size_t(1), size_t(2)}) {
    if (node.input(index) == nullptr) continue;
    const auto bound = rewriter.scalar(node.input(index));
    if (!bound || std::isnan(*bound)) return false;
    (index == 1 ? bounds.low : bounds.high) = bound;
  }
  return true;
}

}  // namespace

/// Relu and Clip after one another: one Clip, or one Relu. Both let NaN pass. For a low bound above
/// the high one Clip gives the high one; such are left alone.
Result<size_t> merge_clips(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  Status status = ok();
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes()) {
      Bounds outer, inner;
      if (!status || !bounds_of(rewriter, *node, outer) || node->input(0) == nullptr) continue;
      Node* first = node->input(0)->producer();
      if (first == nullptr || &first->graph() != &graph || !bounds_of(rewriter, *first, inner) ||
          !Rewriter::single_use(first->output(0)))
        continue;
      const DType dtype = rewriter.dtype(node->output(0));
      // Integers of 64 bits do not fit a double.
      if (!is_float(dtype) && bits_of(dtype) > 32) continue;
      if (dtype == DType::kUndefined) continue;
      const auto ordered = [](const Bounds& b) { return !b.low || !b.high || *b.low <= *b.high; };
      if (!ordered(outer) || !ordered(inner)) continue;
      // clip(clip(x, a, b), c, d) = clip(x, clip(a, c, d), clip(b, c, d)).
      const auto limit = [&](std::optional<double> value, std::optional<double> otherwise) {
        if (!value) return otherwise;
        double out = *value;
        if (outer.low) out = std::max(out, *outer.low);
        if (outer.high) out = std::min(out, *outer.high);
        return std::optional<double>(out);
      };
      const Bounds both{limit(inner.low, outer.low), limit(inner.high, outer.high)};
      Value* input = first->input(0);
      Node* made = nullptr;
      if (both.low && *both.low == 0 && !both.high) {
        made = &rewriter.add(*node, "Relu", {input}, node->output(0)->name());
      } else {
        std::vector<Value*> inputs = {input};
        for (const auto& bound : {both.low, both.high}) {
          Value* value = nullptr;
          if (bound) {
            auto tensor = filled(dtype, {}, *bound);
            if (!tensor) {
              status = std::move(tensor).error();
              break;
            }
            value = rewriter.initializer(graph, *tensor, "bound");
          }
          inputs.push_back(value);
        }
        if (!status) continue;
        while (inputs.back() == nullptr) inputs.pop_back();
        made = &rewriter.add(*node, "Clip", inputs, node->output(0)->name());
      }
      rewriter.supersede(*node->output(0), *made->output(0));
      rewriter.erase(*first);
      ++count;
    }
  });
  CHECK_OK(status);
  return count;
}

}  // namespace tombolo::passes
