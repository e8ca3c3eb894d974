// LinearRegressor and LinearClassifier of ai.onnx.ml. Floats are summed as floats, along many
// features in as many sums as a vector has lanes; all else in double.

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/kernels/kernel.h"
#include "runtime/kernels/ml/linear_scores.h"
#include "runtime/kernels/ml/ml_setting.h"
#include "runtime/kernels/tensor/transpose_tile.h"

namespace tombolo {
namespace {

struct LinearState final : KernelState {
  std::vector<float> weights, bias;  ///< of floats: [target][padded] or [feature][target]
  std::vector<double> wide_weights, wide_bias;  ///< of all else, the same way
  std::vector<int64_t> labels;
  std::vector<std::string> names;  ///< of classes, in place of labels
  int64_t targets = 1, features = 1, padded = 16;
  int64_t given = 1;     ///< targets that have weights: one for two is the second's
  bool columns = false;  ///< vectors run across rows
  ops::PostTransform transform = ops::PostTransform::kNone;

  template <typename T>
  auto weights_of() const {
    if constexpr (std::is_same_v<T, float>)
      return std::pair(weights.data(), bias.data());
    else
      return std::pair(wide_weights.data(), wide_bias.data());
  }
};

/// Fewer rows than these leave most of a vector across rows empty.
constexpr int64_t kFewRows = 12;
/// So many features a target are worth adding up the lanes of each sum.
constexpr int64_t kManyFeatures = 6;

bool plan_linear(const KernelQuery& q, bool classifier, LinearState& s) {
  if (!has_feature_rows(q) || !known_transform(q, s.transform)) return false;
  const size_t weights = q.attributes.get_floats("coefficients").size();
  const size_t bias = q.attributes.get_floats("intercepts").size();
  s.features = q.dims(0)[1];
  if (weights == 0 || static_cast<int64_t>(weights) % s.features != 0) return false;
  s.targets = s.given = static_cast<int64_t>(weights) / s.features;
  if (bias != 0 && static_cast<int64_t>(bias) != s.given) return false;
  if (classifier) {
    // A label for each of several scores, or two for one, which is that of the second: the first
    // has its opposite. What one class alone means the reference knows.
    const auto labels = q.attributes.get_ints("classlabels_ints");
    const auto names = q.attributes.get_strings("classlabels_strings");
    const auto named = static_cast<int64_t>(std::max(labels.size(), names.size()));
    if (named < 2 || (named != s.given && !(s.given == 1 && named == 2)) ||
        (!labels.empty() && !names.empty()))
      return false;
    s.labels.assign(labels.begin(), labels.end());
    s.names.assign(names.begin(), names.end());
    s.targets = named;
  } else if (q.attributes.get_int("targets", 1) != s.given) {
    return false;
  }
  s.columns = q.dims(0)[0] >= kFewRows && s.features < kManyFeatures * s.given;
  s.padded = (s.features + kLinearStep - 1) / kLinearStep * kLinearStep;
  return true;
}

template <bool kClassifier>
bool supports_linear(const KernelQuery& q) {
  LinearState state;
  return plan_linear(q, kClassifier, state);
}

template <typename T>
void lay_out(const LinearState& s, std::span<const float> from, std::span<const float> bias_from,
             std::vector<T>& weights, std::vector<T>& bias) {
  weights.resize(static_cast<size_t>(s.columns ? s.features * s.given : s.padded * s.given));
  for (int64_t t = 0; t < s.given; ++t)
    for (int64_t i = 0; i < s.features; ++i)
      weights[static_cast<size_t>(s.columns ? i * s.given + t : t * s.padded + i)] =
          static_cast<T>(from[static_cast<size_t>(t * s.features + i)]);
  bias.assign(bias_from.begin(), bias_from.end());
  bias.resize(static_cast<size_t>(s.given));
}

template <bool kClassifier>
Result<std::unique_ptr<KernelState>> prepare_linear(const PrepareContext& q) {
  auto state = std::make_unique<LinearState>();
  plan_linear(q, kClassifier, *state);
  const auto weights = q.attributes.get_floats("coefficients");
  const auto bias = q.attributes.get_floats("intercepts");
  if (q.dtype(0) == DType::kFloat32)
    lay_out(*state, weights, bias, state->weights, state->bias);
  else
    lay_out(*state, weights, bias, state->wide_weights, state->wide_bias);
  return state;
}

/// Columns of scores as they are given out, by the function for one row.
void transform_rows(const LinearState& s, float* scores, int64_t rows) {
  std::vector<double> row(static_cast<size_t>(s.targets));
  for (int64_t r = 0; r < rows; ++r) {
    float* at = scores + r;
    for (size_t t = 0; t < row.size(); ++t)
      row[t] = static_cast<double>(at[static_cast<int64_t>(t) * kLinearRows]);
    ops::transform_scores(s.transform, row);
    for (size_t t = 0; t < row.size(); ++t)
      at[static_cast<int64_t>(t) * kLinearRows] = static_cast<float>(row[t]);
  }
}

/// Where results go; null where they are not wanted.
struct LinearTarget {
  float* scores = nullptr;
  int64_t* labels = nullptr;
  std::string* names = nullptr;

  void give_labels(const LinearState& s, int64_t row, int64_t rows, const float* columns) const {
    if (labels == nullptr && names == nullptr) return;
    int64_t best[kLinearRows];
    greatest_scores(columns, s.targets, best);
    for (int64_t r = 0; r < rows; ++r) {
      if (labels != nullptr) labels[row + r] = s.labels[static_cast<size_t>(best[r])];
      if (names != nullptr) names[row + r] = s.names[static_cast<size_t>(best[r])];
    }
  }
};

/// What a thread needs for a block of rows.
template <typename T>
struct LinearRoom {
  std::vector<T> wide, columns, sums;
  std::vector<float> scores;
};

/// Scores of the rows from `row` on, as columns.
template <typename T>
void score_rows(const LinearState& s, const Tensor& x, int64_t row, int64_t rows,
                LinearRoom<T>& room) {
  const T* from = nullptr;
  if (x.dtype() == (std::is_same_v<T, float> ? DType::kFloat32 : DType::kFloat64)) {
    from = x.data<T>() + row * s.features;
  } else if constexpr (std::is_same_v<T, double>) {
    room.wide.resize(static_cast<size_t>(std::min(kLinearRows, x.dim(0)) * s.features));
    widen_features(x, row * s.features, rows * s.features, room.wide.data());
    from = room.wide.data();
  }
  const auto [weights, bias] = s.weights_of<T>();
  // The one score of two classes is that of the second.
  const int64_t first = (s.targets - s.given) * kLinearRows;
  T* sums;
  if constexpr (std::is_same_v<T, float>)
    sums = room.scores.data() + first;
  else
    sums = room.sums.data() + first;
  if (s.columns) {
    transpose_tile(reinterpret_cast<const std::byte*>(from), s.features,
                   reinterpret_cast<std::byte*>(room.columns.data()), kLinearRows, rows, s.features,
                   sizeof(T));
    linear_columns(room.columns.data(), rows, s.features, weights, bias, s.given, sums);
  } else {
    linear_dots(from, rows, s.features, weights, s.padded, bias, s.given, sums);
  }
  for (int64_t r = 0; r < kLinearRows && first > 0; ++r) sums[r - kLinearRows] = -sums[r];
  if constexpr (std::is_same_v<T, double>)
    narrow_scores(room.sums.data(), kLinearRows * s.targets, room.scores.data());
}

template <typename T>
void run_blocks(const KernelRun& run, const LinearState& s, const LinearTarget& to) {
  const Tensor& x = run.input(0);
  const int64_t blocks = (x.dim(0) + kLinearRows - 1) / kLinearRows;
  run.parallel_for(
      blocks, ml_grain(kLinearRows * s.features * s.given), [&](int64_t begin, int64_t end) {
        LinearRoom<T> room;
        const auto results = static_cast<size_t>(kLinearRows * s.targets);
        room.scores.resize(results);
        if constexpr (std::is_same_v<T, double>) room.sums.resize(results);
        if (s.columns) room.columns.resize(static_cast<size_t>(kLinearRows * s.features));
        for (int64_t row = begin * kLinearRows; row < std::min(x.dim(0), end * kLinearRows);
             row += kLinearRows) {
          const int64_t rows = std::min(kLinearRows, x.dim(0) - row);
          score_rows(s, x, row, rows, room);
          float* scores = room.scores.data();
          to.give_labels(s, row, rows, scores);
          if (to.scores == nullptr) continue;
          if (!vectors_have(s.transform)) transform_rows(s, scores, rows);
          give_score_columns(s.transform, scores, s.targets, rows, to.scores + row * s.targets);
        }
      });
}

void run_linear(const KernelRun& run, const LinearState& s, const LinearTarget& to) {
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

}  // namespace tombolo
