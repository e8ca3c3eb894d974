// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss of floats and doubles. Without the log
// probabilities as an output, those of the target classes are all that is computed.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/norm/softmax_f64.h"
#include "runtime/kernels/reduce/rows.h"
#include "runtime/kernels/tensor/lookup.h"

namespace tombolo {
namespace {

/// Positions whose losses are summed by themselves, whatever the number of threads.
constexpr int64_t kLossChunk = 4096;

struct LossState final : KernelState {
  int64_t samples = 1, classes = 1, plane = 1;
  bool mean = true, reduced = true, ignores = false;
  int64_t ignored = 0;
  int64_t positions() const { return samples * plane; }
  int64_t chunks() const { return (positions() + kLossChunk - 1) / kLossChunk; }
};

/// [N, C, D...] floats against [N, D...] integers, with something in them.
bool supports_loss(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 2 ||
      (q.dtype(0) != DType::kFloat32 && q.dtype(0) != DType::kFloat64) ||
      (q.dtype(1) != DType::kInt64 && q.dtype(1) != DType::kInt32) || q.dims(0).size() < 2 ||
      element_count(q.dims(0)) < 1 || q.dims(1).size() + 1 != q.dims(0).size() ||
      q.dims(1)[0] != q.dims(0)[0])
    return false;
  if (!std::equal(q.dims(1).begin() + 1, q.dims(1).end(), q.dims(0).begin() + 2)) return false;
  if (q.has_input(2) &&
      (q.dtype(2) != q.dtype(0) || q.dims(2).size() != 1 || q.dims(2)[0] != q.dims(0)[1]))
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
  // Sums of losses and of weights for each chunk, and the logarithms that are taken from scores.
  const bool logs = q.node.op_type() == "SoftmaxCrossEntropyLoss" && !q.wants_output(1);
  state->scratch_bytes =
      static_cast<size_t>(2 * state->chunks() + (logs ? state->positions() : 0)) * sizeof(double);
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
template <typename T>
void log_sums(const KernelRun& run, const LossState& s, const T* x, double* logs) {
  if (s.plane == 1) {
    run.parallel_for(s.samples, loss_grain(s.classes), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = x + i * s.classes;
        const T most = fold_row(Fold::kMax, row, s.classes);
        const T sum = exp_sum_row(row, s.classes, most);
        logs[i] = static_cast<double>(most) + std::log(static_cast<double>(sum));
      }
    });
    return;
  }
  for_strips(run, s, [&](int64_t from, int64_t at, int64_t width) {
    T most[kStrip], sums[kStrip];
    fold_columns(Fold::kMax, x + from, s.classes, s.plane, width, most);
    exp_sum_columns(x + from, s.classes, s.plane, width, most, sums);
    for (int64_t j = 0; j < width; ++j)
      logs[at + j] = static_cast<double>(most[j]) + std::log(static_cast<double>(sums[j]));
  });
}

template <typename T>
void log_probabilities(const KernelRun& run, const LossState& s, const T* x, T* y) {
  if (s.plane == 1)
    run.parallel_for(s.samples, loss_grain(s.classes), [&](int64_t begin, int64_t end) {
      softmax_rows(x + begin * s.classes, y + begin * s.classes, end - begin, s.classes, true);
    });
  else
    for_strips(run, s, [&](int64_t from, int64_t, int64_t width) {
      constexpr int64_t kMost = std::is_same_v<T, float> ? kSoftmaxColumns : kSoftmaxDoubles;
      for (int64_t j = 0; j < width; j += kMost)
        softmax_columns(x + from + j, y + from + j, s.classes, s.plane, std::min(kMost, width - j),
                        true);
    });
}

/// What a position of the targets adds.
struct LossSums {
  double losses = 0, weights = 0;
};

/// The losses of positions [begin, end), into y where that is not null: the logarithm less the
/// score, or the score alone where `logs` is null. A target beyond the classes is an error, and
/// given by its position.
template <typename T, typename Index>
LossSums pick_losses(const LossState& s, const T* x, const Index* targets, const T* given,
                     const double* logs, int64_t begin, int64_t end, T* y,
                     std::atomic<int64_t>& bad) {
  // Several sums: one alone would wait for itself.
  constexpr int64_t kSums = 4;
  LossSums sums[kSums];
  const auto one = [&](int64_t i, const T* column, LossSums& sum) {
    const auto label = static_cast<int64_t>(targets[i]);
    double loss = 0, weight = 0;
    if (!s.ignores || label != s.ignored) {
      if (static_cast<uint64_t>(label) >= static_cast<uint64_t>(s.classes)) {
        bad = i;
        return;
      }
      weight = given == nullptr ? 1 : static_cast<double>(given[label]);
      const auto score = static_cast<double>(column[label * s.plane]);
      loss = weight * ((logs == nullptr ? 0 : logs[i]) - score);
    }
    sum.losses += loss;
    sum.weights += weight;
    if (y != nullptr) y[i] = static_cast<T>(loss);
  };
  // Where all targets of some are classes that count as much as any other, there is less to do.
  constexpr int64_t kTogether = 512;
  const bool may_be_plain =
      given == nullptr && (!s.ignores || s.ignored < 0 || s.ignored >= s.classes);
  for (int64_t at = begin; at < end;) {
    const int64_t sample = at / s.plane, first = sample * s.plane;
    const int64_t until = std::min({end, first + s.plane, at + kTogether});
    const T* columns = x + sample * s.classes * s.plane - first;
    if (may_be_plain && all_places_inside(targets + at, until - at, s.classes)) {
      const auto score = [&](int64_t i) {
        return static_cast<double>(columns[static_cast<int64_t>(targets[i]) * s.plane + i]);
      };
      const auto losses = [&](auto&& loss) {
        for (; at + kSums <= until; at += kSums)
#pragma GCC unroll 4
          for (int64_t k = 0; k < kSums; ++k) sums[k].losses += loss(at + k);
        for (; at < until; ++at) sums[0].losses += loss(at);
      };
      sums[0].weights += static_cast<double>(until - at);
      if (logs == nullptr && y == nullptr)
        losses([&](int64_t i) { return -score(i); });
      else
        losses([&](int64_t i) {
          const double loss = (logs == nullptr ? 0 : logs[i]) - score(i);
          if (y != nullptr) y[i] = static_cast<T>(loss);
          return loss;
        });
      continue;
    }
    for (; at + kSums <= until; at += kSums)
      for (int64_t k = 0; k < kSums; ++k) one(at + k, columns + at + k, sums[k]);
    for (; at < until; ++at) one(at, columns + at, sums[at % kSums]);
  }
  for (int64_t k = 1; k < kSums; ++k) {
    sums[0].losses += sums[k].losses;
    sums[0].weights += sums[k].weights;
  }
  return sums[0];
}

template <typename T, typename Index>
Status give_losses(KernelRun& run, const LossState& s, const T* x, const double* logs) {
  const Index* targets = run.data<Index>(1);
  const T* given = run.has_input(2) ? run.data<T>(2) : nullptr;
  T* each = nullptr;
  Tensor* y = nullptr;
  if (run.wants_output(0)) {
    TRY(y, run.output(0, run.input(0).dtype(),
                      s.reduced ? std::span<const int64_t>() : run.input(1).dims()));
    if (!s.reduced) each = y->data<T>();
  }
  auto* const sums = reinterpret_cast<LossSums*>(run.scratch());
  std::atomic<int64_t> bad = -1;
  run.parallel_for(s.chunks(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk)
      sums[chunk] = pick_losses(s, x, targets, given, logs, chunk * kLossChunk,
                                std::min(s.positions(), (chunk + 1) * kLossChunk), each, bad);
  });
  if (bad >= 0)
    return runtime_error("the target has the value " + std::to_string(targets[bad]) +
                         ", there are " + std::to_string(s.classes) + " classes");
  if (y == nullptr || !s.reduced) return ok();
  LossSums all;
  for (int64_t chunk = 0; chunk < s.chunks(); ++chunk) {
    all.losses += sums[chunk].losses;
    all.weights += sums[chunk].weights;
  }
  y->data<T>()[0] = static_cast<T>(s.mean ? all.losses / all.weights : all.losses);
  return ok();
}

template <typename T>
Status loss_of(KernelRun& run, bool softmax) {
  const auto& s = run.state<LossState>();
  const T* x = run.data<T>(0);
  double* logs = nullptr;
  if (softmax && run.wants_output(1)) {
    TRY(Tensor * y, run.output(1, run.input(0).dtype(), run.input(0).dims()));
    log_probabilities(run, s, x, y->data<T>());
    x = y->data<T>();
  } else if (softmax) {
    logs = reinterpret_cast<double*>(run.scratch()) + 2 * s.chunks();
    log_sums(run, s, x, logs);
  }
  return run.input(1).dtype() == DType::kInt64 ? give_losses<T, int64_t>(run, s, x, logs)
                                               : give_losses<T, int32_t>(run, s, x, logs);
}
Status run_loss(KernelRun& run, bool softmax) {
  return run.input(0).dtype() == DType::kFloat32 ? loss_of<float>(run, softmax)
                                                 : loss_of<double>(run, softmax);
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
