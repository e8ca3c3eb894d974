// GridSample of floats: places and weights once for all channels, a few hundred points at a time.

#include <algorithm>
#include <vector>

#include "ops/kernels/grid_taps.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/lookup.h"

namespace tombolo {
namespace {

constexpr int64_t kPoints = 128;

struct GridState final : KernelState {
  ops::GridMode mode = ops::GridMode::kLinear;
  ops::GridPadding padding = ops::GridPadding::kZeros;
  bool aligned = false;
  int64_t axes = 2, taps = 4, plane = 1, points = 1;
  Dims output;
};

bool plan_grid(const KernelQuery& q, GridState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 2 || q.dtype(0) != DType::kFloat32 ||
      q.dtype(1) != DType::kFloat32)
    return false;
  const auto x = q.dims(0), grid = q.dims(1);
  if (x.size() < 3 || x.size() > 5 || grid.size() != x.size() || grid[0] != x[0] ||
      grid.back() != static_cast<int64_t>(x.size()) - 2 || element_count(x) < 1 ||
      element_count(grid) < 1)
    return false;
  if (!ops::read_grid_mode(q.attributes.get_string("mode", "linear"), s.mode) ||
      !ops::read_grid_padding(q.attributes.get_string("padding_mode", "zeros"), s.padding))
    return false;
  s.aligned = q.attributes.get_int("align_corners", 0) != 0;
  s.axes = static_cast<int64_t>(x.size()) - 2;
  s.plane = element_count(x.subspan(2));
  s.points = element_count(grid.subspan(1, static_cast<size_t>(s.axes)));
  const int64_t each = s.mode == ops::GridMode::kNearest  ? 1
                       : s.mode == ops::GridMode::kLinear ? 2
                                                          : 4;
  s.taps = 1;
  for (int64_t j = 0; j < s.axes; ++j) s.taps *= each;
  s.output = {x[0], x[1]};
  for (size_t j = 1; j + 1 < grid.size(); ++j) s.output.push_back(grid[j]);
  return s.plane < INT32_MAX;
}
bool supports_grid(const KernelQuery& q) {
  GridState state;
  return plan_grid(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_grid(const PrepareContext& q) {
  auto state = std::make_unique<GridState>();
  plan_grid(q, *state);
  return state;
}

/// Offsets and weights of one point, `count` apart: all combinations of the axes' taps. The grid
/// names the last axis first.
void point_taps(const GridState& s, const Dims& dims, const float* at, int64_t count,
                int32_t* offsets, float* weights) {
  int64_t places[64];
  double factors[64];
  places[0] = 0;
  factors[0] = 1;
  int64_t filled = 1, stride = 1;
  for (int64_t j = s.axes; j-- > 0;) {
    const auto axis = static_cast<size_t>(2 + j);
    const ops::GridTaps taps = ops::grid_taps(static_cast<double>(at[s.axes - 1 - j]), dims[axis],
                                              s.mode, s.padding, s.aligned);
    for (int64_t t = taps.count; t-- > 0;) {
      const int64_t index = taps.index[t];
      for (int64_t i = 0; i < filled; ++i) {
        places[t * filled + i] = places[i] + std::max<int64_t>(index, 0) * stride;
        factors[t * filled + i] = index < 0 ? 0 : factors[i] * taps.weight[t];
      }
    }
    filled *= taps.count;
    stride *= dims[axis];
  }
  for (int64_t t = 0; t < filled; ++t) {
    offsets[t * count] = static_cast<int32_t>(places[t]);
    weights[t * count] = static_cast<float>(factors[t]);
  }
}

Status run_grid(KernelRun& run) {
  const auto& s = run.state<GridState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, DType::kFloat32, s.output));
  const float *from = x.data<float>(), *grid = run.data<float>(1);
  float* to = y->data<float>();
  const int64_t channels = x.dim(1), tiles = (s.points + kPoints - 1) / kPoints;
  const int64_t work = kPoints * s.taps;
  run.parallel_for(x.dim(0) * tiles, std::max<int64_t>(1, (1 << 14) / (work * channels)),
                   [&](int64_t begin, int64_t end) {
                     std::vector<int32_t> offsets(static_cast<size_t>(work));
                     std::vector<float> weights(static_cast<size_t>(work));
                     for (int64_t task = begin; task < end; ++task) {
                       const int64_t n = task / tiles, first = task % tiles * kPoints;
                       const int64_t count = std::min(kPoints, s.points - first);
                       for (int64_t i = 0; i < count; ++i)
                         point_taps(s, x.dims(), grid + (n * s.points + first + i) * s.axes, count,
                                    offsets.data() + i, weights.data() + i);
                       for (int64_t c = 0; c < channels; ++c) {
                         const int64_t map = n * channels + c;
                         blend_places(from + map * s.plane, offsets.data(), weights.data(), s.taps,
                                      count, to + map * s.points + first);
                       }
                     }
                   });
  return ok();
}

}  // namespace

KERNEL(grid_sample) = {
    .name = "grid_sample",
    .op = "GridSample",
    .supports = supports_grid,
    .prepare = prepare_grid,
    .run = run_grid,
};

}  // namespace tombolo
