// Softmax and LogSoftmax of doubles along any axis.

#include <algorithm>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/norm/softmax_f64.h"

namespace tombolo {
namespace {

struct WideSoftmaxState final : KernelState {
  int64_t outer = 1, n = 1, inner = 1;
};

bool plan_softmax(const KernelQuery& q, WideSoftmaxState& s) {
  if (active_isa() == Isa::kScalar || q.opset < 13 || q.dtype(0) != DType::kFloat64 ||
      element_count(q.dims(0)) < 1)
    return false;
  const auto rank = static_cast<int64_t>(q.dims(0).size());
  int64_t axis = q.attributes.get_int("axis", -1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return false;
  s.outer = element_count(q.dims(0).first(static_cast<size_t>(axis)));
  s.n = q.dims(0)[static_cast<size_t>(axis)];
  s.inner = element_count(q.dims(0).subspan(static_cast<size_t>(axis) + 1));
  return true;
}
bool supports_wide_softmax(const KernelQuery& q) {
  WideSoftmaxState state;
  return plan_softmax(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_wide_softmax(const PrepareContext& q) {
  auto state = std::make_unique<WideSoftmaxState>();
  plan_softmax(q, *state);
  return state;
}

template <bool kLogarithm>
Status run_wide_softmax(KernelRun& run) {
  const auto& s = run.state<WideSoftmaxState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, DType::kFloat64, x.dims()));
  const double* from = x.data<double>();
  double* to = y->data<double>();
  if (s.inner == 1) {
    run.parallel_for(s.outer, std::max<int64_t>(1, 4096 / s.n), [&](int64_t begin, int64_t end) {
      softmax_rows(from + begin * s.n, to + begin * s.n, end - begin, s.n, kLogarithm);
    });
    return ok();
  }
  const int64_t strips = (s.inner + kSoftmaxDoubles - 1) / kSoftmaxDoubles;
  run.parallel_for(s.outer * strips, std::max<int64_t>(1, 4096 / (s.n * kSoftmaxDoubles)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t task = begin; task < end; ++task) {
                       const int64_t column = task % strips * kSoftmaxDoubles;
                       const int64_t at = task / strips * s.n * s.inner + column;
                       softmax_columns(from + at, to + at, s.n, s.inner,
                                       std::min(kSoftmaxDoubles, s.inner - column), kLogarithm);
                     }
                   });
  return ok();
}

}  // namespace

KERNEL(softmax_f64) = {
    .name = "softmax_f64",
    .op = "Softmax",
    .supports = supports_wide_softmax,
    .prepare = prepare_wide_softmax,
    .run = run_wide_softmax<false>,
    .in_place = 1,
};
KERNEL(log_softmax_f64) = {
    .name = "log_softmax_f64",
    .op = "LogSoftmax",
    .supports = supports_wide_softmax,
    .prepare = prepare_wide_softmax,
    .run = run_wide_softmax<true>,
    .in_place = 1,
};

}  // namespace tombolo
