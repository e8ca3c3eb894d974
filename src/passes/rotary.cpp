// x cos + rotate(x) sin, where rotate(x) is [-x2, x1] of the two halves of the last axis, becomes
// RotaryEmbedding. The operator takes one half of cos and sin: both halves must provably be equal,
// as they are when exporters write Concat(f, f).

#include <cmath>

#include "passes/evaluate.h"
#include "passes/passes.h"

namespace tombolo::passes {
namespace {

/// Which half of x's last axis `value` is: 0 or 1; nothing for anything else.
std::optional<int> half_of(const Rewriter& rewriter, const Value* value, const Value* x,
                           int64_t size) {
  const Node* node = value != nullptr ? value->producer() : nullptr;
  if (node == nullptr || node->input(0) != x) return std::nullopt;
  if (rewriter.is(node, "Split")) {
    const int64_t axis = AttributeReader(*node).get_int("axis", 0);
    if (node->outputs().size() != 2 || (axis != -1 && axis != 3)) return std::nullopt;
    if (rewriter.dim(node->output(0), -1) != size / 2) return std::nullopt;
    return static_cast<int>(value->producer_index());
  }
  if (!rewriter.is(node, "Slice")) return std::nullopt;
  const auto starts = rewriter.ints(node->input(1)), ends = rewriter.ints(node->input(2));
  const auto axes = rewriter.ints(node->input(3));
  if (!starts || !ends || !axes || starts->size() != 1 || ends->size() != 1 || axes->size() != 1 ||
      ((*axes)[0] != -1 && (*axes)[0] != 3))
    return std::nullopt;
  if (node->input(4) != nullptr) {
    const auto steps = rewriter.ints(node->input(4));
    if (!steps || steps->size() != 1 || (*steps)[0] != 1) return std::nullopt;
  }
  const auto clamp = [&](int64_t at) {
    if (at < 0) at += size;
    return std::min(std::max<int64_t>(at, 0), size);
  };
  const int64_t begin = clamp((*starts)[0]), end = clamp((*ends)[0]);
  if (begin == 0 && end == size / 2) return 0;
  if (begin == size / 2 && end == size) return 1;
  return std::nullopt;
}

/// [-x2, x1]
bool is_rotated(const Rewriter& rewriter, const Value* value, const Value* x, int64_t size) {
  const Node* concat = rewriter.producer(value, "Concat");
  if (concat == nullptr || concat->inputs().size() != 2 || !Rewriter::single_use(value))
    return false;
  const int64_t axis = AttributeReader(*concat).get_int("axis", 0);
  const Node* neg = rewriter.producer(concat->input(0), "Neg");
  return (axis == -1 || axis == 3) && neg != nullptr &&
         half_of(rewriter, neg->input(0), x, size) == 1 &&
         half_of(rewriter, concat->input(1), x, size) == 0;
}

/// Both halves of the last axis hold the same, whatever the inputs.
bool halves_equal(const Rewriter& rewriter, const Value* value, int depth = 0) {
  if (value == nullptr || depth > 16) return false;
  if (rewriter.is_constant(value)) {
    const auto dims = rewriter.dims(value);
    if (!dims || dims->empty() || dims->back() % 2 != 0 || element_count(*dims) > (1 << 24))
      return false;
    const Tensor* tensor = rewriter.constant(value);
    if (tensor == nullptr || !is_float(tensor->dtype())) return false;
    const int64_t half = dims->back() / 2;
    for (int64_t row = 0; row < tensor->size(); row += 2 * half)
      for (int64_t i = 0; i < half; ++i)
        if (!(tensor->get_double(row + i) == tensor->get_double(row + half + i))) return false;
    return true;
  }
  const Node* node = value->producer();
  if (node == nullptr || !rewriter.is(node, node->op_type())) return false;
  const Text op = node->op_type();
  if (op == "Concat")
    return node->inputs().size() == 2 && node->input(0) == node->input(1) && rewriter.rank(value) &&
           (AttributeReader(*node).get_int("axis", 0) == -1 ||
            AttributeReader(*node).get_int("axis", 0) ==
                static_cast<int64_t>(*rewriter.rank(value)) - 1);
  if (op == "Cos" || op == "Sin" || op == "Cast" || op == "Identity" || op == "Neg")
    return halves_equal(rewriter, node->input(0), depth + 1);
  if (op == "Mul" || op == "Div") {
    for (const size_t side : {size_t(0), size_t(1)})
      if (rewriter.scalar(node->input(1 - side)))
        return halves_equal(rewriter, node->input(side), depth + 1);
    return false;
  }
  if (op == "Unsqueeze" || op == "Squeeze" || op == "Reshape" || op == "Slice" || op == "Gather" ||
      op == "Expand") {
    // The last axis must be left as it is.
    const auto before = rewriter.dim(node->input(0), -1), after = rewriter.dim(value, -1);
    if (!before || before != after) return false;
    if (op == "Slice") {
      const auto axes = rewriter.ints(node->input(3));
      const auto rank = rewriter.rank(value);
      if (!axes || !rank) return false;
      for (const int64_t axis : *axes)
        if (axis == -1 || axis == static_cast<int64_t>(*rank) - 1) return false;
    }
    if (op == "Gather" && AttributeReader(*node).get_int("axis", 0) != 0) return false;
    if (op == "Gather" && rewriter.rank(node->input(0)).value_or(0) < 2) return false;
    return halves_equal(rewriter, node->input(0), depth + 1);
  }
  return false;
}

/// cos or sin as the operator wants it: [B, S, D / 2].
Value* cache(Rewriter& rewriter, Node& before, Value* value, Value* x) {
  const SymShape from = *rewriter.shape(value), to = *rewriter.shape(x);
  const int64_t half = to[3].value() / 2;
  Graph& graph = before.graph();
  const int64_t head_axis[] = {1}, starts[] = {0}, ends[] = {half}, axes[] = {2};
  Value* flat = nullptr;
  if (from.size() == 4) {
    flat = rewriter
               .add(before, "Squeeze", {value, rewriter.ints_initializer(graph, head_axis, "axes")},
                    "cache")
               .output(0);
  } else if (from.size() == 3) {
    flat = value;  // [1, S, D] beside [B, N, S, D]: the axis of length 1 is the batch's
  } else {
    const int64_t batch_axis[] = {0};
    flat = rewriter
               .add(before, "Unsqueeze",
                    {value, rewriter.ints_initializer(graph, batch_axis, "axes")}, "cache")
               .output(0);
  }
  Value* sliced = rewriter
                      .add(before, "Slice",
                           {flat, rewriter.ints_initializer(graph, starts, "starts"),
                            rewriter.ints_initializer(graph, ends, "ends"),
                            rewriter.ints_initializer(graph, axes, "axes")},
                           "cache")
                      .output(0);
  const SymShape* have = rewriter.shape(sliced);
  if (have != nullptr && (*have)[0].equals(to[0])) return sliced;
  // One cache for the whole batch is repeated.
  Value* shape = nullptr;
  if (to[0].is_value()) {
    const int64_t sizes[] = {to[0].value(), 1, 1};
    shape = rewriter.ints_initializer(graph, sizes, "shape");
  } else {
    Value* batch = rewriter.axis_length(before, x, 0, "batch");
    const int64_t ones[] = {1, 1};
    Node& joined = rewriter.add(before, "Concat",
                                {batch, rewriter.ints_initializer(graph, ones, "ones")}, "shape");
    joined.set_int("axis", 0);
    rewriter.touch(joined);
    shape = joined.output(0);
  }
  return rewriter.add(before, "Expand", {sliced, shape}, "cache").output(0);
}

/// A table cut to so many rows: shorter, the nodes fail.
bool is_cut_to_rows(const SymDim& rows, const SymDim& wanted) {
  const auto table = rows.upper_bound();
  return table && *table >= 2 && rows.equals(min(wanted, SymDim(*table)));
}

/// The one of a table, or what GPT-NeoX cuts of it by mistake: none where there are no rows either.
bool is_one_of_table(const SymDim& dim, const SymDim& rows) {
  return is_one(dim) || dim.equals(min(SymDim(1), rows));
}

/// cos and sin broadcast over the heads, and perhaps over the batch.
bool cache_fits(const Rewriter& rewriter, const Value* value, const SymShape& x) {
  const SymShape* shape = rewriter.shape(value);
  if (shape == nullptr || shape->size() < 2 || shape->size() > 4) return false;
  const size_t rank = shape->size();
  const SymDim& rows = (*shape)[rank - 2];
  if (!(*shape)[rank - 1].equals(x[3]) || !(rows.equals(x[2]) || is_cut_to_rows(rows, x[2])))
    return false;
  if (rank >= 3 && !is_one((*shape)[rank - 3])) return false;
  if (rank == 4 && !is_one_of_table((*shape)[0], x[2]) && !(*shape)[0].equals(x[0])) return false;
  return halves_equal(rewriter, value);
}

size_t to_rotary(Rewriter& rewriter, Node& add) {
  for (const size_t side : {size_t(0), size_t(1)}) {
    Node* plain = rewriter.producer(add.input(side), "Mul");
    Node* turned = rewriter.producer(add.input(1 - side), "Mul");
    if (plain == nullptr || turned == nullptr || plain == turned ||
        &plain->graph() != &add.graph() || &turned->graph() != &add.graph() ||
        !Rewriter::single_use(plain->output(0)) || !Rewriter::single_use(turned->output(0)))
      continue;
    for (const size_t x_side : {size_t(0), size_t(1)}) {
      Value* x = plain->input(x_side);
      Value* cosine = plain->input(1 - x_side);
      const SymShape* shape = rewriter.shape(x);
      if (shape == nullptr || shape->size() != 4 || !(*shape)[3].is_value() ||
          (*shape)[3].value() < 2 || (*shape)[3].value() % 2 != 0)
        continue;
      const DType dtype = rewriter.dtype(x);
      if (dtype != DType::kFloat32 && dtype != DType::kFloat16 && dtype != DType::kBFloat16)
        continue;
      for (const size_t turned_side : {size_t(0), size_t(1)}) {
        if (!is_rotated(rewriter, turned->input(turned_side), x, (*shape)[3].value())) continue;
        Value* sine = turned->input(1 - turned_side);
        if (rewriter.dtype(cosine) != dtype || rewriter.dtype(sine) != dtype ||
            !cache_fits(rewriter, cosine, *shape) || !cache_fits(rewriter, sine, *shape))
          return 0;
        Value* cosines = cache(rewriter, add, cosine, x);
        Value* sines = cache(rewriter, add, sine, x);
        Node& rotary =
            rewriter.add(add, "RotaryEmbedding", {x, cosines, sines}, add.output(0)->name());
        rewriter.supersede(*add.output(0), *rotary.output(0));
        return 1;
      }
    }
  }
  return 0;
}

}  // namespace

Result<size_t> recognise_rotary(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  if (rewriter.limits.opset_ceiling < 23) return count;
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes())
      if (rewriter.is(node, "Add") && node->output(0) != nullptr)
        count += to_rotary(rewriter, *node);
  });
  return count;
}

}  // namespace tombolo::passes
