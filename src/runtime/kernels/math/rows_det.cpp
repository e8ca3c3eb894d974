// Det, in double.

#include <algorithm>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/math/det.h"
#include "runtime/kernels/math/small_matrices.h"

namespace tombolo {
namespace {

bool supports_det(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.empty() || q.dims(0).size() < 2 ||
      (q.dtype(0) != DType::kFloat32 && q.dtype(0) != DType::kFloat64))
    return false;
  const auto dims = q.dims(0);
  return dims.back() == dims[dims.size() - 2] && element_count(dims) > 0;
}

struct DetState final : KernelState {
  int64_t n = 1, count = 1, tasks = 1;
  int64_t together = 1;  ///< matrices that go at a time
};

Result<std::unique_ptr<KernelState>> prepare_det(const PrepareContext& q) {
  auto state = std::make_unique<DetState>();
  state->n = q.dims(0).back();
  state->count = element_count(q.dims(0)) / (state->n * state->n);
  state->together = state->n <= kSmallMatrix ? small_matrices_together() : 1;
  if (2 * state->count < state->together) state->together = 1;
  const int64_t blocks = (state->count + state->together - 1) / state->together;
  // Memory for each thread, and no more than there are blocks.
  state->tasks = std::min<int64_t>(blocks, std::max(1, q.options.threads));
  const int64_t room = state->together > 1 ? small_matrices_room(state->n) : state->n * state->n;
  state->scratch_bytes = static_cast<size_t>(state->tasks * room) * sizeof(double);
  return state;
}

Status run_det(KernelRun& run) {
  const auto& s = run.state<DetState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), x.dims().span().first(x.rank() - 2)));
  const int64_t size = s.n * s.n, blocks = (s.count + s.together - 1) / s.together;
  const int64_t room = s.together > 1 ? small_matrices_room(s.n) : size;
  const auto all = [&]<typename T>(const T* from, T* to) {
    const auto task_of = [&](int64_t task) {
      double* matrix = reinterpret_cast<double*>(run.scratch()) + task * room;
      const int64_t first = blocks * task / s.tasks * s.together;
      const int64_t last = std::min(s.count, blocks * (task + 1) / s.tasks * s.together);
      for (int64_t i = first; i < last; i += s.together) {
        if (s.together > 1) {
          small_determinants(s.n, std::min(s.together, last - i), from + i * size, to + i, matrix);
          continue;
        }
        std::copy_n(from + i * size, size, matrix);
        to[i] = static_cast<T>(determinant_f64(matrix, s.n));
      }
    };
    // Less than this is done before another thread has begun.
    const int64_t grain = s.count * size * s.n < int64_t{1} << 16 ? s.tasks : 1;
    run.parallel_for(s.tasks, grain, [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task) task_of(task);
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
