// GridSample of floats: places and weights once for all channels, a hundred points at a time. Many
// channels are turned to lie last, so that a tap is a row of them.

#include <algorithm>
#include <vector>

#include "runtime/kernels/image/channels_last.h"
#include "runtime/kernels/image/grid.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/tensor/lookup.h"
#include "runtime/kernels/tensor/transpose_tile.h"

namespace tombolo {
namespace {

constexpr int64_t kPoints = 128;

struct GridState final : KernelState {
  ops::GridMode mode = ops::GridMode::kLinear;
  ops::GridPadding padding = ops::GridPadding::kZeros;
  bool aligned = false;
  bool turned = false;  ///< channels are turned to lie last
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
  // Turning costs about as much as one tap of each element by itself.
  s.turned = x[1] >= 8 && s.points * s.taps >= s.plane;
  if (s.turned) s.scratch_bytes = static_cast<size_t>(element_count(x)) * sizeof(float);
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

/// Offsets and weights of `count` points, tap by tap: all combinations of the axes' taps. The grid
/// names the last axis first.
void point_taps(const GridState& s, const Dims& dims, const float* at, int64_t count,
                int32_t* offsets, double* factors, float* weights) {
  std::fill_n(offsets, count, 0);
  std::fill_n(factors, count, 1.0);
  int64_t filled = 1, stride = 1;
  for (int64_t j = s.axes; j-- > 0;) {
    const int64_t length = dims[static_cast<size_t>(2 + j)];
    const GridAxis axis{length, stride, s.mode, s.padding, s.aligned};
    add_grid_axis(axis, at + s.axes - 1 - j, s.axes, count, filled, offsets, factors);
    filled *= axis.taps();
    stride *= length;
  }
  for (int64_t i = 0; i < s.taps * count; ++i) weights[i] = static_cast<float>(factors[i]);
}

/// Taps that count, in front of the others: how many there are. Steps as in point_taps.
int64_t sort_taps(int64_t taps, int64_t count, const int32_t* offsets, const float* weights,
                  int32_t* rows, float* shares) {
  int64_t kept = 0;
  for (int64_t t = 0; t < taps; ++t) {
    rows[kept] = offsets[t * count];
    shares[kept] = weights[t * count];
    kept += weights[t * count] != 0;
  }
  return kept;
}

Status run_grid(KernelRun& run) {
  const auto& s = run.state<GridState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, DType::kFloat32, s.output));
  const float *from = x.data<float>(), *grid = run.data<float>(1);
  float* to = y->data<float>();
  const int64_t channels = x.dim(1), tiles = (s.points + kPoints - 1) / kPoints;
  const int64_t work = kPoints * s.taps;
  auto* turned = reinterpret_cast<float*>(run.scratch());
  if (s.turned) turn_channels_last(run, x, s.plane, turned);
  run.parallel_for(
      x.dim(0) * tiles, std::max<int64_t>(1, (1 << 14) / (work * channels)),
      [&](int64_t begin, int64_t end) {
        std::vector<int32_t> offsets(static_cast<size_t>(work)),
            rows(static_cast<size_t>(s.taps) + 1);
        std::vector<double> factors(offsets.size());
        std::vector<float> weights(offsets.size()), shares(rows.size());
        std::vector<float> results(static_cast<size_t>(s.turned ? kPoints * channels : 0));
        for (int64_t task = begin; task < end; ++task) {
          const int64_t n = task / tiles, first = task % tiles * kPoints;
          const int64_t count = std::min(kPoints, s.points - first);
          point_taps(s, x.dims(), grid + (n * s.points + first) * s.axes, count, offsets.data(),
                     factors.data(), weights.data());
          float* out = to + n * channels * s.points + first;
          if (!s.turned) {
            for (int64_t c = 0; c < channels; ++c)
              blend_places(from + (n * channels + c) * s.plane, offsets.data(), weights.data(),
                           s.taps, count, out + c * s.points);
            continue;
          }
          for (int64_t i = 0; i < count; ++i) {
            const int64_t taps = sort_taps(s.taps, count, offsets.data() + i, weights.data() + i,
                                           rows.data(), shares.data());
            float* result = results.data() + i * channels;
            if (taps == 0)
              std::fill_n(result, channels, 0.0f);
            else
              blend_rows_at(turned + n * s.plane * channels, rows.data(), shares.data(), taps,
                            channels, result);
          }
          transpose_tile(reinterpret_cast<const std::byte*>(results.data()), channels,
                         reinterpret_cast<std::byte*>(out), s.points, count, channels, 4);
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
