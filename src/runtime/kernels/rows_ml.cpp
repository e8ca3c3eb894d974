// Linear models, support vectors, Scaler and Normalizer of ai.onnx.ml, over rows of floats, in
// double as the reference computes them.

#include <algorithm>
#include <vector>

#include "ops/kernels/ml.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/ml_rows.h"

namespace tombolo {
namespace {

/// [N, F] of floats with something in it.
bool has_rows(const KernelQuery& q) {
  return active_isa() != Isa::kScalar && !q.inputs.empty() && q.dtype(0) == DType::kFloat32 &&
         q.dims(0).size() == 2 && element_count(q.dims(0)) > 0;
}

int64_t grain_of_rows(int64_t work) {
  return std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, work));
}

bool known_transform(const KernelQuery& q, ops::PostTransform& transform) {
  const Text name = q.attributes.get_string("post_transform", "NONE");
  constexpr std::pair<std::string_view, ops::PostTransform> kNames[] = {
      {"NONE", ops::PostTransform::kNone},
      {"SOFTMAX", ops::PostTransform::kSoftmax},
      {"LOGISTIC", ops::PostTransform::kLogistic},
      {"SOFTMAX_ZERO", ops::PostTransform::kSoftmaxZero},
      {"PROBIT", ops::PostTransform::kProbit}};
  for (const auto& [known, value] : kNames)
    if (name == known) {
      transform = value;
      return true;
    }
  return false;
}

struct LinearState final : KernelState {
  std::vector<double> weights, bias;  ///< [feature][target]; [target]
  std::vector<int64_t> labels;
  int64_t targets = 1, features = 1;
  ops::PostTransform transform = ops::PostTransform::kNone;
};

bool plan_linear(const KernelQuery& q, bool classifier, LinearState& s) {
  if (!has_rows(q) || !known_transform(q, s.transform)) return false;
  const auto weights = q.attributes.get_floats("coefficients");
  const auto bias = q.attributes.get_floats("intercepts");
  s.features = q.dims(0)[1];
  if (weights.empty() || static_cast<int64_t>(weights.size()) % s.features != 0) return false;
  s.targets = static_cast<int64_t>(weights.size()) / s.features;
  if (!bias.empty() && static_cast<int64_t>(bias.size()) != s.targets) return false;
  if (classifier) {
    // A label for each of several scores; what two classes with one score mean the reference knows.
    const auto labels = q.attributes.get_ints("classlabels_ints");
    if (s.targets < 2 || static_cast<int64_t>(labels.size()) != s.targets ||
        !q.attributes.get_strings("classlabels_strings").empty())
      return false;
    s.labels.assign(labels.begin(), labels.end());
  } else if (q.attributes.get_int("targets", 1) != s.targets) {
    return false;
  }
  s.weights.assign(weights.size(), 0);
  for (int64_t t = 0; t < s.targets; ++t)
    for (int64_t i = 0; i < s.features; ++i)
      s.weights[static_cast<size_t>(i * s.targets + t)] =
          static_cast<double>(weights[static_cast<size_t>(t * s.features + i)]);
  s.bias.assign(static_cast<size_t>(s.targets), 0);
  std::copy(bias.begin(), bias.end(), s.bias.begin());
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

/// done(first row, rows, their scores) for all rows.
template <typename Done>
void score_rows(const KernelRun& run, const LinearState& s, Done&& done) {
  const Tensor& x = run.input(0);
  run.parallel_for(
      x.dim(0), grain_of_rows(s.features * s.targets), [&](int64_t begin, int64_t end) {
        std::vector<double> scores(static_cast<size_t>(kLinearRows * s.targets));
        std::vector<float> room(static_cast<size_t>(kLinearRows * s.features));
        for (int64_t row = begin; row < end; row += kLinearRows) {
          const int64_t rows = std::min(kLinearRows, end - row);
          linear_scores(x.data<float>() + row * s.features, rows, s.features, s.weights.data(),
                        s.bias.data(), s.targets, room.data(), scores.data());
          if (s.transform != ops::PostTransform::kNone)
            for (int64_t r = 0; r < rows; ++r)
              ops::transform_scores(
                  s.transform, {scores.data() + r * s.targets, static_cast<size_t>(s.targets)});
          done(row, rows, scores.data());
        }
      });
}

Status run_linear_regressor(KernelRun& run) {
  const auto& s = run.state<LinearState>();
  const int64_t dims[] = {run.input(0).dim(0), s.targets};
  TRY(Tensor * y, run.output(0, DType::kFloat32, dims));
  float* to = y->data<float>();
  score_rows(run, s, [&](int64_t row, int64_t rows, const double* scores) {
    for (int64_t i = 0; i < rows * s.targets; ++i)
      to[row * s.targets + i] = static_cast<float>(scores[i]);
  });
  return ok();
}

Status run_linear_classifier(KernelRun& run) {
  const auto& s = run.state<LinearState>();
  const int64_t dims[] = {run.input(0).dim(0), s.targets};
  int64_t* labels = nullptr;
  float* to = nullptr;
  if (run.wants_output(0)) {
    TRY(Tensor * y, run.output(0, DType::kInt64, std::span(dims, 1)));
    labels = y->data<int64_t>();
  }
  if (run.wants_output(1)) {
    TRY(Tensor * z, run.output(1, DType::kFloat32, dims));
    to = z->data<float>();
  }
  score_rows(run, s, [&](int64_t row, int64_t rows, const double* scores) {
    if (labels != nullptr)
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t best =
            ops::greatest({scores + r * s.targets, static_cast<size_t>(s.targets)});
        labels[row + r] = s.labels[static_cast<size_t>(best)];
      }
    if (to != nullptr)
      for (int64_t i = 0; i < rows * s.targets; ++i)
        to[row * s.targets + i] = static_cast<float>(scores[i]);
  });
  return ok();
}

// SVMRegressor.

struct SvmState final : KernelState {
  SvmParameters parameters;
  ops::PostTransform transform = ops::PostTransform::kNone;
  std::vector<double> vectors;       ///< [feature][padded]
  std::vector<double> coefficients;  ///< one a support
  int64_t features = 1, supports = 0, padded = 0;
  double rho = 0;
  bool one_class = false;
};

bool plan_svm(const KernelQuery& q, SvmState* s) {
  ops::PostTransform transform;
  if (!has_rows(q) || !known_transform(q, transform)) return false;
  const auto& a = q.attributes;
  const auto coefficients = a.get_floats("coefficients"), vectors = a.get_floats("support_vectors"),
             rho = a.get_floats("rho"), parameters = a.get_floats("kernel_params");
  const int64_t supports = a.get_int("n_supports", 0), features = q.dims(0)[1];
  const Text name = a.get_string("kernel_type", "LINEAR");
  constexpr std::pair<std::string_view, SvmKind> kNames[] = {{"LINEAR", SvmKind::kLinear},
                                                             {"POLY", SvmKind::kPoly},
                                                             {"RBF", SvmKind::kRbf},
                                                             {"SIGMOID", SvmKind::kSigmoid}};
  const auto* kind = std::find_if(std::begin(kNames), std::end(kNames),
                                  [&](const auto& row) { return row.first == name; });
  if (supports < 1 || supports > 1 << 24 || features > 1 << 20 || kind == std::end(kNames) ||
      static_cast<int64_t>(coefficients.size()) < supports || rho.empty() ||
      static_cast<int64_t>(vectors.size()) / features < supports ||
      (!parameters.empty() && parameters.size() != 3))
    return false;
  if (s == nullptr) return true;
  s->transform = transform;
  s->parameters.kind = kind->second;
  if (!parameters.empty()) {
    s->parameters.gamma = static_cast<double>(parameters[0]);
    s->parameters.coef0 = static_cast<double>(parameters[1]);
    s->parameters.degree = static_cast<double>(parameters[2]);
  }
  s->features = features;
  s->supports = supports;
  s->padded = (supports + kSvmStep - 1) / kSvmStep * kSvmStep;
  s->rho = static_cast<double>(rho[0]);
  s->one_class = a.get_int("one_class", 0) != 0;
  s->vectors.resize(static_cast<size_t>(features * s->padded));
  s->coefficients.resize(static_cast<size_t>(supports));
  for (int64_t j = 0; j < supports; ++j) {
    s->coefficients[static_cast<size_t>(j)] =
        static_cast<double>(coefficients[static_cast<size_t>(j)]);
    for (int64_t i = 0; i < features; ++i)
      s->vectors[static_cast<size_t>(i * s->padded + j)] =
          static_cast<double>(vectors[static_cast<size_t>(j * features + i)]);
  }
  return true;
}

bool supports_svm(const KernelQuery& q) { return plan_svm(q, nullptr); }
Result<std::unique_ptr<KernelState>> prepare_svm(const PrepareContext& q) {
  auto state = std::make_unique<SvmState>();
  plan_svm(q, state.get());
  return state;
}

Status run_svm(KernelRun& run) {
  const auto& s = run.state<SvmState>();
  const Tensor& x = run.input(0);
  const int64_t dims[] = {x.dim(0), 1};
  TRY(Tensor * y, run.output(0, DType::kFloat32, dims));
  float* to = y->data<float>();
  run.parallel_for(x.dim(0), grain_of_rows(s.features * s.padded), [&](int64_t begin, int64_t end) {
    std::vector<double> values(static_cast<size_t>(s.padded));
    for (int64_t row = begin; row < end; ++row) {
      svm_values(s.parameters, x.data<float>() + row * s.features, s.vectors.data(), s.features,
                 s.padded, values.data());
      double sum = s.rho + dot_f64(values.data(), s.coefficients.data(), s.supports);
      if (s.one_class) sum = sum > 0 ? 1 : -1;
      ops::transform_scores(s.transform, {&sum, 1});
      to[row] = static_cast<float>(sum);
    }
  });
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
  run.parallel_for(runs, grain_of_rows(s.run), [&](int64_t begin, int64_t end) {
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
  return has_rows(q) && read_norm(q, norm);
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
  run.parallel_for(x.dim(0), grain_of_rows(features), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      divide_by_norm(norm, from + row * features, features, to + row * features);
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
KERNEL(ml_svm_regressor) = {
    .name = "svm_regressor",
    .op = "SVMRegressor",
    .domain = "ai.onnx.ml",
    .supports = supports_svm,
    .prepare = prepare_svm,
    .run = run_svm,
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
