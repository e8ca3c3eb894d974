#include "runtime/kernels/matmul/product_axes.h"

#include <algorithm>
#include <utility>

namespace tombolo {
namespace {

/// Axes with the elements from one index to the next.
struct SteppedAxes {
  Dims dims;
  std::vector<int64_t> steps;

  explicit SteppedAxes(const Dims& of) : dims(of), steps(of.size(), 1) {
    for (uint32_t i = static_cast<uint32_t>(dims.size()); i-- > 1;)
      steps[i - 1] = steps[i] * dims[i];
  }
  uint32_t rank() const { return static_cast<uint32_t>(steps.size()); }
  /// As the graph orders them. False where `perm` is none of these axes.
  bool order(std::span<const int64_t> perm) {
    if (perm.empty()) return true;
    if (perm.size() != steps.size()) return false;
    const SteppedAxes old = *this;
    std::vector<bool> seen(perm.size());
    for (uint32_t i = 0; i < rank(); ++i) {
      if (perm[i] < 0 || perm[i] >= static_cast<int64_t>(rank())) return false;
      const auto from = static_cast<uint32_t>(perm[i]);
      if (seen[from]) return false;
      seen[from] = true;
      dims[i] = old.dims[from];
      steps[i] = old.steps[from];
    }
    return true;
  }
  void turn() {
    std::swap(dims[rank() - 1], dims[rank() - 2]);
    std::swap(steps[rank() - 1], steps[rank() - 2]);
  }
  int64_t rows() const { return dims[rank() - 2]; }
  int64_t columns() const { return dims[rank() - 1]; }
  int64_t row_step() const { return steps[rank() - 2]; }
  int64_t column_step() const { return steps[rank() - 1]; }
};

/// An axis of the batch, with the steps of the three matrices.
struct BatchAxis {
  int64_t length, a, b, c;
};

/// The axes of the batch to `y`. False where lengths do not fit.
bool batch_lengths(const SteppedAxes& a, const SteppedAxes& b, Dims& y) {
  const uint32_t rank = std::max(a.rank(), b.rank()) - 2;
  for (uint32_t i = 0; i < rank; ++i) {
    const int64_t da = i + a.rank() >= rank + 2 ? a.dims[i + a.rank() - rank - 2] : 1;
    const int64_t db = i + b.rank() >= rank + 2 ? b.dims[i + b.rank() - rank - 2] : 1;
    if (da != db && da != 1 && db != 1) return false;
    y.push_back(da == 1 ? db : da);
  }
  return true;
}

/// The step along axis `i` of a batch of `rank` axes: 0 where the side has one matrix for all.
int64_t step_of(const SteppedAxes& side, uint32_t i, uint32_t rank) {
  if (i + side.rank() < rank + 2) return 0;
  const uint32_t at = i + side.rank() - rank - 2;
  return side.dims[at] == 1 ? 0 : side.steps[at];
}

}  // namespace

std::optional<ProductAxes> product_axes(const KernelQuery& q, bool trans_a, bool trans_b) {
  Dims dims_a(q.dims(0)), dims_b(q.dims(1));
  if (dims_a.empty() || dims_b.empty()) return std::nullopt;
  const bool vector_a = dims_a.size() == 1, vector_b = dims_b.size() == 1;
  const auto perm_a = q.attributes.get_ints("perm_a"), perm_b = q.attributes.get_ints("perm_b"),
             perm_y = q.attributes.get_ints("perm_y");
  const bool ordered = !perm_a.empty() || !perm_b.empty() || !perm_y.empty();
  if ((vector_a && trans_a) || (vector_b && trans_b) || ((vector_a || vector_b) && ordered))
    return std::nullopt;
  if (vector_a) dims_a = {1, dims_a[0]};
  if (vector_b) dims_b = {dims_b[0], 1};
  SteppedAxes a(dims_a), b(dims_b);
  if (!a.order(perm_a) || !b.order(perm_b)) return std::nullopt;
  if (trans_a) a.turn();
  if (trans_b) b.turn();
  ProductAxes p;
  p.m = a.rows();
  p.k = a.columns();
  p.n = b.columns();
  if (b.rows() != p.k) return std::nullopt;
  Dims product;
  if (!batch_lengths(a, b, product)) return std::nullopt;
  const auto rank = static_cast<uint32_t>(product.size());
  const int64_t batch = element_count(product);
  if (batch < 0 || batch > 1 << 20) return std::nullopt;
  p.matrices = element_count(std::span(b.dims.span()).first(b.rank() - 2));
  p.b_shared = p.matrices == 1;
  product.push_back(p.m);
  product.push_back(p.n);

  // The result as it lies in memory, then its axes in the order of `product`.
  SteppedAxes c(product);
  p.output = product;
  if (!perm_y.empty()) {
    if (!c.order(perm_y)) return std::nullopt;
    p.output = c.dims;
    std::vector<int64_t> back(perm_y.size());
    for (size_t i = 0; i < back.size(); ++i)
      back[static_cast<size_t>(perm_y[i])] = static_cast<int64_t>(i);
    c = SteppedAxes(p.output);
    c.order(back);
  }
  if (vector_b) p.output.pop_back();
  if (vector_a) p.output.erase(rank);

  if (p.k == 1 || a.column_step() == 1) {
    p.lda = a.row_step();
  } else if (p.m == 1 || a.row_step() == 1) {
    p.trans_a = true;
    p.lda = a.column_step();
  } else {
    return std::nullopt;
  }
  if (p.n == 1) {  // one column lies as one row does
    p.trans_b = p.k == 1 || b.row_step() == 1;
    p.ldb = p.trans_b ? p.k : b.row_step();
  } else if (b.column_step() == 1) {
    p.ldb = b.row_step();
  } else if (p.k == 1 || b.row_step() == 1) {
    p.trans_b = true;
    p.ldb = b.column_step();
  } else {
    return std::nullopt;
  }
  if (p.n > 1 && c.column_step() != 1) return std::nullopt;
  p.ldc = c.row_step();

  std::vector<BatchAxis> axes;
  for (uint32_t i = 0; i < rank; ++i)
    if (product[i] > 1)
      axes.push_back({product[i], step_of(a, i, rank), step_of(b, i, rank), c.steps[i]});
  std::stable_partition(axes.begin(), axes.end(), [](const BatchAxis& x) { return x.b != 0; });
  // One B for rows that lie as far apart as those of one product: more rows.
  for (; !axes.empty() && axes.back().b == 0 && !p.trans_a; axes.pop_back()) {
    const BatchAxis& last = axes.back();
    if (p.m == 1 && last.a != 0) {
      p.lda = last.a;
      p.ldc = last.c;
    } else if (last.a != p.m * p.lda || last.c != p.m * p.ldc) {
      break;
    }
    p.m *= last.length;
  }
  int64_t count = 1;
  for (const BatchAxis& axis : axes) count *= axis.length;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, at_a = 0, at_b = 0, at_c = 0;
    for (size_t j = axes.size(); j-- > 0; rest /= axes[j].length) {
      const int64_t at = rest % axes[j].length;
      at_a += at * axes[j].a;
      at_b += at * axes[j].b;
      at_c += at * axes[j].c;
    }
    p.a_at.push_back(at_a);
    p.b_at.push_back(at_b);
    p.c_at.push_back(at_c);
  }
  return p;
}

}  // namespace tombolo
