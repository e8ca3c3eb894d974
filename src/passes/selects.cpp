// TensorFlow's select as tf2onnx writes it for types and shapes that early runtimes' Where lacked:
//   Mul(x, Cast(b)) + Mul(y, Cast(Not(b))) = Where(b, x, y)
// also where b and y are constants and the products with them are folded. An infinity or NaN that
// is not selected made the sum NaN; no framework's select means that.

#include <optional>

#include "passes/each_node.h"
#include "passes/evaluate.h"
#include "passes/passes.h"

namespace tombolo::passes {
namespace {

/// A product with a condition: the condition, whether it is turned, and what is selected.
struct Selected {
  Value* condition;
  bool turned;
  Value* value;
};

/// The product that alone makes `sum`'s input.
Node* product_of(const Rewriter& rewriter, const Node& sum, size_t side) {
  Node* mul = rewriter.producer(sum.input(side), "Mul");
  return mul != nullptr && Rewriter::single_use(mul->output(0)) && &mul->graph() == &sum.graph()
             ? mul
             : nullptr;
}

std::optional<Selected> selected_by(const Rewriter& rewriter, const Node& mul, size_t side) {
  const Node* cast = rewriter.producer(mul.input(side), "Cast");
  if (cast == nullptr || mul.input(1 - side) == nullptr) return std::nullopt;
  Selected found{cast->input(0), false, mul.input(1 - side)};
  if (rewriter.dtype(found.condition) != DType::kBool) return std::nullopt;
  for (const Node* turn = rewriter.producer(found.condition, "Not"); turn != nullptr;
       turn = rewriter.producer(found.condition, "Not")) {
    found.condition = turn->input(0);
    found.turned = !found.turned;
    if (found.condition == nullptr) return std::nullopt;
  }
  return found;
}

void become_where(Rewriter& rewriter, Node& sum, Value* condition, Value* yes, Value* no) {
  Node& where = rewriter.add(sum, "Where", {condition, yes, no}, sum.output(0)->name());
  rewriter.touch(where);
  rewriter.supersede(*sum.output(0), *where.output(0));
}

bool computed_select(Rewriter& rewriter, Node& sum) {
  const Node* first = product_of(rewriter, sum, 0);
  const Node* second = product_of(rewriter, sum, 1);
  if (first == nullptr || second == nullptr || first == second) return false;
  for (const size_t i : {size_t(0), size_t(1)})
    for (const size_t j : {size_t(0), size_t(1)}) {
      const auto a = selected_by(rewriter, *first, i), b = selected_by(rewriter, *second, j);
      if (!a || !b || a->condition != b->condition || a->turned == b->turned) continue;
      become_where(rewriter, sum, a->condition, a->turned ? b->value : a->value,
                   a->turned ? a->value : b->value);
      return true;
    }
  return false;
}

constexpr int64_t kMostElements = 1 << 22;

const Tensor* numbers(const Rewriter& rewriter, const Value* value) {
  const auto dims = rewriter.is_constant(value) ? rewriter.dims(value) : std::nullopt;
  if (!dims || element_count(*dims) > kMostElements) return nullptr;
  const Tensor* tensor = rewriter.constant(value);
  const bool fits = tensor != nullptr && !tensor->is_string() && !is_complex(tensor->dtype()) &&
                    tensor->dtype() != DType::kBool;
  return fits ? tensor : nullptr;
}

bool all_zero(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.size(); ++i)
    if (tensor.get_double(i) != 0) return false;
  return true;
}

/// Zeros and ones, of each at least one.
bool is_mask(const Tensor& tensor) {
  bool zero = false, one = false;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double x = tensor.get_double(i);
    if (x != 0 && x != 1) return false;
    (x == 0 ? zero : one) = true;
  }
  return zero && one;
}

/// The float that `tensor` holds wherever `mask`, of the same shape, is zero, if that is one alone.
std::optional<double> only_number(const Tensor& mask, const Tensor& tensor) {
  if (!is_float(tensor.dtype()) || Dims(mask.dims()) != Dims(tensor.dims())) return std::nullopt;
  std::optional<double> only;
  for (int64_t i = 0; i < mask.size(); ++i) {
    if (mask.get_double(i) != 0) continue;
    if (only && *only != tensor.get_double(i)) return std::nullopt;
    only = tensor.get_double(i);
  }
  return only;
}

Result<bool> constant_select(Rewriter& rewriter, Node& sum) {
  for (const size_t side : {size_t(0), size_t(1)}) {
    const Node* mul = product_of(rewriter, sum, side);
    const Tensor* other = mul != nullptr ? numbers(rewriter, sum.input(1 - side)) : nullptr;
    if (other == nullptr || all_zero(*other)) continue;
    for (const size_t at : {size_t(0), size_t(1)}) {
      const Tensor* mask = numbers(rewriter, mul->input(at));
      if (mask == nullptr || mul->input(1 - at) == nullptr || !is_mask(*mask)) continue;
      TRY(const Tensor one, filled(mask->dtype(), {}, 1));
      TRY(const Tensor zero, filled(other->dtype(), {}, 0));
      // Types and shapes that do not fit are the graph's own mistake: the run names it.
      const auto shown = compute("Equal", {*mask, one});
      if (!shown) return false;
      const auto beside = compute("Where", {*shown, *other, zero});
      if (!beside || !all_zero(*beside)) continue;
      Tensor low = *other;
      if (const auto only = only_number(*mask, *other)) {
        TRY(low, filled(other->dtype(), {}, *only));
      }
      Graph& graph = sum.graph();
      become_where(rewriter, sum, rewriter.initializer(graph, *shown, "condition"),
                   mul->input(1 - at), rewriter.initializer(graph, low, "low"));
      return true;
    }
  }
  return false;
}

Result<bool> to_where(Rewriter& rewriter, Node& node) {
  if (!rewriter.is(&node, "Add")) return false;
  if (computed_select(rewriter, node)) return true;
  return constant_select(rewriter, node);
}

}  // namespace

Result<size_t> recognise_selects(Rewriter& rewriter) {
  return change_each_node(rewriter, to_where);
}

}  // namespace tombolo::passes
