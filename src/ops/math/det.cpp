#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/infer_helpers.h"
#include "ops/kernels/elementwise.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {
Status infer_det(InferContext& context) {
  const SymShape* x = context.shape(0);
  if (x == nullptr) return ok();
  if (x->size() < 2)
    return context.error("X must hold matrices, but its shape is " + shape_to_string(*x));
  CHECK_OK(unify_dims(context, (*x)[x->size() - 2], x->back(), "rows against columns"));
  set_shape(context, 0, SymShape(x->begin(), x->end() - 2));
  return ok();
}
/// By elimination with the largest pivot of each column, in place.
double determinant(std::vector<double>& a, int64_t n) {
  double result = 1;
  for (int64_t i = 0; i < n; ++i) {
    int64_t pivot = i;
    for (int64_t r = i + 1; r < n; ++r)
      if (std::fabs(a[static_cast<size_t>(r * n + i)]) >
          std::fabs(a[static_cast<size_t>(pivot * n + i)]))
        pivot = r;
    const double head = a[static_cast<size_t>(pivot * n + i)];
    if (head == 0) return 0;
    if (pivot != i) {
      result = -result;
      for (int64_t c = i; c < n; ++c)
        std::swap(a[static_cast<size_t>(i * n + c)], a[static_cast<size_t>(pivot * n + c)]);
    }
    result *= head;
    const double* __restrict top = a.data() + i * n + i + 1;
    for (int64_t r = i + 1; r < n; ++r) {
      const double factor = a[static_cast<size_t>(r * n + i)] / head;
      double* __restrict row = a.data() + r * n + i + 1;
      for (int64_t c = 0; c < n - i - 1; ++c) row[c] -= factor * top[c];
    }
  }
  return result;
}

Status run_det(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  if (x->rank() < 2 || x->dim(x->rank() - 1) != x->dim(x->rank() - 2) || !is_float(x->dtype()))
    return context.error("square matrices of floats are needed, not " + to_string(*x));
  const int64_t n = x->dim(x->rank() - 1);
  TRY(Tensor * out, context.output(0, x->dtype(), x->dims().span().first(x->rank() - 2)));
  const int64_t square[] = {n, n};
  CHECK_OK(context.allocate(DType::kFloat64, square));  // counts what a matrix needs
  context.parallel_for(out->size(),
                       std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, n * n * n)),
                       [&](int64_t begin, int64_t end) {
                         std::vector<double> matrix(static_cast<size_t>(n * n));
                         for (int64_t i = begin; i < end; ++i) {
                           load_doubles(*x, i * n * n, n * n, matrix.data());
                           out->set_double(i, determinant(matrix, n));
                         }
                       });
  return ok();
}

}  // namespace

OPERATOR(Det) = {
    .name = "Det",
    .doc = "determinant of the matrices in the last two axes",
    .versions = {11, 22},
    .inputs = {{"X", "T"}},
    .outputs = {{"Y", "T"}},
    .types = {{"T", {{11, kFloats}, {22, kBf16}}}},
    .infer = infer_det,
    .reference = run_det,
};

}  // namespace tombolo::ops
