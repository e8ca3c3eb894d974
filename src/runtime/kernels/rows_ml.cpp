// Linear models, Scaler and Normalizer of ai.onnx.ml, in double as the reference computes them.

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "ops/kernels/ml.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/ml_rows.h"
#include "runtime/kernels/ml_setting.h"
#include "runtime/kernels/transpose_tile.h"

namespace tombolo {
namespace {

struct LinearState final : KernelState {
  std::vector<double> weights, bias;  ///< [feature][target], or by target for few rows; [target]
  std::vector<int64_t> labels;
  std::vector<std::string> names;  ///< of classes, in place of labels
  int64_t targets = 1, features = 1;
  bool few_rows = false;
  ops::PostTransform transform = ops::PostTransform::kNone;
};

/// Fewer rows than these leave most of a vector across rows empty.
constexpr int64_t kFewRows = 4;

bool plan_linear(const KernelQuery& q, bool classifier, LinearState& s) {
  if (!has_feature_rows(q) || !known_transform(q, s.transform)) return false;
  const auto weights = q.attributes.get_floats("coefficients");
  const auto bias = q.attributes.get_floats("intercepts");
  s.features = q.dims(0)[1];
  if (weights.empty() || static_cast<int64_t>(weights.size()) % s.features != 0) return false;
  const int64_t given = static_cast<int64_t>(weights.size()) / s.features;
  s.targets = given;
  if (!bias.empty() && static_cast<int64_t>(bias.size()) != given) return false;
  if (classifier) {
    // A label for each of several scores, or two for one, which is that of the second: the first
    // has its opposite. What one class alone means the reference knows.
    const auto labels = q.attributes.get_ints("classlabels_ints");
    const auto names = q.attributes.get_strings("classlabels_strings");
    const auto named = static_cast<int64_t>(std::max(labels.size(), names.size()));
    if (named < 2 || (named != given && !(given == 1 && named == 2)) ||
        (!labels.empty() && !names.empty()))
      return false;
    s.labels.assign(labels.begin(), labels.end());
    s.names.assign(names.begin(), names.end());
    s.targets = named;
  } else if (q.attributes.get_int("targets", 1) != given) {
    return false;
  }
  s.few_rows = q.dims(0)[0] < kFewRows;
  s.weights.resize(static_cast<size_t>(s.features * s.targets));
  s.bias.resize(static_cast<size_t>(s.targets));
  for (int64_t t = 0; t < s.targets; ++t) {
    const double sign = given < s.targets && t == 0 ? -1 : 1;
    const auto from = static_cast<size_t>(given < s.targets ? 0 : t);
    for (int64_t i = 0; i < s.features; ++i)
      s.weights[static_cast<size_t>(s.few_rows ? t * s.features + i : i * s.targets + t)] =
          sign * static_cast<double>(
                     weights[from * static_cast<size_t>(s.features) + static_cast<size_t>(i)]);
    if (!bias.empty()) s.bias[static_cast<size_t>(t)] = sign * static_cast<double>(bias[from]);
  }
  return true;
}

template <bool kClassifier>
bool supports_linear(const KernelQuery& q) {
  LinearState state;
  return plan_linear(q, kClassifier, state);
}
template <bool kClassifier>
Result<std::unique_ptr<KernelState>> prepare_linear(const PrepareContext& q) {
  auto state = std::make_unique<LinearState>();
  plan_linear(q, kClassifier, *state);
  return state;
}

/// Columns of scores as they are given out.
void transform_columns(const LinearState& s, double* scores, int64_t rows) {
  if (s.transform == ops::PostTransform::kNone) return;
  if (s.transform == ops::PostTransform::kSoftmax) return softmax_scores(scores, s.targets);
  if (s.transform == ops::PostTransform::kLogistic) return logistic_scores(scores, s.targets);
  std::vector<double> row(static_cast<size_t>(s.targets));
  for (int64_t r = 0; r < rows; ++r) {
    for (size_t t = 0; t < row.size(); ++t)
      row[t] = scores[static_cast<int64_t>(t) * kLinearRows + r];
    ops::transform_scores(s.transform, row);
    for (size_t t = 0; t < row.size(); ++t)
      scores[static_cast<int64_t>(t) * kLinearRows + r] = row[t];
  }
}

/// Where results go; null where they are not wanted.
struct LinearTarget {
  float* scores = nullptr;
  int64_t* labels = nullptr;
  std::string* names = nullptr;

  void give_label(const LinearState& s, int64_t row, int64_t best) const {
    const auto at = static_cast<size_t>(best);
    if (labels != nullptr) labels[row] = s.labels[at];
    if (names != nullptr) names[row] = s.names[at];
  }
};

void run_few_rows(const LinearState& s, const Tensor& x, const LinearTarget& to) {
  std::vector<double> row(static_cast<size_t>(s.features)), scores(static_cast<size_t>(s.targets));
  for (int64_t r = 0; r < x.dim(0); ++r) {
    widen_features(x, r * s.features, s.features, row.data());
    for (size_t t = 0; t < scores.size(); ++t)
      scores[t] =
          s.bias[t] +
          dot_f64(row.data(), s.weights.data() + static_cast<int64_t>(t) * s.features, s.features);
    ops::transform_scores(s.transform, scores);
    to.give_label(s, r, ops::greatest(scores));
    for (size_t t = 0; t < scores.size() && to.scores != nullptr; ++t)
      to.scores[r * s.targets + static_cast<int64_t>(t)] = static_cast<float>(scores[t]);
  }
}

/// Columns of the rows that begin at `row`. Floats stay what they are until they are multiplied.
template <typename T>
void load_columns(const Tensor& x, int64_t row, int64_t rows, std::vector<T>& room,
                  std::vector<T>& columns) {
  const int64_t features = x.dim(1);
  const T* from = x.data<T>() + row * features;
  if constexpr (std::is_same_v<T, double>) {
    if (x.dtype() != DType::kFloat64) {
      room.resize(columns.size());
      widen_features(x, row * features, rows * features, room.data());
      from = room.data();
    }
  }
  transpose_tile(reinterpret_cast<const std::byte*>(from), features,
                 reinterpret_cast<std::byte*>(columns.data()), kLinearRows, rows, features,
                 sizeof(T));
}

template <typename T>
void run_blocks(const KernelRun& run, const LinearState& s, const LinearTarget& to) {
  const Tensor& x = run.input(0);
  const int64_t blocks = (x.dim(0) + kLinearRows - 1) / kLinearRows;
  run.parallel_for(blocks, ml_grain(kLinearRows * s.features * s.targets),
                   [&](int64_t first, int64_t last) {
                     const auto results = static_cast<size_t>(kLinearRows * s.targets);
                     std::vector<T> room, columns(static_cast<size_t>(kLinearRows * s.features));
                     std::vector<double> scores(results);
                     std::vector<float> narrow(results);
                     int64_t best[kLinearRows];
                     for (int64_t row = first * kLinearRows;
                          row < std::min(x.dim(0), last * kLinearRows); row += kLinearRows) {
                       const int64_t rows = std::min(kLinearRows, x.dim(0) - row);
                       load_columns(x, row, rows, room, columns);
                       linear_scores(columns.data(), rows, s.features, s.weights.data(),
                                     s.bias.data(), s.targets, scores.data());
                       transform_columns(s, scores.data(), rows);
                       if (to.labels != nullptr || to.names != nullptr) {
                         greatest_scores(scores.data(), s.targets, best);
                         for (int64_t r = 0; r < rows; ++r) to.give_label(s, row + r, best[r]);
                       }
                       if (to.scores != nullptr)
                         give_score_rows(scores.data(), rows, s.targets, narrow.data(),
                                         to.scores + row * s.targets);
                     }
                   });
}

void run_linear(const KernelRun& run, const LinearState& s, const LinearTarget& to) {
  if (s.few_rows) return run_few_rows(s, run.input(0), to);
  if (run.input(0).dtype() == DType::kFloat32) return run_blocks<float>(run, s, to);
  run_blocks<double>(run, s, to);
}

Status run_linear_regressor(KernelRun& run) {
  const auto& s = run.state<LinearState>();
  const int64_t dims[] = {run.input(0).dim(0), s.targets};
  TRY(Tensor * y, run.output(0, DType::kFloat32, dims));
  run_linear(run, s, {.scores = y->data<float>()});
  return ok();
}

Status run_linear_classifier(KernelRun& run) {
  const auto& s = run.state<LinearState>();
  const int64_t dims[] = {run.input(0).dim(0), s.targets};
  LinearTarget to;
  if (run.wants_output(0)) {
    const DType dtype = s.names.empty() ? DType::kInt64 : DType::kString;
    TRY(Tensor * y, run.output(0, dtype, std::span(dims, 1)));
    if (s.names.empty())
      to.labels = y->data<int64_t>();
    else
      to.names = y->strings().data();
  }
  if (run.wants_output(1)) {
    TRY(Tensor * z, run.output(1, DType::kFloat32, dims));
    to.scores = z->data<float>();
  }
  run_linear(run, s, to);
  return ok();
}

// Scaler, Normalizer.

struct ScalerState final : KernelState {
  std::vector<double> offset, scale;  ///< for as many rows as make a run worth its call
  int64_t run = 1;
};

bool supports_scaler(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.empty() || q.dtype(0) != DType::kFloat32 ||
      q.dims(0).empty() || element_count(q.dims(0)) < 1)
    return false;
  for (const char* name : {"offset", "scale"}) {
    const auto list = q.attributes.get_floats(name);
    if (list.size() > 1 && static_cast<int64_t>(list.size()) != q.dims(0).back()) return false;
  }
  return true;
}
Result<std::unique_ptr<KernelState>> prepare_scaler(const PrepareContext& q) {
  auto state = std::make_unique<ScalerState>();
  const int64_t features = q.dims(0).back();
  state->run = features * std::max<int64_t>(1, 512 / features);
  const auto fill = [&](const char* name, double fallback, std::vector<double>& to) {
    const auto list = q.attributes.get_floats(name);
    for (int64_t i = 0; i < state->run; ++i)
      to.push_back(list.empty()
                       ? fallback
                       : static_cast<double>(
                             list[list.size() == 1 ? 0 : static_cast<size_t>(i % features)]));
  };
  fill("offset", 0, state->offset);
  fill("scale", 1, state->scale);
  return state;
}
Status run_scaler(KernelRun& run) {
  const auto& s = run.state<ScalerState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, DType::kFloat32, x.dims()));
  const float* from = x.data<float>();
  float* to = y->data<float>();
  const int64_t size = x.size(), runs = (size + s.run - 1) / s.run;
  run.parallel_for(runs, ml_grain(s.run), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      scale_features(from + i * s.run, s.offset.data(), s.scale.data(),
                     std::min(s.run, size - i * s.run), to + i * s.run);
  });
  return ok();
}

struct NormalizerState final : KernelState {
  RowNorm norm = RowNorm::kMax;
};
bool read_norm(const KernelQuery& q, RowNorm& norm) {
  const Text name = q.attributes.get_string("norm", "MAX");
  norm = name == "L1" ? RowNorm::kL1 : name == "L2" ? RowNorm::kL2 : RowNorm::kMax;
  return norm != RowNorm::kMax || name == "MAX";
}
bool supports_normalizer(const KernelQuery& q) {
  RowNorm norm;
  return has_feature_rows(q) && q.dtype(0) == DType::kFloat32 && read_norm(q, norm);
}
Result<std::unique_ptr<KernelState>> prepare_normalizer(const PrepareContext& q) {
  auto state = std::make_unique<NormalizerState>();
  read_norm(q, state->norm);
  return state;
}
Status run_normalizer(KernelRun& run) {
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, DType::kFloat32, x.dims()));
  const float* from = x.data<float>();
  float* to = y->data<float>();
  const int64_t features = x.dim(1);
  const RowNorm norm = run.state<NormalizerState>().norm;
  run.parallel_for(x.dim(0), ml_grain(features), [&](int64_t begin, int64_t end) {
    divide_by_norm(norm, from + begin * features, end - begin, features, to + begin * features);
  });
  return ok();
}

}  // namespace

KERNEL(ml_linear_regressor) = {
    .name = "linear_regressor",
    .op = "LinearRegressor",
    .domain = "ai.onnx.ml",
    .supports = supports_linear<false>,
    .prepare = prepare_linear<false>,
    .run = run_linear_regressor,
};
KERNEL(ml_linear_classifier) = {
    .name = "linear_classifier",
    .op = "LinearClassifier",
    .domain = "ai.onnx.ml",
    .supports = supports_linear<true>,
    .prepare = prepare_linear<true>,
    .run = run_linear_classifier,
};
KERNEL(ml_scaler) = {
    .name = "scaler",
    .op = "Scaler",
    .domain = "ai.onnx.ml",
    .supports = supports_scaler,
    .prepare = prepare_scaler,
    .run = run_scaler,
};
KERNEL(ml_normalizer) = {
    .name = "normalizer",
    .op = "Normalizer",
    .domain = "ai.onnx.ml",
    .supports = supports_normalizer,
    .prepare = prepare_normalizer,
    .run = run_normalizer,
};

}  // namespace tombolo
