// LayerNormalization, RMSNormalization and SimplifiedLayerNormalization of doubles.

#include <algorithm>
#include <cmath>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/norm/moments.h"
#include "runtime/kernels/norm/norm_f64.h"

namespace tombolo {
namespace {

struct WideNormState final : KernelState {
  int64_t rows = 1, length = 1;
  double epsilon = 1e-5;
};

bool read_axis(const KernelQuery& q, size_t& axis) {
  if (active_isa() == Isa::kScalar || q.inputs.empty() || q.dtype(0) != DType::kFloat64 ||
      element_count(q.dims(0)) < 1)
    return false;
  const auto rank = static_cast<int64_t>(q.dims(0).size());
  int64_t at = q.attributes.get_int("axis", -1);
  if (at < 0) at += rank;
  axis = static_cast<size_t>(at);
  return at >= 0 && at < rank;
}

bool plan_norm(const KernelQuery& q, WideNormState& s) {
  size_t axis;
  if (!read_axis(q, axis) || !q.has_input(1)) return false;
  const Dims normalized(q.dims(0).subspan(axis));
  for (size_t i = 1; i < q.inputs.size(); ++i)
    if (q.has_input(i) && (Dims(q.dims(i)) != normalized || q.dtype(i) != DType::kFloat64 || i > 2))
      return false;
  if (q.wants_output(1) || q.wants_output(2)) return false;
  s.length = element_count(normalized);
  s.rows = element_count(q.dims(0)) / s.length;
  s.epsilon = static_cast<double>(q.attributes.get_float("epsilon", 1e-5f));
  return true;
}
template <bool (*kPlan)(const KernelQuery&, WideNormState&)>
bool supports(const KernelQuery& q) {
  WideNormState state;
  return kPlan(q, state);
}
template <bool (*kPlan)(const KernelQuery&, WideNormState&)>
Result<std::unique_ptr<KernelState>> prepare(const PrepareContext& q) {
  auto state = std::make_unique<WideNormState>();
  kPlan(q, *state);
  return state;
}

template <bool kCentred>
Status run_norm(KernelRun& run) {
  const auto& s = run.state<WideNormState>();
  TRY(Tensor * y, run.output(0, DType::kFloat64, run.input(0).dims()));
  const double *x = run.data<double>(0), *scale = run.data<double>(1);
  const double* bias = run.has_input(2) ? run.data<double>(2) : nullptr;
  double* to = y->data<double>();
  const auto count = static_cast<double>(s.length);
  run.parallel_for(s.rows, grain_of(s.length), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double* row = x + i * s.length;
      const double mean = kCentred ? row_sum_f64(Power::kValue, row, s.length, 0) / count : 0;
      const double variance = row_sum_f64(Power::kSquare, row, s.length, mean) / count;
      normalize_row(row, s.length, mean, 1 / std::sqrt(variance + s.epsilon), scale, bias,
                    to + i * s.length);
    }
  });
  return ok();
}

}  // namespace

KERNEL(layer_normalization_f64) = {
    .name = "layer_normalization",
    .op = "LayerNormalization",
    .supports = supports<plan_norm>,
    .prepare = prepare<plan_norm>,
    .run = run_norm<true>,
    .in_place = 1,
};
KERNEL(rms_normalization_f64) = {
    .name = "rms_normalization",
    .op = "RMSNormalization",
    .supports = supports<plan_norm>,
    .prepare = prepare<plan_norm>,
    .run = run_norm<false>,
    .in_place = 1,
};
KERNEL(simplified_layer_normalization_f64) = {
    .name = "rms_normalization",
    .op = "SimplifiedLayerNormalization",
    .supports = supports<plan_norm>,
    .prepare = prepare<plan_norm>,
    .run = run_norm<false>,
    .in_place = 1,
};
}  // namespace tombolo
