// Softmax and LogSoftmax of doubles along the last axis.

#include <algorithm>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/softmax_f64.h"

namespace tombolo {
namespace {

bool supports_softmax(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.opset < 13 || q.dtype(0) != DType::kFloat64 ||
      q.dims(0).empty() || element_count(q.dims(0)) < 1)
    return false;
  const int64_t axis = q.attributes.get_int("axis", -1);
  return axis == -1 || axis == static_cast<int64_t>(q.dims(0).size()) - 1;
}

template <bool kLogarithm>
Status run_softmax(KernelRun& run) {
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, DType::kFloat64, x.dims()));
  const int64_t n = x.dim(x.rank() - 1);
  const double* from = x.data<double>();
  double* to = y->data<double>();
  run.parallel_for(x.size() / n, std::max<int64_t>(1, 4096 / n), [&](int64_t begin, int64_t end) {
    softmax_rows(from + begin * n, to + begin * n, end - begin, n, kLogarithm);
  });
  return ok();
}

}  // namespace

KERNEL(softmax_f64) = {
    .name = "softmax_f64",
    .op = "Softmax",
    .supports = supports_softmax,
    .run = run_softmax<false>,
    .in_place = 1,
};
KERNEL(log_softmax_f64) = {
    .name = "log_softmax_f64",
    .op = "LogSoftmax",
    .supports = supports_softmax,
    .run = run_softmax<true>,
    .in_place = 1,
};

}  // namespace tombolo
