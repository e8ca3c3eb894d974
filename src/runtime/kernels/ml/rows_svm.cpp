// Support vectors of ai.onnx.ml: distances and sums in double as the reference computes them,
// polynomials and sigmoids of floats in float. With the linear kernel
// all vectors of a sum are one.

#include <algorithm>
#include <string>
#include <vector>

#include "ops/kernels/svm.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/ml/ml_rows.h"
#include "runtime/kernels/ml/ml_setting.h"
#include "runtime/kernels/no_host.h"

namespace tombolo {
namespace {

/// The vectors of a machine, laid out for svm_values.
struct SvmVectors {
  SvmParameters parameters;
  std::vector<double> values;  ///< [feature][padded]
  std::vector<float> narrow;   ///< in their place, of floats whose kernel needs no more
  int64_t features = 1, count = 0, padded = 0;

  bool linear() const { return parameters.kind == SvmKind::kLinear; }

  void read(const ops::SvmKernel& kernel, std::span<const float> vectors, int64_t number,
            int64_t width, DType input) {
    using Type = ops::SvmKernel::Type;
    parameters = {kernel.type == Type::kPoly      ? SvmKind::kPoly
                  : kernel.type == Type::kRbf     ? SvmKind::kRbf
                  : kernel.type == Type::kSigmoid ? SvmKind::kSigmoid
                                                  : SvmKind::kLinear,
                  kernel.gamma, kernel.coef0, kernel.degree};
    features = width;
    count = number;
    const int64_t step = count <= kSvmStep / 2 ? kSvmFewStep : kSvmStep;
    padded = (count + step - 1) / step * step;
    if (linear()) return;
    if (input == DType::kFloat32 && parameters.narrow())
      lay_out(vectors, narrow);
    else
      lay_out(vectors, values);
  }
  template <typename T>
  void lay_out(std::span<const float> vectors, std::vector<T>& to) const {
    to.resize(static_cast<size_t>(features * padded));
    for (int64_t j = 0; j < count; ++j)
      for (int64_t i = 0; i < features; ++i)
        to[static_cast<size_t>(i * padded + j)] =
            static_cast<T>(vectors[static_cast<size_t>(j * features + i)]);
  }
};

/// The call of dot_f64() takes as long as some numbers.
double dot(const double* a, const double* b, int64_t n) {
  if (n > 12) return dot_f64(a, b, n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/// to[i] += coefficient * vector[i]
void add_vector(float coefficient, const float* vector, int64_t features, double* to) {
  for (int64_t i = 0; i < features; ++i)
    to[i] += static_cast<double>(coefficient) * static_cast<double>(vector[i]);
}

/// body(row, features of the row, its kernel values) for all rows, in threads; the values are null
/// for the linear kernel. make() gives what each thread has for itself.
template <typename Make, typename Body>
void for_svm_rows(const KernelRun& run, const SvmVectors& v, Make&& make, Body&& body) {
  // Of few supports what surrounds them counts, once for all rows of a group.
  const int64_t group = v.padded < kSvmStep ? 16 : 4;
  const Tensor& x = run.input(0);
  constexpr int64_t kOfRow = 32;  // products that take as long as what surrounds a row's
  const int64_t work = v.features * (v.linear() ? 1 : v.padded) + kOfRow;
  run.parallel_for(
      (x.dim(0) + group - 1) / group, ml_grain(group * work), [&](int64_t first, int64_t last) {
        std::vector<double> wide(static_cast<size_t>(group * v.features));
        std::vector<double> values(static_cast<size_t>(v.linear() ? 0 : group * v.padded));
        std::vector<float> narrow(v.narrow.empty() ? 0 : values.size());
        auto own = make();
        for (int64_t row = first * group; row < std::min(x.dim(0), last * group); row += group) {
          const int64_t rows = std::min(group, x.dim(0) - row);
          if (v.narrow.empty()) widen_features(x, row * v.features, rows * v.features, wide.data());
          if (!v.narrow.empty()) {
            svm_values(v.parameters, x.data<float>() + row * v.features, rows, v.narrow.data(),
                       v.features, v.padded, narrow.data());
            widen_floats(narrow.data(), rows * v.padded, values.data());
          } else if (!v.linear())
            svm_values(v.parameters, wide.data(), rows, v.values.data(), v.features, v.padded,
                       values.data());
          for (int64_t r = 0; r < rows; ++r)
            body(own, row + r, wide.data() + r * v.features,
                 v.linear() ? nullptr : values.data() + r * v.padded);
        }
      });
}

template <typename Read>
auto read_with_host(const KernelQuery& q, Read&& read) {
  NoHost host;
  return read(KernelContext{q.node, q.opset, {}, {}, q.attributes, host, nullptr});
}

// SVMRegressor.

struct RegressorState final : KernelState {
  SvmVectors vectors;
  ops::PostTransform transform = ops::PostTransform::kNone;
  std::vector<double> coefficients;  ///< one a support, or one a feature
  double rho = 0;
  bool one_class = false;
};

bool supports_svm_regressor(const KernelQuery& q) {
  ops::PostTransform transform;
  if (!has_feature_rows(q) || !known_transform(q, transform)) return false;
  const auto& a = q.attributes;
  const int64_t supports = a.get_int("n_supports", 0), features = q.dims(0)[1];
  return supports >= 1 && supports <= 1 << 24 && features <= 1 << 20 &&
         static_cast<int64_t>(a.get_floats("coefficients").size()) >= supports &&
         !a.get_floats("rho").empty() &&
         static_cast<int64_t>(a.get_floats("support_vectors").size()) / features >= supports &&
         read_with_host(q, ops::SvmKernel::read);
}

Result<std::unique_ptr<KernelState>> prepare_svm_regressor(const PrepareContext& q) {
  auto state = std::make_unique<RegressorState>();
  const auto& a = q.attributes;
  known_transform(q, state->transform);
  TRY(const ops::SvmKernel kernel, read_with_host(q, ops::SvmKernel::read));
  const auto coefficients = a.get_floats("coefficients"), vectors = a.get_floats("support_vectors");
  const int64_t supports = a.get_int("n_supports", 0), features = q.dims(0)[1];
  state->vectors.read(kernel, vectors, supports, features, q.dtype(0));
  state->rho = static_cast<double>(a.get_floats("rho")[0]);
  state->one_class = a.get_int("one_class", 0) != 0;
  if (state->vectors.linear()) {
    state->coefficients.resize(static_cast<size_t>(features));
    for (int64_t j = 0; j < supports; ++j)
      add_vector(coefficients[static_cast<size_t>(j)], vectors.data() + j * features, features,
                 state->coefficients.data());
  } else {
    state->coefficients.assign(coefficients.begin(), coefficients.begin() + supports);
  }
  return state;
}

Status run_svm_regressor(KernelRun& run) {
  const auto& s = run.state<RegressorState>();
  const int64_t dims[] = {run.input(0).dim(0), 1};
  TRY(Tensor * y, run.output(0, DType::kFloat32, dims));
  float* to = y->data<float>();
  const auto count = static_cast<int64_t>(s.coefficients.size());
  for_svm_rows(
      run, s.vectors, [] { return 0; },
      [&](int, int64_t row, const double* x, const double* values) {
        double sum = s.rho + dot(values != nullptr ? values : x, s.coefficients.data(), count);
        if (s.one_class) sum = sum > 0 ? 1 : -1;
        ops::transform_scores(s.transform, {&sum, 1});
        to[row] = static_cast<float>(sum);
      });
  return ok();
}

// SVMClassifier.

struct ClassifierState final : KernelState {
  ops::SvmClassification rule;
  SvmVectors vectors;
  /// As the attribute has them, [class - 1][vector]; of the linear kernel [pair][feature].
  std::vector<double> coefficients;
  size_t columns = 1;  ///< of scores given out
};

bool supports_svm_classifier(const KernelQuery& q) {
  const auto& a = q.attributes;
  // What is linear from the start, and what one class means, the reference knows.
  if (!has_feature_rows(q) || a.get_ints("vectors_per_class").empty() ||
      std::max(a.get_ints("classlabels_ints").size(), a.get_strings("classlabels_strings").size()) <
          2)
    return false;
  const auto rule = read_with_host(q, [&](const KernelContext& context) {
    return ops::read_svm_classifier(context, q.dims(0)[1]);
  });
  return rule && !rule->linear();
}

Result<std::unique_ptr<KernelState>> prepare_svm_classifier(const PrepareContext& q) {
  auto state = std::make_unique<ClassifierState>();
  TRY(state->rule, read_with_host(q, [&](const KernelContext& context) {
        return ops::read_svm_classifier(context, q.dims(0)[1]);
      }));
  const ops::SvmClassification& rule = state->rule;
  const int64_t count = rule.starts.back();
  state->vectors.read(rule.kernel, rule.vectors, count, rule.features, q.dtype(0));
  std::vector<double> scores, votes;
  rule.decide_pairs([](size_t, size_t, size_t) { return 0.0; }, scores, votes);
  state->columns = scores.size();
  if (!state->vectors.linear()) {
    state->coefficients.assign(rule.coefficients.begin(), rule.coefficients.end());
    return state;
  }
  state->coefficients.resize(rule.pairs() * static_cast<size_t>(rule.features));
  double* to = state->coefficients.data();
  const auto add = [&](size_t line, size_t of) {
    for (int64_t v = rule.starts[of]; v < rule.starts[of + 1]; ++v)
      add_vector(rule.coefficients[line * static_cast<size_t>(count) + static_cast<size_t>(v)],
                 rule.vectors.data() + v * rule.features, rule.features, to);
  };
  for (size_t i = 0; i < rule.classes; ++i)
    for (size_t j = i + 1; j < rule.classes; ++j, to += rule.features) {
      add(j - 1, i);
      add(i, j);
    }
  return state;
}

Status run_svm_classifier(KernelRun& run) {
  const auto& s = run.state<ClassifierState>();
  const ops::SvmClassification& rule = s.rule;
  const int64_t dims[] = {run.input(0).dim(0), static_cast<int64_t>(s.columns)};
  int64_t* numbers = nullptr;
  std::string* names = nullptr;
  float* to = nullptr;
  const bool text = !rule.labels.strings.empty();
  if (run.wants_output(0)) {
    TRY(Tensor * y, run.output(0, text ? DType::kString : DType::kInt64, std::span(dims, 1)));
    if (text)
      names = y->strings().data();
    else
      numbers = y->data<int64_t>();
  }
  if (run.wants_output(1)) {
    TRY(Tensor * z, run.output(1, DType::kFloat32, dims));
    to = z->data<float>();
  }
  struct Own {
    std::vector<double> scores, votes;
  };
  for_svm_rows(
      run, s.vectors, [] { return Own(); },
      [&](Own& own, int64_t row, const double* x, const double* values) {
        const auto part = [&](size_t line, size_t of) {
          const int64_t first = rule.starts[of];
          return dot(values + first,
                     s.coefficients.data() + static_cast<int64_t>(line) * s.vectors.count + first,
                     rule.starts[of + 1] - first);
        };
        const auto score = [&](size_t pair, size_t i, size_t j) {
          const double rho = static_cast<double>(rule.rho[pair]);
          if (values == nullptr)
            return rho + dot(x, s.coefficients.data() + static_cast<int64_t>(pair) * rule.features,
                             rule.features);
          return rho + part(j - 1, i) + part(i, j);
        };
        const auto best = static_cast<size_t>(rule.decide_pairs(score, own.scores, own.votes));
        if (numbers != nullptr) numbers[row] = rule.labels.ints[best];
        if (names != nullptr) names[row] = rule.labels.strings[best];
        for (size_t i = 0; i < s.columns && to != nullptr; ++i)
          to[static_cast<size_t>(row) * s.columns + i] = static_cast<float>(own.scores[i]);
      });
  return ok();
}

}  // namespace

KERNEL(ml_svm_regressor) = {
    .name = "svm_regressor",
    .op = "SVMRegressor",
    .domain = "ai.onnx.ml",
    .supports = supports_svm_regressor,
    .prepare = prepare_svm_regressor,
    .run = run_svm_regressor,
    .any_rows = true,
};
KERNEL(ml_svm_classifier) = {
    .name = "svm_classifier",
    .op = "SVMClassifier",
    .domain = "ai.onnx.ml",
    .supports = supports_svm_classifier,
    .prepare = prepare_svm_classifier,
    .run = run_svm_classifier,
    .any_rows = true,
};

}  // namespace tombolo
