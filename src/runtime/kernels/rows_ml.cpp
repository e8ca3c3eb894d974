// Scaler and Normalizer of ai.onnx.ml, in double as the reference computes them.

#include <algorithm>
#include <vector>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/ml_rows.h"
#include "runtime/kernels/ml_setting.h"

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
