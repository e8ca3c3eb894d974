// Inverse of com.microsoft, in double as the reference has it.

#include <algorithm>
#include <limits>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/math/inverse.h"

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
  const int64_t n = x.dim(x.rank() - 1), size = n * n, step = inverse_step(n);
  const T* from = x.data<T>();
  T* to = y->data<T>();
  run.parallel_for(x.size() / size, std::max<int64_t>(1, (1 << 15) / (size * n)),
                   [&](int64_t begin, int64_t end) {
                     std::vector<double> matrix(static_cast<size_t>(n * step)),
                         factors(static_cast<size_t>(inverse_room(n)));
                     std::vector<int64_t> order(static_cast<size_t>(n));
                     for (int64_t i = begin; i < end; ++i) {
                       for (int64_t row = 0; row < n; ++row)
                         std::copy_n(from + i * size + row * n, n, matrix.data() + row * step);
                       const bool regular = invert(n, matrix.data(), factors.data(), order.data());
                       T* out = to + i * size;
                       if (!regular) std::fill_n(out, size, std::numeric_limits<T>::infinity());
                       for (int64_t row = 0; regular && row < n; ++row, out += n)
                         for (int64_t j = 0; j < n; ++j)
                           out[j] = static_cast<T>(matrix[static_cast<size_t>(row * step + j)]);
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
