// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss of floats. Without the log probabilities as
// an output, those of the target classes are all that is computed.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/reduce/rows.h"

namespace tombolo {
namespace {

struct LossState final : KernelState {
  int64_t samples = 1, classes = 1, plane = 1;
  bool mean = true, reduced = true, ignores = false;
  int64_t ignored = 0;
  int64_t positions() const { return samples * plane; }
};

/// [N, C, D...] floats against [N, D...] integers, with something in them.
bool supports_loss(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 2 || q.dtype(0) != DType::kFloat32 ||
      (q.dtype(1) != DType::kInt64 && q.dtype(1) != DType::kInt32) || q.dims(0).size() < 2 ||
      element_count(q.dims(0)) < 1 || q.dims(1).size() + 1 != q.dims(0).size() ||
      q.dims(1)[0] != q.dims(0)[0])
    return false;
  if (!std::equal(q.dims(1).begin() + 1, q.dims(1).end(), q.dims(0).begin() + 2)) return false;
  if (q.has_input(2) &&
      (q.dtype(2) != DType::kFloat32 || q.dims(2).size() != 1 || q.dims(2)[0] != q.dims(0)[1]))
    return false;
  const Text reduction = q.attributes.get_string("reduction", "mean");
  return reduction == "none" || reduction == "sum" || reduction == "mean";
}

Result<std::unique_ptr<KernelState>> prepare_loss(const PrepareContext& q) {
  auto state = std::make_unique<LossState>();
  state->samples = q.dims(0)[0];
  state->classes = q.dims(0)[1];
  state->plane = element_count(q.dims(0).subspan(2));
  const Text reduction = q.attributes.get_string("reduction", "mean");
  state->mean = reduction == "mean";
  state->reduced = reduction != "none";
  const auto ignored = q.attributes.get_int("ignore_index");
  state->ignores = ignored.has_value();
  state->ignored = ignored.value_or(0);
  // The logarithm that is taken from each score, then its loss; and its weight.
  state->scratch_bytes = static_cast<size_t>(state->positions()) * 2 * sizeof(double);
  return state;
}

int64_t loss_grain(int64_t work) { return std::max<int64_t>(1, (1 << 14) / work); }

/// Columns that are worked on together where classes are not next to each other.
constexpr int64_t kStrip = 256;

/// run(first number of the first class, column, width) for strips of columns.
template <typename Run>
void for_strips(const KernelRun& run, const LossState& s, Run&& body) {
  const int64_t strips = (s.plane + kStrip - 1) / kStrip;
  run.parallel_for(s.samples * strips, loss_grain(s.classes * std::min(kStrip, s.plane)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t task = begin; task < end; ++task) {
                       const int64_t sample = task / strips, column = task % strips * kStrip;
                       body(sample * s.classes * s.plane + column, sample * s.plane + column,
                            std::min(kStrip, s.plane - column));
                     }
                   });
}

/// The logarithm of the sum of all classes' powers, for each position.
void log_sums(const KernelRun& run, const LossState& s, const float* x, double* logs) {
  if (s.plane == 1) {
    run.parallel_for(s.samples, loss_grain(s.classes), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float* row = x + i * s.classes;
        const float most = fold_row(Fold::kMax, row, s.classes);
        const float sum = exp_sum_row(row, s.classes, most);
        logs[i] = static_cast<double>(most) + std::log(static_cast<double>(sum));
      }
    });
    return;
  }
  for_strips(run, s, [&](int64_t from, int64_t at, int64_t width) {
    float most[kStrip], sums[kStrip];
    fold_columns(Fold::kMax, x + from, s.classes, s.plane, width, most);
    exp_sum_columns(x + from, s.classes, s.plane, width, most, sums);
    for (int64_t j = 0; j < width; ++j)
      logs[at + j] = static_cast<double>(most[j]) + std::log(static_cast<double>(sums[j]));
  });
}

void log_probabilities(const KernelRun& run, const LossState& s, const float* x, float* y) {
  if (s.plane == 1)
    run.parallel_for(s.samples, loss_grain(s.classes), [&](int64_t begin, int64_t end) {
      softmax_rows(x + begin * s.classes, y + begin * s.classes, end - begin, s.classes, true);
    });
  else
    for_strips(run, s, [&](int64_t from, int64_t, int64_t width) {
      softmax_columns(x + from, y + from, s.classes, s.plane, width, true);
    });
}

/// Turns `losses`, what is to be taken from each score, into the losses, and gives their weights. A
/// target beyond the classes is an error.
template <typename Index>
Status pick(const KernelRun& run, const LossState& s, const float* x, double* losses,
            double* weights) {
  const Index* targets = run.data<Index>(1);
  const float* given = run.has_input(2) ? run.data<float>(2) : nullptr;
  std::atomic<int64_t> bad = -1;
  run.parallel_for(s.positions(), 4096, [&](int64_t begin, int64_t end) {
    int64_t sample = begin / s.plane, column = begin % s.plane;
    for (int64_t i = begin; i < end; ++i) {
      const auto label = static_cast<int64_t>(targets[i]);
      if (s.ignores && label == s.ignored) {
        losses[i] = weights[i] = 0;
      } else if (label < 0 || label >= s.classes) {
        bad = i;
        return;
      } else {
        weights[i] = given == nullptr ? 1 : static_cast<double>(given[label]);
        const float score = x[(sample * s.classes + label) * s.plane + column];
        losses[i] = weights[i] * (losses[i] - static_cast<double>(score));
      }
      if (++column == s.plane) {
        column = 0;
        ++sample;
      }
    }
  });
  if (bad < 0) return ok();
  return runtime_error("the target has the value " + std::to_string(targets[bad]) + ", there are " +
                       std::to_string(s.classes) + " classes");
}

Status run_loss(KernelRun& run, bool softmax) {
  const auto& s = run.state<LossState>();
  const float* x = run.data<float>(0);
  auto* losses = reinterpret_cast<double*>(run.scratch());
  double* weights = losses + s.positions();
  if (softmax && run.wants_output(1)) {
    TRY(Tensor * y, run.output(1, DType::kFloat32, run.input(0).dims()));
    log_probabilities(run, s, x, y->data<float>());
    x = y->data<float>();
    softmax = false;
  }
  if (softmax)
    log_sums(run, s, x, losses);
  else
    std::fill_n(losses, s.positions(), 0.0);
  CHECK_OK(run.input(1).dtype() == DType::kInt64 ? pick<int64_t>(run, s, x, losses, weights)
                                                 : pick<int32_t>(run, s, x, losses, weights));
  if (!run.wants_output(0)) return ok();
  if (!s.reduced) {
    TRY(Tensor * y, run.output(0, DType::kFloat32, run.input(1).dims()));
    for (int64_t i = 0; i < s.positions(); ++i) y->data<float>()[i] = static_cast<float>(losses[i]);
    return ok();
  }
  double sum = 0, total = 0;
  for (int64_t i = 0; i < s.positions(); ++i) {
    sum += losses[i];
    total += weights[i];
  }
  TRY(Tensor * y, run.output(0, DType::kFloat32, {}));
  y->data<float>()[0] = static_cast<float>(s.mean ? sum / total : sum);
  return ok();
}

}  // namespace

KERNEL(negative_log_likelihood_loss) = {
    .name = "likelihood_loss",
    .op = "NegativeLogLikelihoodLoss",
    .supports = supports_loss,
    .prepare = prepare_loss,
    .run = [](KernelRun& run) { return run_loss(run, false); },
};
KERNEL(softmax_cross_entropy_loss) = {
    .name = "cross_entropy_loss",
    .op = "SoftmaxCrossEntropyLoss",
    .supports = supports_loss,
    .prepare = prepare_loss,
    .run = [](KernelRun& run) { return run_loss(run, true); },
};

}  // namespace tombolo
