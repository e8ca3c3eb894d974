// Scaler, Imputer and Normalizer of ai.onnx.ml, the sums in double as the reference computes them.

#include <algorithm>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/ml/ml_rows.h"
#include "runtime/kernels/ml/ml_setting.h"

namespace tombolo {
namespace {

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

// Imputer.

struct ImputerState final : KernelState {
  std::vector<float> floats;  ///< what stands for the marker, for as many rows as a run has
  std::vector<double> doubles;
  std::vector<int64_t> longs;
  double marker = 0;
  int64_t long_marker = 0, run = 1;
};

bool supports_imputer(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.empty() || q.dims(0).empty() ||
      element_count(q.dims(0)) < 1)
    return false;
  const bool longs = q.dtype(0) == DType::kInt64;
  if (!longs && q.dtype(0) != DType::kFloat32 && q.dtype(0) != DType::kFloat64) return false;
  const size_t count = longs ? q.attributes.get_ints("imputed_value_int64s").size()
                             : q.attributes.get_floats("imputed_value_floats").size();
  return count == 1 || static_cast<int64_t>(count) == q.dims(0).back();
}
template <typename T, typename From>
void repeat(std::span<const From> list, int64_t run, std::vector<T>& to) {
  for (int64_t i = 0; i < run; ++i)
    to.push_back(static_cast<T>(list[static_cast<size_t>(i) % list.size()]));
}
Result<std::unique_ptr<KernelState>> prepare_imputer(const PrepareContext& q) {
  auto state = std::make_unique<ImputerState>();
  const int64_t features = q.dims(0).back();
  state->run = features * std::max<int64_t>(1, 512 / features);
  state->marker = static_cast<double>(q.attributes.get_float("replaced_value_float", 0));
  state->long_marker = q.attributes.get_int("replaced_value_int64", 0);
  const auto floats = q.attributes.get_floats("imputed_value_floats");
  if (q.dtype(0) == DType::kFloat32)
    repeat(floats, state->run, state->floats);
  else if (q.dtype(0) == DType::kFloat64)
    repeat(floats, state->run, state->doubles);
  else
    repeat(q.attributes.get_ints("imputed_value_int64s"), state->run, state->longs);
  return state;
}
template <typename T>
void impute_runs(const KernelRun& run, int64_t length, T marker, const std::vector<T>& by,
                 Tensor& y) {
  const Tensor& x = run.input(0);
  const int64_t size = x.size();
  const T* from = x.data<T>();
  T* to = y.data<T>();
  run.parallel_for((size + length - 1) / length, ml_grain(length), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * length; i < std::min(size, end * length); i += length)
      impute(from + i, marker, by.data(), std::min(length, size - i), to + i);
  });
}
Status run_imputer(KernelRun& run) {
  const auto& s = run.state<ImputerState>();
  const DType dtype = run.input(0).dtype();
  TRY(Tensor * y, run.output(0, dtype, run.input(0).dims()));
  if (dtype == DType::kFloat32)
    impute_runs(run, s.run, static_cast<float>(s.marker), s.floats, *y);
  else if (dtype == DType::kFloat64)
    impute_runs(run, s.run, s.marker, s.doubles, *y);
  else
    impute_runs(run, s.run, s.long_marker, s.longs, *y);
  return ok();
}

// Normalizer.

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
  return has_feature_rows(q) && read_norm(q, norm);
}
Result<std::unique_ptr<KernelState>> prepare_normalizer(const PrepareContext& q) {
  auto state = std::make_unique<NormalizerState>();
  read_norm(q, state->norm);
  return state;
}
Status run_normalizer(KernelRun& run) {
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, DType::kFloat32, x.dims()));
  float* to = y->data<float>();
  const int64_t features = x.dim(1);
  const RowNorm norm = run.state<NormalizerState>().norm;
  run.parallel_for(x.dim(0), ml_grain(features), [&](int64_t begin, int64_t end) {
    if (x.dtype() == DType::kFloat32)
      return divide_by_norm(norm, x.data<float>() + begin * features, end - begin, features,
                            to + begin * features);
    // Others as doubles, some rows at a time.
    const int64_t some = std::max<int64_t>(1, 1024 / features);
    std::vector<double> wide(static_cast<size_t>(some * features));
    for (int64_t row = begin; row < end; row += some) {
      const int64_t rows = std::min(some, end - row);
      widen_features(x, row * features, rows * features, wide.data());
      divide_by_norm(norm, wide.data(), rows, features, to + row * features);
    }
  });
  return ok();
}

}  // namespace

KERNEL(ml_scaler) = {
    .name = "scaler",
    .op = "Scaler",
    .domain = "ai.onnx.ml",
    .supports = supports_scaler,
    .prepare = prepare_scaler,
    .run = run_scaler,
};
KERNEL(ml_imputer) = {
    .name = "imputer",
    .op = "Imputer",
    .domain = "ai.onnx.ml",
    .supports = supports_imputer,
    .prepare = prepare_imputer,
    .run = run_imputer,
    .in_place = 1,
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
