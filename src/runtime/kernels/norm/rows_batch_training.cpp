// BatchNormalization in training mode: the moments of each channel over the batch, in double, which
// also move the running ones.

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/norm/moments.h"
#include "runtime/kernels/reduce/rows.h"

namespace tombolo {
namespace {

struct TrainingState final : KernelState {
  double epsilon = 1e-5, momentum = 0.9;
};

bool supports_training(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.opset < 14 || q.inputs.size() != 5 ||
      q.dims(0).size() < 2 || element_count(q.dims(0)) < 1 ||
      q.attributes.get_int("training_mode", 0) == 0)
    return false;
  for (size_t i = 0; i < 5; ++i)
    if (q.dtype(i) != DType::kFloat32 || (i > 0 && Dims(q.dims(i)) != Dims{q.dims(0)[1]}))
      return false;
  return true;
}
Result<std::unique_ptr<KernelState>> prepare_training(const PrepareContext& q) {
  auto state = std::make_unique<TrainingState>();
  state->epsilon = static_cast<double>(q.attributes.get_float("epsilon", 1e-5f));
  state->momentum = static_cast<double>(q.attributes.get_float("momentum", 0.9f));
  return state;
}

constexpr int64_t kGrain = 1 << 14;  ///< elements

/// Images of several pixels: a channel is as many rows as there are images.
void train_planes(const KernelRun& run, double epsilon, double* means, double* variances,
                  float* y) {
  const Tensor& x = run.input(0);
  const int64_t batch = x.dim(0), channels = x.dim(1), plane = x.size() / batch / channels;
  const float *from = x.data<float>(), *scale = run.data<float>(1), *bias = run.data<float>(2);
  const auto count = static_cast<double>(batch * plane);
  run.parallel_for(
      channels, std::max<int64_t>(1, kGrain / (batch * plane)), [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
          const auto sum = [&](Power power, double shift) {
            double all = 0;
            for (int64_t n = 0; n < batch; ++n)
              all += row_sum_f64(power, from + (n * channels + c) * plane, plane, shift);
            return all / count;
          };
          means[c] = sum(Power::kValue, 0);
          variances[c] = sum(Power::kSquare, means[c]);
          const RowMoments moments{static_cast<float>(means[c]),
                                   static_cast<float>(1 / std::sqrt(variances[c] + epsilon))};
          for (int64_t n = 0; n < batch; ++n) {
            const int64_t at = (n * channels + c) * plane;
            normalize_plane(from + at, y + at, plane, moments, scale[c], bias[c]);
          }
        }
      });
}

/// Single pixels: channels are columns.
void train_columns(const KernelRun& run, double epsilon, double* means, double* variances,
                   float* y) {
  const Tensor& x = run.input(0);
  const int64_t batch = x.dim(0), channels = x.dim(1);
  const float *from = x.data<float>(), *scale = run.data<float>(1), *bias = run.data<float>(2);
  constexpr int64_t kColumns = 256;
  run.parallel_for(
      (channels + kColumns - 1) / kColumns, std::max<int64_t>(1, kGrain / (batch * kColumns)),
      [&](int64_t begin, int64_t end) {
        for (int64_t c = begin * kColumns; c < std::min(channels, end * kColumns); c += kColumns) {
          const int64_t width = std::min(kColumns, channels - c);
          const auto sums = [&](Power power, const double* shifts, double* out) {
            std::fill_n(out, width, 0.0);
            column_sums_f64(power, from + c, batch, channels, width, shifts, out);
            for (int64_t j = 0; j < width; ++j) out[j] /= static_cast<double>(batch);
          };
          sums(Power::kValue, nullptr, means + c);
          sums(Power::kSquare, means + c, variances + c);
          // (x - mean) * factor + bias, with the bias as a part of the mean where that can be.
          double factors[kColumns], shifts[kColumns];
          bool whole = true;
          for (int64_t j = 0; j < width; ++j) {
            factors[j] = static_cast<double>(scale[c + j]) / std::sqrt(variances[c + j] + epsilon);
            shifts[j] = means[c + j] - static_cast<double>(bias[c + j]) / factors[j];
            whole &= std::fabs(factors[j]) > 1e-30;
          }
          shift_scale_columns(from + c, batch, channels, width, whole ? shifts : means + c, factors,
                              y + c);
          for (int64_t n = 0; n < batch && !whole; ++n) {
            float* row = y + n * channels + c;
            normalize_row(row, row, width, {0, 1}, nullptr, bias + c);
          }
        }
      });
}

Status run_training(KernelRun& run) {
  const auto& s = run.state<TrainingState>();
  const Tensor& x = run.input(0);
  const int64_t channels = x.dim(1);
  std::vector<double> moments(static_cast<size_t>(2 * channels));
  double *means = moments.data(), *variances = means + channels;
  TRY(Tensor * y, run.output(0, DType::kFloat32, x.dims()));
  const bool planes = x.size() > x.dim(0) * channels;
  (planes ? train_planes : train_columns)(run, s.epsilon, means, variances, y->data<float>());
  for (const size_t i : {size_t{1}, size_t{2}}) {
    if (!run.wants_output(i)) continue;
    TRY(Tensor * running, run.output(i, DType::kFloat32, run.input(i + 2).dims()));
    const float* old = run.data<float>(i + 2);
    const double* now = i == 1 ? means : variances;
    for (int64_t c = 0; c < channels; ++c)
      running->data<float>()[c] =
          static_cast<float>(static_cast<double>(old[c]) * s.momentum + now[c] * (1 - s.momentum));
  }
  return ok();
}

}  // namespace

KERNEL(batch_normalization_training) = {
    .name = "batch_normalization_training",
    .op = "BatchNormalization",
    .supports = supports_training,
    .prepare = prepare_training,
    .run = run_training,
};

}  // namespace tombolo
