// MeanVarianceNormalization of floats, with sums in double.

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/norm/moments.h"

namespace tombolo {
namespace {

constexpr int64_t kColumns = 64;

// [outer reduced][kept][inner reduced], or columns where the innermost
// axis is kept.

struct MeanState final : KernelState {
  int64_t outer = 1, kept = 1, inner = 1;
};

bool plan_mean(const KernelQuery& q, MeanState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.empty() || q.dtype(0) != DType::kFloat32 ||
      element_count(q.dims(0)) < 1)
    return false;
  const auto rank = static_cast<int64_t>(q.dims(0).size());
  constexpr int64_t kDefault[] = {0, 2, 3};
  auto axes = q.attributes.get_ints("axes");
  if (axes.empty()) axes = kDefault;
  std::vector<bool> reduced(static_cast<size_t>(rank));
  for (int64_t axis : axes) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return false;
    reduced[static_cast<size_t>(axis)] = true;
  }
  // 0: reduced so far, 1: kept, 2: reduced again.
  int state = 0;
  for (size_t j = 0; j < reduced.size(); ++j) {
    const int64_t dim = q.dims(0)[j];
    if (dim == 1) continue;
    if (state == 0 && !reduced[j]) state = 1;
    if (state == 1 && reduced[j]) state = 2;
    if (state == 2 && !reduced[j]) return false;
    (state == 0 ? s.outer : state == 1 ? s.kept : s.inner) *= dim;
  }
  if (s.kept == 1) {
    s.inner *= s.outer;
    s.outer = 1;
  }
  return true;
}
bool supports_mean(const KernelQuery& q) {
  MeanState state;
  return plan_mean(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_mean(const PrepareContext& q) {
  auto state = std::make_unique<MeanState>();
  plan_mean(q, *state);
  return state;
}

Status run_mean(KernelRun& run) {
  const auto& s = run.state<MeanState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, DType::kFloat32, x.dims()));
  const float* from = x.data<float>();
  float* to = y->data<float>();
  const auto members = static_cast<double>(s.outer * s.inner);
  // The function body of the specification adds 1e-9 to the standard deviation.
  const auto factor = [&](double squares) { return 1 / (std::sqrt(squares / members) + 1e-9); };
  if (s.inner > 1 || s.outer == 1) {
    run.parallel_for(s.kept, grain_of(s.outer * s.inner), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const auto at = [&](int64_t i) { return (i * s.kept + k) * s.inner; };
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < s.outer; ++i)
          sum += row_sum_f64(Power::kValue, from + at(i), s.inner, 0);
        const double mean = sum / members;
        for (int64_t i = 0; i < s.outer; ++i)
          squares += row_sum_f64(Power::kSquare, from + at(i), s.inner, mean);
        for (int64_t i = 0; i < s.outer; ++i)
          shift_scale_row(from + at(i), s.inner, mean, factor(squares), to + at(i));
      }
    });
    return ok();
  }
  const int64_t columns = (s.kept + kColumns - 1) / kColumns;
  run.parallel_for(columns, grain_of(s.outer * kColumns), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t at = task * kColumns, width = std::min(kColumns, s.kept - at);
      double means[kColumns] = {}, squares[kColumns] = {};
      column_sums_f64(Power::kValue, from + at, s.outer, s.kept, width, nullptr, means);
      for (int64_t j = 0; j < width; ++j) means[j] /= members;
      column_sums_f64(Power::kSquare, from + at, s.outer, s.kept, width, means, squares);
      for (int64_t j = 0; j < width; ++j) squares[j] = factor(squares[j]);
      shift_scale_columns(from + at, s.outer, s.kept, width, means, squares, to + at);
    }
  });
  return ok();
}

}  // namespace

KERNEL(mean_variance_normalization) = {
    .name = "mean_variance_normalization",
    .op = "MeanVarianceNormalization",
    .supports = supports_mean,
    .prepare = prepare_mean,
    .run = run_mean,
    .in_place = 1,
};

}  // namespace tombolo
