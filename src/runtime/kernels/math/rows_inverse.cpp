// Inverse of com.microsoft, in double as the reference has it.

#include <algorithm>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/math/inverse.h"
#include "runtime/kernels/math/small_matrices.h"
#include "runtime/kernels/matmul/gemm.h"

namespace tombolo {
namespace {

bool supports_inverse(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != 1 ||
      (q.dtype(0) != DType::kFloat32 && q.dtype(0) != DType::kFloat64))
    return false;
  const auto dims = q.dims(0);
  // Larger matrices count their memory: the reference.
  return dims.size() >= 2 && dims.back() == dims[dims.size() - 2] && dims.back() >= 1 &&
         dims.back() <= 1024;
}

template <typename T>
Status do_inverse(KernelRun& run) {
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), x.dims()));
  const int64_t n = x.dim(x.rank() - 1), size = n * n;
  const int64_t matrices = x.size() / size;
  int64_t together = n < kSmallMatrix ? small_matrices_together() : 1;
  const bool in_lanes = together > 1 && 2 * matrices >= together;
  if (!in_lanes) together = inverse_together(n);
  const size_t bytes =
      in_lanes ? static_cast<size_t>(small_matrices_room(n)) * sizeof(double) : inverse_bytes(n);
  const T* from = x.data<T>();
  T* to = y->data<T>();
  run.parallel_for(
      (matrices + together - 1) / together, std::max<int64_t>(1, (1 << 15) / (size * n * together)),
      [&](int64_t begin, int64_t end) {
        float* const room = thread_floats(1, bytes / sizeof(float));
        for (int64_t i = begin * together; i < std::min(matrices, end * together); i += together) {
          const int64_t count = std::min(together, matrices - i);
          if (in_lanes)
            small_inverses(n, count, from + i * size, to + i * size,
                           reinterpret_cast<double*>(room));
          else
            invert_matrices(n, count, from + i * size, to + i * size,
                            reinterpret_cast<std::byte*>(room));
        }
      });
  return ok();
}

Status run_inverse(KernelRun& run) {
  return run.input(0).dtype() == DType::kFloat32 ? do_inverse<float>(run) : do_inverse<double>(run);
}

}  // namespace

KERNEL(inverse) = {
    .name = "inverse",
    .op = "Inverse",
    .domain = "com.microsoft",
    .supports = supports_inverse,
    .run = run_inverse,
    .in_place = 1,
};

}  // namespace tombolo
