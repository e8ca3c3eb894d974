// AffineGrid of floats and doubles whose size is part of the choice: lines of points, in double as
// the reference has them.

#include <algorithm>
#include <vector>

#include "runtime/kernels/image/affine_grid.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"

namespace tombolo {
namespace {

struct AffineState final : KernelState {
  std::vector<double> along[3];  ///< positions of each axis, from -1 to 1
  Dims output;
};

bool plan_affine(const KernelQuery& q, DType dtype, AffineState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != 2 || q.dtype(0) != dtype ||
      q.constant(1) == nullptr || q.dtype(1) != DType::kInt64 || q.dims(1).size() != 1)
    return false;
  const Tensor& size = *q.constant(1);
  const auto theta = q.dims(0);
  const int64_t axes = size.size() - 2;
  if ((axes != 2 && axes != 3) || theta.size() != 3 || theta[0] != size.data<int64_t>()[0] ||
      theta[1] != axes || theta[2] != axes + 1 || theta[0] < 1)
    return false;
  constexpr int64_t kLongest = 1 << 20;
  s.output = {theta[0]};
  double points = static_cast<double>(theta[0]);
  for (int64_t j = 0; j < axes; ++j) {
    const int64_t length = size.data<int64_t>()[2 + j];
    if (length < 1 || length > kLongest) return false;
    points *= static_cast<double>(length);
    s.output.push_back(length);
  }
  s.output.push_back(axes);
  return points < 1e15;  // what does not fit into memory the reference says
}
template <DType kType>
bool supports_affine(const KernelQuery& q) {
  AffineState state;
  return plan_affine(q, kType, state);
}

template <DType kType>
Result<std::unique_ptr<KernelState>> prepare_affine(const PrepareContext& q) {
  auto state = std::make_unique<AffineState>();
  plan_affine(q, kType, *state);
  const bool aligned = q.attributes.get_int("align_corners", 0) != 0;
  for (size_t axis = 0; axis + 2 < state->output.size(); ++axis) {
    const int64_t length = state->output[axis + 1];
    std::vector<double>& along = state->along[axis];
    along.assign(static_cast<size_t>(length) + 16, 0.0);  // whole vectors are read
    for (int64_t i = 0; i < length; ++i) {
      const auto at = static_cast<double>(i), all = static_cast<double>(length);
      along[static_cast<size_t>(i)] =
          aligned ? 2 * at / std::max(all - 1, 1.0) - 1 : (2 * at + 1) / all - 1;
    }
  }
  return state;
}

template <typename T, DType kType>
Status run_affine(KernelRun& run) {
  const auto& s = run.state<AffineState>();
  TRY(Tensor * y, run.output(0, kType, s.output));
  const int64_t axes = s.output[s.output.size() - 1], width = s.output[static_cast<size_t>(axes)];
  const int64_t height = s.output[static_cast<size_t>(axes - 1)];
  const int64_t lines = (axes == 3 ? s.output[1] : 1) * height;
  const T* theta = run.data<T>(0);
  T* const out = y->data<T>();
  run.parallel_for(s.output[0] * lines, grain_of(width * axes), [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const T* factors = theta + line / lines * axes * (axes + 1);
      // The last axis comes first in a position: (x, y) or (x, y, z).
      const double down = s.along[axes - 2][static_cast<size_t>(line % height)];
      const double deep = axes == 3 ? s.along[0][static_cast<size_t>(line % lines / height)] : 0;
      double start[3] = {}, slope[3] = {};
      for (int64_t j = 0; j < axes; ++j, factors += axes + 1) {
        slope[j] = static_cast<double>(factors[0]);
        start[j] = static_cast<double>(factors[axes]) + static_cast<double>(factors[1]) * down;
        if (axes == 3) start[j] += static_cast<double>(factors[2]) * deep;
      }
      affine_line(s.along[axes - 1].data(), width, start, slope, axes, out + line * width * axes);
    }
  });
  return ok();
}

}  // namespace

KERNEL(affine_grid_f32) = {
    .name = "affine_grid_f32",
    .op = "AffineGrid",
    .supports = supports_affine<DType::kFloat32>,
    .prepare = prepare_affine<DType::kFloat32>,
    .run = run_affine<float, DType::kFloat32>,
    .values = 1u << 1,
};
KERNEL(affine_grid_f64) = {
    .name = "affine_grid_f64",
    .op = "AffineGrid",
    .supports = supports_affine<DType::kFloat64>,
    .prepare = prepare_affine<DType::kFloat64>,
    .run = run_affine<double, DType::kFloat64>,
    .values = 1u << 1,
};

}  // namespace tombolo
