// For the runtime: products with matrices that are picked from constant ones, a matrix for each
// token, as exporters write a mixture of experts. GatherMatMul of ai.tombolo multiplies the rows of
// each matrix together, and copies none.
//   MatMul(a, Gather(W, i))                   = GatherMatMul(a, W, i)
//   MatMul(a, Transpose(Gather(W, i)))        = GatherMatMul<transB>(a, W, i)
//   MatMul(Gather(W, i), b), b of one column  = GatherMatMul<transB>(b', W, i)'
// GatherND with tuples of one index is Gather. Between may be a Cast of 16-bit floats.

#include "passes/attributes.h"
#include "passes/passes.h"
#include "passes/runtime_operators.h"

namespace tombolo::passes {
namespace {

class PickedProduct {
 public:
  PickedProduct(Rewriter& rewriter, Node& node) : rewriter_(rewriter), node_(node) {}

  bool rewrite() {
    if (!rewriter_.is(&node_, "MatMul") || node_.output(0) == nullptr) return false;
    Value *a = node_.input(0), *b = node_.input(1);
    if (rewriter_.rank(a) != 3 || rewriter_.rank(b) != 3 || rewriter_.dtype(a) != DType::kFloat32)
      return false;
    Picked picked;
    if (find(b, picked)) {
      rewriter_.supersede(*node_.output(0), *multiply(a, picked).output(0));
      return true;
    }
    if (!find(a, picked) || rewriter_.dim(b, -1) != 1) return false;
    // Of a column: the same numbers as a row.
    picked.turned = !picked.turned;
    Value* row = reshape(b, {0, 1, picked.depth()});
    Value* y = multiply(row, picked).output(0);
    rewriter_.supersede(*node_.output(0), *reshape(y, {0, picked.width(), 1}));
    return true;
  }

 private:
  struct Picked {
    Value *weights = nullptr, *picks = nullptr;
    bool tuples = false;  ///< picks are [.., 1]
    bool turned = false;
    std::vector<int64_t> dims;
    /// Of the matrices as the product reads them.
    int64_t depth() const { return dims[turned ? 2 : 1]; }
    int64_t width() const { return dims[turned ? 1 : 2]; }
  };

  bool find(Value* value, Picked& picked) const {
    const Node* node = made_here(value);
    bool wide = false;
    for (; node != nullptr; node = made_here(value)) {
      if (rewriter_.is(node, "Transpose") && !picked.turned) {
        const auto perm = AttributeReader(*node).get_ints("perm");
        const int64_t turned[] = {0, 2, 1};
        if (!std::equal(perm.begin(), perm.end(), std::begin(turned), std::end(turned)))
          return false;
        picked.turned = true;
      } else if (rewriter_.is(node, "Cast") && !wide) {
        wide = true;
      } else {
        break;
      }
      value = node->input(0);
    }
    if (node == nullptr) return false;
    const AttributeReader attributes(*node);
    picked.tuples = rewriter_.is(node, "GatherND");
    if (!(rewriter_.is(node, "Gather") && attributes.get_int("axis", 0) == 0) &&
        !(picked.tuples && attributes.get_int("batch_dims", 0) == 0))
      return false;
    picked.weights = node->input(0);
    picked.picks = node->input(1);
    const auto dims = rewriter_.dims(picked.weights);
    const DType dtype = rewriter_.dtype(picked.weights);
    if (!dims || dims->size() != 3 || !(wide ? is_short_float(dtype) : dtype == DType::kFloat32) ||
        !rewriter_.is_constant(picked.weights) || rewriter_.is_constant(picked.picks) ||
        rewriter_.rank(picked.picks) != (picked.tuples ? 2u : 1u) ||
        (picked.tuples && rewriter_.dim(picked.picks, 1) != 1))
      return false;
    picked.dims = *dims;
    return element_count(picked.dims) > 0;
  }

  /// What made `value`. Others may read it, too: what they get is copied, this product's is not.
  const Node* made_here(const Value* value) const {
    const Node* node = value->producer();
    return node != nullptr && &node->graph() == &node_.graph() ? node : nullptr;
  }

  Node& multiply(Value* a, const Picked& picked) {
    Value* picks = picked.tuples ? reshape(picked.picks, {-1}) : picked.picks;
    Node& product =
        rewriter_.add(node_, "GatherMatMul", {a, picked.weights, picks}, name(), 1, kOwn);
    if (picked.turned) product.set_int("transB", 1);
    rewriter_.touch(product);
    return product;
  }
  Value* reshape(Value* x, const std::vector<int64_t>& dims) {
    Node& made = rewriter_.add(
        node_, "Reshape", {x, rewriter_.ints_initializer(node_.graph(), dims, "shape")}, x->name());
    rewriter_.touch(made);
    return made.output(0);
  }
  Text name() const { return node_.output(0)->name(); }

  Rewriter& rewriter_;
  Node& node_;
};

}  // namespace

Result<size_t> gather_matmul(Rewriter& rewriter) {
  rewriter.refresh();
  size_t count = 0;
  rewriter.for_each([&](Graph& graph) {
    for (Node* node : graph.nodes())
      if (PickedProduct(rewriter, *node).rewrite()) ++count;
  });
  if (count != 0) CHECK_OK(remove_dead_code(rewriter));
  return count;
}

}  // namespace tombolo::passes
