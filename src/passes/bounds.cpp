#include "passes/bounds.h"

#include <algorithm>
#include <cmath>

namespace tombolo {
namespace {

constexpr int kMaxDepth = 40;
constexpr int64_t kMaxElements = 1 << 22;

double largest(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 65504;
    case DType::kBFloat16:
      return 3.3895313892515355e38;
    case DType::kFloat32:
      return 3.4028234663852886e38;
    case DType::kFloat64:
      return 1.7976931348623157e308;
    default:
      return 0;
  }
}

std::optional<Interval> of_constant(const Rewriter& rewriter, const Value* value) {
  const auto dims = rewriter.dims(value);
  if (!dims || element_count(*dims) < 1 || element_count(*dims) > kMaxElements) return std::nullopt;
  const Tensor* tensor = rewriter.constant(value);
  if (tensor == nullptr || tensor->is_string() || is_complex(tensor->dtype())) return std::nullopt;
  Interval out{tensor->get_double(0), tensor->get_double(0)};
  for (int64_t i = 0; i < tensor->size(); ++i) {
    const double element = tensor->get_double(i);
    if (!std::isfinite(element)) return std::nullopt;
    out = {std::min(out.low, element), std::max(out.high, element)};
  }
  return out;
}

std::optional<Interval> of_node(const Rewriter& rewriter, const Node& node, int depth) {
  const Text op = node.op_type();
  const auto input = [&](size_t index) {
    return bounds_of(rewriter, node.input(index), depth + 1);
  };
  constexpr std::string_view kMoves[] = {"Identity", "Reshape", "Expand",         "Unsqueeze",
                                         "Squeeze",  "Flatten", "Transpose",      "Slice",
                                         "Gather",   "Tile",    "GatherElements", "GatherND"};
  if (std::find(std::begin(kMoves), std::end(kMoves), op) != std::end(kMoves)) return input(0);
  if (op == "Cast") {
    const DType from = rewriter.dtype(node.input(0));
    if (from == DType::kBool) return Interval{0, 1};
    const auto known = input(0);
    if (known || !is_integer(from)) return known;
    // Whatever an integer is, it is finite: the mask that a caller gives.
    const double all = std::ldexp(1.0, static_cast<int>(bits_of(from)));
    if (is_unsigned_integer(from)) return Interval{0, all};
    return Interval{-all / 2, all / 2};
  }
  if (op == "Where" || op == "Max" || op == "Min") {
    const size_t first = op == "Where" ? 1 : 0;
    if (op != "Where" && node.inputs().size() != 2) return std::nullopt;
    const auto a = input(first), b = input(first + 1);
    if (!a || !b) return std::nullopt;
    return Interval{std::min(a->low, b->low), std::max(a->high, b->high)};
  }
  if (op == "Concat") {
    std::optional<Interval> all;
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const auto part = input(i);
      if (!part) return std::nullopt;
      all = all ? Interval{std::min(all->low, part->low), std::max(all->high, part->high)} : *part;
    }
    return all;
  }
  if (op == "Add" || op == "Sub" || op == "Mul") {
    const auto a = input(0), b = input(1);
    if (!a || !b) return std::nullopt;
    if (op == "Add") return Interval{a->low + b->low, a->high + b->high};
    if (op == "Sub") return Interval{a->low - b->high, a->high - b->low};
    const double corners[] = {a->low * b->low, a->low * b->high, a->high * b->low,
                              a->high * b->high};
    return Interval{*std::min_element(corners, corners + 4),
                    *std::max_element(corners, corners + 4)};
  }
  if (op == "Neg") {
    const auto a = input(0);
    if (!a) return std::nullopt;
    return Interval{-a->high, -a->low};
  }
  if (op == "Sigmoid" || op == "Softmax") return std::nullopt;  // NaN passes
  return std::nullopt;
}

}  // namespace

std::optional<Interval> bounds_of(const Rewriter& rewriter, const Value* value, int depth) {
  if (value == nullptr || depth > kMaxDepth) return std::nullopt;
  if (rewriter.is_constant(value)) return of_constant(rewriter, value);
  const DType dtype = rewriter.dtype(value);
  if (dtype == DType::kBool) return Interval{0, 1};
  const Node* node = value->producer();
  if (node == nullptr || !rewriter.is(node, node->op_type())) return std::nullopt;
  const auto found = of_node(rewriter, *node, depth);
  if (!found) return std::nullopt;
  const double most = largest(dtype);
  if (most == 0) {
    // Integers wrap: only what surely fits.
    if (!is_integer(dtype) || bits_of(dtype) < 32 || found->low < -1e9 || found->high > 1e9 ||
        (is_unsigned_integer(dtype) && found->low < 0))
      return std::nullopt;
    return found;
  }
  if (found->low < -most || found->high > most) return std::nullopt;
  return found;
}

}  // namespace tombolo
