// Relu of floats: the smallest whole example of a kernel row.

#include <algorithm>

#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

bool supports_relu(const KernelQuery& query) { return query.dtype(0) == DType::kFloat32; }

Status run_relu(KernelRun& run) {
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), x.dims()));
  const float* in = x.data<float>();
  float* out = y->data<float>();
  run.parallel_for(x.size(), 1 << 15, [=](int64_t begin, int64_t end) {
    // NaN passes, as in the reference: the comparison is false for it.
    for (int64_t i = begin; i < end; ++i) out[i] = in[i] < 0 ? 0 : in[i];
  });
  return ok();
}

}  // namespace

KERNEL(relu_f32) = {
    .name = "relu_f32",
    .op = "Relu",
    .supports = supports_relu,
    .run = run_relu,
    .in_place = 1,
};

}  // namespace tombolo
