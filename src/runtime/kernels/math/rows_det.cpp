// Det of matrices that are large enough for vectors.

#include <algorithm>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/math/det.h"

namespace tombolo {
namespace {

bool supports_det(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.empty() || q.dims(0).size() < 2 ||
      (q.dtype(0) != DType::kFloat32 && q.dtype(0) != DType::kFloat64))
    return false;
  const auto dims = q.dims(0);
  constexpr int64_t kLeast = 8;
  return dims.back() == dims[dims.size() - 2] && dims.back() >= kLeast && element_count(dims) > 0;
}

struct DetState final : KernelState {
  int64_t n = 1, count = 1, tasks = 1;
};

Result<std::unique_ptr<KernelState>> prepare_det(const PrepareContext& q) {
  auto state = std::make_unique<DetState>();
  state->n = q.dims(0).back();
  state->count = element_count(q.dims(0)) / (state->n * state->n);
  // A matrix for each thread, and no more than there are.
  state->tasks = std::min<int64_t>(state->count, std::max(1, q.options.threads));
  state->scratch_bytes = static_cast<size_t>(state->tasks * state->n * state->n) * sizeof(double);
  return state;
}

Status run_det(KernelRun& run) {
  const auto& s = run.state<DetState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), x.dims().span().first(x.rank() - 2)));
  const int64_t size = s.n * s.n;
  const auto all = [&]<typename T>(const T* from, T* to) {
    run.parallel_for(s.tasks, 1, [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task) {
        double* matrix = reinterpret_cast<double*>(run.scratch()) + task * size;
        for (int64_t i = s.count * task / s.tasks; i < s.count * (task + 1) / s.tasks; ++i) {
          std::copy_n(from + i * size, size, matrix);
          to[i] = static_cast<T>(determinant_f64(matrix, s.n));
        }
      }
    });
    return ok();
  };
  if (x.dtype() == DType::kFloat32) return all(x.data<float>(), y->data<float>());
  return all(x.data<double>(), y->data<double>());
}

}  // namespace

KERNEL(det) = {
    .name = "det",
    .op = "Det",
    .supports = supports_det,
    .prepare = prepare_det,
    .run = run_det,
};

}  // namespace tombolo
