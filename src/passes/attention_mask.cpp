#include "passes/attention_mask.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/infer_context.h"
#include "passes/attributes.h"
#include "passes/bounds.h"
#include "passes/evaluate.h"
#include "passes/slice_bounds.h"

namespace tombolo::passes {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kMostElements = 1 << 24;

bool is_one(const SymDim& dim) { return dim.constant() == 1; }

/// Every row of a constant mask has a key.
bool leaves_a_key(const Rewriter& rewriter, const Value* mask) {
  const auto dims = rewriter.is_constant(mask) ? rewriter.dims(mask) : std::nullopt;
  if (!dims || dims->empty() || dims->back() <= 0 || element_count(*dims) > (1 << 24)) return false;
  const Tensor* tensor = rewriter.constant(mask);
  if (tensor == nullptr || !is_float(tensor->dtype())) return false;
  const int64_t row = dims->back();
  for (int64_t at = 0; at < tensor->size(); at += row) {
    bool any = false;
    for (int64_t i = 0; i < row; ++i) {
      const double value = tensor->get_double(at + i);
      if (std::isnan(value) || value == std::numeric_limits<double>::infinity()) return false;
      any |= std::isfinite(value);
    }
    if (!any) return false;
  }
  return true;
}

/// What the first element of every row is, one number for all of them; nothing where that is not
/// known. Masks that are made for the lengths of a run are told by it: most show the first key to
/// all queries.
class FirstColumn {
 public:
  explicit FirstColumn(const Rewriter& rewriter) : rewriter_(rewriter) {}

  std::optional<double> of(const Value* value, int depth = 0) const {
    constexpr int kMaxDepth = 40;
    if (value == nullptr || depth > kMaxDepth) return std::nullopt;
    if (rewriter_.is_constant(value)) return of_constant(value);
    const Node* node = value->producer();
    if (node == nullptr || !rewriter_.is(node, node->op_type())) return std::nullopt;
    const auto input = [&](size_t index) { return of(node->input(index), depth + 1); };
    const AttributeReader attributes(*node);
    const Text op = node->op_type();
    if (op == "Identity" || op == "Expand") return input(0);
    if (op == "Not") return applied(input(0), [](double x) { return x == 0; });
    if (op == "Cast") {
      if (attributes.get_int("to", 0) == static_cast<int64_t>(DType::kBool))
        return applied(input(0), [](double x) { return x != 0; });
      return rewriter_.dtype(node->input(0)) == DType::kBool ? input(0) : std::nullopt;
    }
    if (op == "Unsqueeze" || op == "Squeeze" || op == "Reshape") {
      const SymShape* from = rewriter_.shape(node->input(0));
      const SymShape* to = rewriter_.shape(value);
      const bool same_rows = from != nullptr && to != nullptr && !from->empty() && !to->empty() &&
                             from->back().equals(to->back());
      return same_rows ? input(0) : std::nullopt;
    }
    if (op == "Slice") return starts_first(*node) ? input(0) : std::nullopt;
    if (op == "ConstantOfShape") {
      const Constant* filling = attributes.get_tensor("value");
      if (filling == nullptr) return 0;
      const auto tensor = filling->value(node->graph().storage_ptr());
      if (!tensor || tensor->size() != 1 || tensor->is_string()) return std::nullopt;
      return tensor->get_double(0);
    }
    if (op == "Trilu") {
      const auto k = node->input(1) != nullptr ? rewriter_.scalar(node->input(1)) : 0;
      if (attributes.get_int("upper", 1) != 0)
        return k && *k >= 1 ? std::optional<double>(0) : std::nullopt;
      return k && *k >= 0 ? input(0) : std::nullopt;
    }
    if (op == "And" || op == "Or") {
      const double absorbs = op == "Or" ? 1 : 0;
      const auto a = input(0), b = input(1);
      if (a == absorbs || b == absorbs) return absorbs;
      return a && b ? std::optional(1 - absorbs) : std::nullopt;
    }
    if (op == "Equal") {
      const auto a = input(0), b = input(1);
      return a && b ? std::optional<double>(*a == *b) : std::nullopt;
    }
    return std::nullopt;
  }

 private:
  template <typename Function>
  static std::optional<double> applied(std::optional<double> x, Function&& function) {
    return x ? std::optional<double>(function(*x)) : std::nullopt;
  }
  std::optional<double> of_constant(const Value* value) const {
    const auto dims = rewriter_.dims(value);
    const int64_t size = dims ? element_count(*dims) : 0;
    if (size < 1 || size > kMostElements) return std::nullopt;
    const Tensor* tensor = rewriter_.constant(value);
    if (tensor == nullptr || tensor->is_string() || is_complex(tensor->dtype()))
      return std::nullopt;
    const double first = tensor->get_double(0);
    for (int64_t at = 0; at < size; at += dims->empty() ? 1 : dims->back())
      if (!(tensor->get_double(at) == first)) return std::nullopt;
    return first;
  }
  bool starts_first(const Node& slice) const {
    const auto rank = rewriter_.rank(slice.input(0));
    if (!rank) return false;
    const auto bounds = slice_bounds(rewriter_, slice, *rank);
    if (!bounds) return false;
    for (size_t i = 0; i < bounds->axes.size(); ++i)
      if (bounds->axes[i] == static_cast<int64_t>(*rank) - 1 &&
          (bounds->starts[i] != 0 || bounds->steps[i] < 1))
        return false;
    return true;
  }

  const Rewriter& rewriter_;
};

/// No row has all of its keys hidden.
bool shows_a_key(const Rewriter& rewriter, const AttentionMask& mask) {
  const auto first = FirstColumn(rewriter).of(mask.hidden);
  if (first) return (*first != 0) != mask.when;
  const auto dims = rewriter.is_constant(mask.hidden) ? rewriter.dims(mask.hidden) : std::nullopt;
  if (!dims || dims->empty() || element_count(*dims) < 1 || element_count(*dims) > kMostElements)
    return false;
  const Tensor* tensor = rewriter.constant(mask.hidden);
  if (tensor == nullptr) return false;
  for (int64_t at = 0; at < tensor->size(); at += dims->back()) {
    bool any = false;
    for (int64_t i = 0; i < dims->back(); ++i)
      any |= (tensor->get_double(at + i) != 0) != mask.when;
    if (!any) return false;
  }
  return true;
}

/// What replaces a score is what is added to it, too: beside other keys it counts nothing, and in a
/// row without any a score vanishes beside it.
bool replaces_as_it_adds(const Rewriter& rewriter, const AttentionMask& mask) {
  constexpr double kScoresVanish = -1e12;
  return mask.low <= kScoresVanish || shows_a_key(rewriter, mask);
}

constexpr double kAboveLowest = 0.99;
double lowest(DType dtype) {
  return dtype == DType::kFloat16    ? -65504
         : dtype == DType::kBFloat16 ? -3.3895313892515355e38
         : dtype == DType::kFloat32  ? -3.4028234663852886e38
                                     : -1.7976931348623157e308;
}

/// Rows without a key give what the nodes give.
bool blind_rows_agree(const Rewriter& rewriter, const AttentionMask& mask, DType dtype) {
  if (mask.hidden == nullptr)
    return leaves_a_key(rewriter, mask.bias) || bounds_of(rewriter, mask.bias).has_value();
  double least = 0;
  if (mask.bias != nullptr) {
    const auto bounds = bounds_of(rewriter, mask.bias);
    if (!bounds) return false;
    least = bounds->low;
  }
  if (mask.low == -kInfinity) return shows_a_key(rewriter, mask);
  return !mask.bias_last || mask.low + least >= lowest(dtype) || shows_a_key(rewriter, mask);
}

/// Shape of the mask before it has two or four axes.
std::optional<SymShape> shape_of(const Rewriter& rewriter, const AttentionMask& mask) {
  std::optional<SymShape> shape;
  for (const Value* part : {mask.bias, mask.hidden}) {
    if (part == nullptr) continue;
    const SymShape* own = rewriter.shape(part);
    if (own == nullptr) return std::nullopt;
    if (!shape) {
      shape = *own;
      continue;
    }
    auto both = broadcast(*shape, *own);
    if (!both) return std::nullopt;
    shape = *std::move(both);
  }
  return shape;
}

/// A row of nothing but the lowest number gives the mean of all values, as the nodes say it; ONNX
/// Runtime takes that number for -infinity and gives zeros. So such a mask is raised a little.
Result<Value*> above_lowest(Rewriter& rewriter, Node& before, Value* mask) {
  const DType dtype = rewriter.dtype(mask);
  const auto bounds = bounds_of(rewriter, mask);
  if (!bounds || bounds->low > 0.995 * lowest(dtype)) return mask;
  const auto raised = [&](const Value* value) -> Result<Value*> {
    TRY(const Tensor bound, filled(dtype, {}, kAboveLowest * lowest(dtype)));
    const Tensor* tensor = rewriter.constant(value);
    if (tensor == nullptr) return runtime_error("no constant");
    TRY(const Tensor clipped, compute("Max", {*tensor, bound}));
    return rewriter.initializer(before.graph(), clipped, "low");
  };
  const Node* where = rewriter.producer(mask, "Where");
  if (where != nullptr && rewriter.scalar(where->input(1)) && rewriter.scalar(where->input(2))) {
    TRY(Value * yes, raised(where->input(1)));
    TRY(Value * no, raised(where->input(2)));
    return rewriter.add(before, "Where", {where->input(0), yes, no}, "mask").output(0);
  }
  TRY(const Tensor bound, filled(dtype, {}, kAboveLowest * lowest(dtype)));
  Value* low = rewriter.initializer(before.graph(), bound, "low");
  return rewriter.add(before, "Max", {mask, low}, "mask").output(0);
}

/// The mask with a row for every query: ONNX Runtime does not broadcast along that axis.
Value* with_rows(Rewriter& rewriter, Node& before, Value* mask, Value* q) {
  const SymShape shape = *rewriter.shape(mask);
  const SymDim rows = (*rewriter.shape(q))[2];
  if (!is_one(shape[shape.size() - 2]) || is_one(rows)) return mask;
  Graph& graph = before.graph();
  std::vector<int64_t> target(shape.size(), 1);
  if (rows.is_value()) {
    target[shape.size() - 2] = rows.value();
    return rewriter
        .add(before, "Expand", {mask, rewriter.ints_initializer(graph, target, "shape")}, "mask")
        .output(0);
  }
  Value* count = rewriter.axis_length(before, q, 2, "queries");
  const std::vector<int64_t> lead(shape.size() - 2, 1), tail(1, 1);
  std::vector<Value*> parts = {count, rewriter.ints_initializer(graph, tail, "one")};
  if (!lead.empty()) parts.insert(parts.begin(), rewriter.ints_initializer(graph, lead, "ones"));
  Node& joined = rewriter.add(before, "Concat", parts, "shape");
  joined.set_int("axis", 0);
  rewriter.touch(joined);
  return rewriter.add(before, "Expand", {mask, joined.output(0)}, "mask").output(0);
}

/// With one axis more in front, or without those that are one.
Value* with_two_or_four_axes(Rewriter& rewriter, Node& before, Value* mask) {
  const size_t rank = rewriter.shape(mask)->size();
  if (rank == 2 || rank == 4) return mask;
  std::vector<int64_t> axes = {0};
  for (size_t i = 1; i + 4 < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  Node& made =
      rewriter.add(before, rank < 4 ? "Unsqueeze" : "Squeeze",
                   {mask, rewriter.ints_initializer(before.graph(), axes, "axes")}, "mask");
  rewriter.touch(made);
  return made.output(0);
}

}  // namespace

bool mask_fits(const Rewriter& rewriter, const AttentionMask& mask, DType dtype, const SymShape& q,
               const SymDim& keys, bool blind_rows) {
  const auto shape = shape_of(rewriter, mask);
  if (!shape || shape->empty() || (mask.bias != nullptr && rewriter.dtype(mask.bias) != dtype))
    return false;
  // A shorter last axis would count as masked, not as broadcast.
  if (!shape->back().equals(keys)) return false;
  const SymDim full[] = {q[0], q[1], q[2]};
  for (size_t i = 0; i + 1 < shape->size(); ++i) {
    const SymDim& dim = (*shape)[shape->size() - 2 - i];
    if (!is_one(dim) && (i > 2 || !dim.equals(full[2 - i]))) return false;
  }
  if (mask.hidden != nullptr && rewriter.level() < 3 && !replaces_as_it_adds(rewriter, mask))
    return false;
  return blind_rows || blind_rows_agree(rewriter, mask, dtype);
}

Result<Value*> make_mask(Rewriter& rewriter, Node& before, const AttentionMask& mask, Value* q) {
  const DType dtype = rewriter.dtype(q);
  Value* made = mask.bias;
  if (mask.hidden != nullptr) {
    const auto number = [&](double x) -> Result<Value*> {
      TRY(const Tensor tensor, filled(dtype, {}, x));
      return rewriter.initializer(before.graph(), tensor, "low");
    };
    const bool apart = made == nullptr || mask.bias_last;
    TRY(Value * low,
        number(mask.low == -kInfinity ? mask.low
                                      : std::max(mask.low, kAboveLowest * lowest(dtype))));
    Value* other = made;
    if (apart) {
      TRY(other, number(0));
    }
    Node& where = rewriter.add(
        before, "Where", {mask.hidden, mask.when ? low : other, mask.when ? other : low}, "mask");
    rewriter.touch(where);
    if (apart && made != nullptr) {
      Node& sum = rewriter.add(before, "Add", {where.output(0), made}, "mask");
      rewriter.touch(sum);
      made = sum.output(0);
    } else {
      made = where.output(0);
    }
  }
  TRY(made, above_lowest(rewriter, before, made));
  return with_rows(rewriter, before, with_two_or_four_axes(rewriter, before, made), q);
}

}  // namespace tombolo::passes
