#include "passes/attention_mask.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/infer_context.h"
#include "passes/attributes.h"
#include "passes/bounds.h"
#include "passes/elements.h"
#include "passes/evaluate.h"
#include "passes/slice_bounds.h"

namespace tombolo::passes {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kMostElements = 1 << 24;

/// Every row of a constant has an element of which `shown` is true.
template <typename Shown>
bool every_row_shows(const Rewriter& rewriter, const Value* mask, Shown&& shown) {
  const auto dims = rewriter.is_constant(mask) ? rewriter.dims(mask) : std::nullopt;
  if (!dims || dims->empty() || dims->back() <= 0 || element_count(*dims) > kMostElements)
    return false;
  const Tensor* tensor = rewriter.constant(mask);
  if (tensor == nullptr || tensor->is_string() || is_complex(tensor->dtype())) return false;
  for (int64_t at = 0; at < tensor->size(); at += dims->back()) {
    bool any = false;
    for (int64_t i = 0; i < dims->back(); ++i) any |= shown(tensor->get_double(at + i));
    if (!any) return false;
  }
  return true;
}

/// Every row of a constant mask has a key, and all of it is -infinity or finite.
bool leaves_a_key(const Rewriter& rewriter, const Value* mask) {
  bool proper = is_float(rewriter.dtype(mask));
  return every_row_shows(rewriter, mask,
                         [&](double x) {
                           proper &= !std::isnan(x) && x != kInfinity;
                           return std::isfinite(x);
                         }) &&
         proper;
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
    if (op == "ConstantOfShape") return filling_of(*node);
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
  return every_row_shows(rewriter, mask.hidden, [&](double x) { return (x != 0) != mask.when; });
}

constexpr double kAboveLowest = 0.99;
double lowest(DType dtype) {
  return dtype == DType::kFloat16    ? -65504
         : dtype == DType::kBFloat16 ? -3.3895313892515355e38
         : dtype == DType::kFloat32  ? -3.4028234663852886e38
                                     : -1.7976931348623157e308;
}

/// A part of the lowest number that it is rounded back by.
double rounded_away(DType dtype) {
  return dtype == DType::kFloat16    ? 0x1p-13
         : dtype == DType::kBFloat16 ? 0x1p-10
         : dtype == DType::kFloat32  ? 0x1p-26
                                     : 0;
}

/// A number of type `dtype`, without axes.
Result<Value*> number(Rewriter& rewriter, const Node& before, DType dtype, double x, Text hint) {
  TRY(const Tensor tensor, filled(dtype, {}, x));
  return rewriter.initializer(before.graph(), tensor, hint);
}

std::vector<Value*> parts_of(const AttentionMask& mask) {
  std::vector<Value*> parts = mask.outside;
  parts.insert(parts.end(), mask.inside.begin(), mask.inside.end());
  return parts;
}

/// Rows without a key give what the nodes give.
bool blind_rows_agree(const Rewriter& rewriter, const AttentionMask& mask, DType dtype) {
  if (mask.floor) return true;
  double least = 0;
  bool rows_of_constant = false;
  for (const Value* part : parts_of(mask)) {
    if (const auto bounds = bounds_of(rewriter, part)) {
      least += bounds->low;
      continue;
    }
    if (mask.hidden != nullptr || rows_of_constant || !leaves_a_key(rewriter, part)) return false;
    rows_of_constant = true;
  }
  if (mask.low == -kInfinity) return shows_a_key(rewriter, mask);
  return mask.low + least >= lowest(dtype) * (1 + rounded_away(dtype)) ||
         (mask.hidden != nullptr && shows_a_key(rewriter, mask));
}

/// The numbers of a list, as far as inference knows them.
std::optional<SymShape> numbers_of(const Rewriter& rewriter, const Value* list) {
  if (const SymShape* known = rewriter.elements(list)) return *known;
  const auto constants = rewriter.ints(list);
  if (!constants) return std::nullopt;
  return SymShape(constants->begin(), constants->end());
}

/// Whether axis `from_end` of a mask is cut to `length`, which is longer only where the nodes fail:
/// a causal table that is square lacks columns where it lacks rows.
bool is_cut_to(const Rewriter& rewriter, const Value* value, size_t from_end,
               const SymDim& length) {
  constexpr int kMaxSteps = 16;
  for (int step = 0; step < kMaxSteps && value != nullptr; ++step) {
    const Node* node = value->producer();
    const auto rank = rewriter.rank(value);
    if (node == nullptr || !rank || *rank <= from_end) return false;
    const bool compares = rewriter.is(node, "Equal") && rewriter.scalar(node->input(1));
    if (compares || rewriter.is(node, "Not") || rewriter.is(node, "Cast")) {
      value = node->input(0);
      continue;
    }
    if (!rewriter.is(node, "Slice")) return false;
    const auto starts = numbers_of(rewriter, node->input(1));
    const auto ends = numbers_of(rewriter, node->input(2));
    if (!starts || !ends || starts->size() != ends->size()) return false;
    const auto cut = sliced_axes(rewriter, *node, starts->size(), *rank);
    if (!cut) return false;
    for (size_t i = 0; i < cut->axes.size(); ++i) {
      if (cut->axes[i] != static_cast<int64_t>(*rank - 1 - from_end)) continue;
      return cut->steps[i] == 1 && (*starts)[i].lower_bound().value_or(-1) >= 0 &&
             ((*ends)[i] - (*starts)[i]).equals(length);
    }
    value = node->input(0);
  }
  return false;
}

/// Shape of the mask before it has two or four axes.
std::optional<SymShape> shape_of(const Rewriter& rewriter, const AttentionMask& mask,
                                 const SymShape& scores) {
  std::optional<SymShape> shape;
  std::vector<Value*> parts = parts_of(mask);
  if (mask.hidden != nullptr) parts.push_back(mask.hidden);
  for (const Value* part : parts) {
    const SymShape* known = rewriter.shape(part);
    if (known == nullptr) return std::nullopt;
    SymShape own = *known;
    for (size_t i = 0; i < own.size() && i < scores.size(); ++i) {
      const SymDim& wanted = scores[scores.size() - 1 - i];
      SymDim& dim = own[own.size() - 1 - i];
      if (!dim.equals(wanted) && is_cut_to(rewriter, part, i, wanted)) dim = wanted;
    }
    if (!shape) {
      shape = std::move(own);
      continue;
    }
    auto both = broadcast(*shape, own);
    if (!both) return std::nullopt;
    shape = *std::move(both);
  }
  return shape;
}

/// The sum of what is added; null for nothing.
Value* sum_of(Rewriter& rewriter, Node& before, const std::vector<Value*>& parts) {
  Value* sum = nullptr;
  for (Value* part : parts) {
    if (sum == nullptr) {
      sum = part;
      continue;
    }
    Node& both = rewriter.add(before, "Add", {sum, part}, "mask");
    rewriter.touch(both);
    sum = both.output(0);
  }
  return sum;
}

/// A look at all of a mask of that shape is cheap beside what Attention saves.
bool is_small(const SymShape& shape) {
  const size_t rank = shape.size();
  return rank < 3 || is_one(shape[rank - 3]) || is_one(shape[rank - 2]);
}

/// What is added to the scores, the parts of a sum apart.
struct MaskParts {
  std::vector<Value*> all;
  size_t hides = 0;  ///< the one that may be -infinity in a whole row
};

/// A small part for the keys beside others that cannot make a number infinite, as T5 adds a bias
/// for the distance; a part may be a sum that all layers share.
std::optional<MaskParts> one_part_hides(const Rewriter& rewriter, const AttentionMask& mask,
                                        DType dtype) {
  constexpr size_t kMaxParts = 8;
  // Beside the lowest number of the type this much is rounded away.
  const double lost = dtype == DType::kFloat32 ? 1e30 : dtype == DType::kFloat64 ? 1e290 : -1;
  if (mask.hidden != nullptr || lost < 0) return std::nullopt;
  MaskParts parts{mask.outside};
  std::optional<size_t> hides;
  for (size_t i = 0; i < parts.all.size();) {
    Value* part = parts.all[i];
    if (const auto bounds = bounds_of(rewriter, part)) {
      if (bounds->low < -lost || bounds->high > lost) return std::nullopt;
      ++i;
      continue;
    }
    if (const Node* sum = rewriter.is(part->producer(), "Add") && parts.all.size() < kMaxParts
                              ? part->producer()
                              : nullptr;
        sum != nullptr && sum->input(0) != nullptr && sum->input(1) != nullptr) {
      parts.all[i] = sum->input(0);
      parts.all.insert(parts.all.begin() + static_cast<std::ptrdiff_t>(i) + 1, sum->input(1));
      continue;
    }
    const SymShape* shape = rewriter.shape(part);
    if (hides || shape == nullptr || !is_small(*shape)) return std::nullopt;
    hides = i++;
  }
  if (!hides) return std::nullopt;
  parts.hides = *hides;
  return parts;
}

/// NaN in rows that are -infinity throughout.
Result<Value*> without_blind_rows(Rewriter& rewriter, Node& before, Value* mask) {
  const DType dtype = rewriter.dtype(mask);
  const auto add = [&](Text op, const std::vector<Value*>& inputs) -> Node& {
    Node& made = rewriter.add(before, op, inputs, "mask");
    rewriter.touch(made);
    return made;
  };
  TRY(Value * least, number(rewriter, before, dtype, -kInfinity, "number"));
  TRY(Value * nan,
      number(rewriter, before, dtype, std::numeric_limits<double>::quiet_NaN(), "number"));
  TRY(Value * zero, number(rewriter, before, dtype, 0, "number"));
  const int64_t last[] = {-1};
  Value* most =
      add("ReduceMax", {mask, rewriter.ints_initializer(before.graph(), last, "axes")}).output(0);
  Value* blind = add("Equal", {most, least}).output(0);
  return add("Add", {mask, add("Where", {blind, nan, zero}).output(0)}).output(0);
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
  TRY(Value * low, number(rewriter, before, dtype, kAboveLowest * lowest(dtype), "low"));
  return rewriter.add(before, "Max", {mask, low}, "mask").output(0);
}

/// The mask with a row for every query: ONNX Runtime does not broadcast along that axis.
Value* with_rows(Rewriter& rewriter, Node& before, Value* mask, Value* q) {
  const SymShape *known = rewriter.shape(mask), *queries = rewriter.shape(q);
  if (known == nullptr || queries == nullptr) return mask;
  const SymShape shape = *known;
  const SymDim rows = (*queries)[2];
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

/// The mask with a column for every key, where it may have but one for all of them.
Value* as_long_as(Rewriter& rewriter, Node& before, const AttentionMask& mask, Value* made,
                  Value* q, Value* k) {
  const SymShape *queries = rewriter.shape(q), *keys = rewriter.shape(k);
  const auto rank = rewriter.rank(made);
  if (queries == nullptr || keys == nullptr || !rank || *rank == 0) return made;
  const SymDim length = (*keys)[2];
  const auto shape =
      shape_of(rewriter, mask, {(*queries)[0], (*queries)[1], (*queries)[2], length});
  if (!shape || shape->back().equals(length)) return made;
  const std::vector<int64_t> ones(*rank - 1, 1);
  std::vector<Value*> parts = {rewriter.axis_length(before, k, 2, "keys")};
  if (!ones.empty())
    parts.insert(parts.begin(), rewriter.ints_initializer(before.graph(), ones, "ones"));
  Node& joined = rewriter.add(before, "Concat", parts, "shape");
  joined.set_int("axis", 0);
  rewriter.touch(joined);
  Node& spread = rewriter.add(before, "Expand", {made, joined.output(0)}, "mask");
  rewriter.touch(spread);
  return spread.output(0);
}

/// With one axis more in front, or without those that are one.
Value* with_two_or_four_axes(Rewriter& rewriter, Node& before, Value* mask) {
  const size_t rank = rewriter.rank(mask).value_or(0);
  if (rank == 0 || rank == 2 || rank == 4) return mask;
  std::vector<int64_t> axes = {0};
  for (size_t i = 1; i + 4 < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  Node& made =
      rewriter.add(before, rank < 4 ? "Unsqueeze" : "Squeeze",
                   {mask, rewriter.ints_initializer(before.graph(), axes, "axes")}, "mask");
  rewriter.touch(made);
  return made.output(0);
}

}  // namespace

MaskFit fit_of_mask(const Rewriter& rewriter, const AttentionMask& mask, DType dtype,
                    const SymShape& q, const SymDim& keys, bool blind_rows) {
  const SymShape scores = {q[0], q[1], q[2], keys};
  const auto shape = shape_of(rewriter, mask, scores);
  if (!shape || shape->empty()) return MaskFit::kNot;
  for (const Value* part : parts_of(mask))
    if (rewriter.dtype(part) != dtype) return MaskFit::kNot;
  // A shorter last axis would count as masked, not as broadcast; make_mask spreads one whose length
  // has another name than the keys'.
  if (!shape->back().equals(keys) && (shape->back().is_value() || keys.is_value()))
    return MaskFit::kNot;
  for (size_t i = 1; i < shape->size(); ++i) {
    const SymDim& dim = (*shape)[shape->size() - 1 - i];
    if (!is_one(dim) && (i > 3 || !dim.equals(scores[3 - i]))) return MaskFit::kNot;
  }
  // What replaces a score is what is added to it, too, where that is so low that scores vanish.
  if (mask.hidden != nullptr && !mask.outside.empty() && rewriter.level() < 3 &&
      mask.low > kScoresVanish && !shows_a_key(rewriter, mask))
    return MaskFit::kNot;
  if (blind_rows || blind_rows_agree(rewriter, mask, dtype)) return MaskFit::kAsItIs;
  if (is_small(*shape)) return MaskFit::kMarked;
  return one_part_hides(rewriter, mask, dtype) ? MaskFit::kPartMarked : MaskFit::kNot;
}

Result<Value*> make_mask(Rewriter& rewriter, Node& before, const AttentionMask& mask, Value* q,
                         Value* k, MaskFit fit) {
  const DType dtype = rewriter.dtype(q);
  // Rows of nothing but the lowest number are equal in all parts, or in none.
  const bool raises = std::all_of(mask.outside.begin(), mask.outside.end(), [&](const Value* part) {
    return bounds_of(rewriter, part).has_value();
  });
  std::vector<Value*> outside = mask.outside;
  if (fit == MaskFit::kPartMarked) {
    if (auto parts = one_part_hides(rewriter, mask, dtype)) {
      TRY(parts->all[parts->hides], without_blind_rows(rewriter, before, parts->all[parts->hides]));
      outside = std::move(parts->all);
    }
  }
  Value* made = sum_of(rewriter, before, outside);
  if (made != nullptr && mask.floor) {
    const double level = std::max(*mask.floor, kAboveLowest * lowest(dtype));
    TRY(Value * floor, number(rewriter, before, dtype, level, "low"));
    made = rewriter.add(before, "Max", {made, floor}, "mask").output(0);
  } else if (made != nullptr) {
    TRY(made, above_lowest(rewriter, before, made));
  }
  if (mask.hidden != nullptr) {
    // Scores vanish beside it, so that a row of nothing else stays such.
    constexpr double kVanish = -1e30;
    double level = std::max(mask.low, (raises ? kAboveLowest : 1) * lowest(dtype));
    if (mask.low == -kInfinity) level = mask.low;
    if (made == nullptr) level = std::min(level, std::max(kVanish, kAboveLowest * lowest(dtype)));
    TRY(Value * low, number(rewriter, before, dtype, level, "low"));
    Value* other = sum_of(rewriter, before, mask.inside);
    if (other == nullptr) {
      TRY(other, number(rewriter, before, dtype, 0, "low"));
    }
    Node& where = rewriter.add(
        before, "Where", {mask.hidden, mask.when ? low : other, mask.when ? other : low}, "mask");
    rewriter.touch(where);
    made = made == nullptr ? where.output(0) : sum_of(rewriter, before, {where.output(0), made});
  }
  if (fit == MaskFit::kMarked) {
    TRY(made, without_blind_rows(rewriter, before, made));
  }
  made = with_rows(rewriter, before, with_two_or_four_axes(rewriter, before, made), q);
  return as_long_as(rewriter, before, mask, made, q, k);
}

}  // namespace tombolo::passes
