// MaxPool, AveragePool and the global pools of floats. Windows slide over the padded image as in
// conv_depthwise.cpp.

#include <algorithm>
#include <limits>

#include "runtime/kernels/gemm.h"
#include "runtime/kernels/geometry.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/rows.h"

namespace tombolo {
namespace {

struct PoolState final : KernelState {
  ConvGeometry shape;
  ConvImage image;
  Dims output;
  bool average = false;
  std::vector<float> counts;  ///< elements of each window
};

template <bool kAverage>
std::optional<SlidingWindow> window_of(const KernelQuery& query) {
  if (active_isa() == Isa::kScalar || query.dtype(0) != DType::kFloat32 ||
      query.dims(0).size() < 3 || element_count(query.dims(0)) < 1 || query.wants_output(1))
    return std::nullopt;
  return read_sliding_window(query.attributes, query.dims(0).subspan(2), {},
                             query.attributes.get_int("ceil_mode", 0) != 0);
}

template <bool kAverage>
bool supports_pool(const KernelQuery& query) {
  return window_of<kAverage>(query).has_value();
}

template <bool kAverage>
Result<std::unique_ptr<KernelState>> prepare_pool(const PrepareContext& context) {
  auto state = std::make_unique<PoolState>();
  const SlidingWindow window = *window_of<kAverage>(context);
  state->shape = window.shape;
  ConvGeometry& s = state->shape;
  s.batch = context.dims(0)[0];
  state->image = plan_image(s);
  state->output = output_dims(s, context.dims(0)[1], context.dims(0).size() - 2);
  state->average = kAverage;
  if (!kAverage) return state;
  // Positions of a window along each axis that count: those inside the input, or inside the
  // padding too; never what lies beyond because the output's size was rounded up.
  const bool pads = context.attributes.get_int("count_include_pad", 0) != 0;
  std::vector<int64_t> along[3];
  for (int axis = 0; axis < 3; ++axis)
    for (int64_t o = 0; o < s.out[axis]; ++o) {
      int64_t count = 0;
      for (int64_t k = 0; k < s.kernel[axis]; ++k) {
        const int64_t at = o * s.stride[axis] - s.pad[axis] + k * s.dilation[axis];
        count += pads ? at < s.in[axis] + window.pad_end[axis] : at >= 0 && at < s.in[axis];
      }
      along[axis].push_back(count);
    }
  for (int64_t d : along[0])
    for (int64_t r : along[1])
      for (int64_t c : along[2]) state->counts.push_back(static_cast<float>(d * r * c));
  return state;
}

Status run_pool(KernelRun& run) {
  const auto& state = run.state<PoolState>();
  const ConvGeometry& s = state.shape;
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, DType::kFloat32, state.output));
  const int64_t pixels = s.out_plane(), columns = state.image.columns;
  const int64_t flat = (s.out[1] - 1) * columns + s.out[2];
  constexpr int64_t kSlack = 256;  // whole vectors are read and written
  run.parallel_for(x.dim(0) * x.dim(1), std::max<int64_t>(1, 8192 / (pixels * s.taps())),
                   [&](int64_t begin, int64_t end) {
                     const int64_t plane = std::max(state.image.plane, s.in_plane());
                     float* image = thread_floats(1, static_cast<size_t>(plane + kSlack));
                     float* sums = thread_floats(2, static_cast<size_t>(flat + kSlack));
                     std::fill_n(image + plane, kSlack, 0.0f);
                     const float fill = state.average ? 0 : -std::numeric_limits<float>::infinity();
                     for (int64_t p = begin; p < end; ++p) {
                       const float* from = x.data<float>() + p * s.in_plane();
                       if (state.image.copy)
                         split_image(s, state.image, from, fill, image);
                       else
                         std::copy_n(from, s.in_plane(), image);
                       float* to = y->data<float>() + p * pixels;
                       for (int64_t d = 0; d < s.out[0]; ++d) {
                         const float* source = image + d * s.stride[0] * state.image.slice;
                         const auto count = static_cast<int64_t>(state.image.taps.size());
                         (state.average ? slide_sum : slide_max)(source, state.image.taps.data(),
                                                                 count, flat, sums);
                         for (int64_t r = 0; r < s.out[1]; ++r, to += s.out[2])
                           std::copy_n(sums + r * columns, s.out[2], to);
                       }
                       if (!state.average) continue;
                       to -= pixels;
                       for (int64_t i = 0; i < pixels; ++i) {
                         const float n = state.counts[static_cast<size_t>(i)];
                         to[i] = n == 0 ? 0 : to[i] / n;
                       }
                     }
                   });
  return ok();
}

bool supports_global_pool(const KernelQuery& query) {
  return active_isa() != Isa::kScalar && query.dtype(0) == DType::kFloat32 &&
         query.dims(0).size() >= 3 && element_count(query.dims(0)) > 0;
}

template <bool kAverage>
Status run_global_pool(KernelRun& run) {
  const Tensor& x = run.input(0);
  Dims dims = x.dims();
  for (uint32_t i = 2; i < dims.size(); ++i) dims[i] = 1;
  TRY(Tensor * y, run.output(0, DType::kFloat32, dims));
  const int64_t planes = x.dim(0) * x.dim(1), plane = x.size() / planes;
  const float* from = x.data<float>();
  float* to = y->data<float>();
  run.parallel_for(planes, std::max<int64_t>(1, 16384 / plane), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const float result = fold_row(kAverage ? Fold::kSum : Fold::kMax, from + p * plane, plane);
      to[p] = kAverage ? result / static_cast<float>(plane) : result;
    }
  });
  return ok();
}

}  // namespace

KERNEL(max_pool_f32) = {
    .name = "max_pool_f32",
    .op = "MaxPool",
    .supports = supports_pool<false>,
    .prepare = prepare_pool<false>,
    .run = run_pool,
};
KERNEL(average_pool_f32) = {
    .name = "average_pool_f32",
    .op = "AveragePool",
    .supports = supports_pool<true>,
    .prepare = prepare_pool<true>,
    .run = run_pool,
};
KERNEL(global_average_pool_f32) = {
    .name = "global_average_pool_f32",
    .op = "GlobalAveragePool",
    .supports = supports_global_pool,
    .run = run_global_pool<true>,
};
KERNEL(global_max_pool_f32) = {
    .name = "global_max_pool_f32",
    .op = "GlobalMaxPool",
    .supports = supports_global_pool,
    .run = run_global_pool<false>,
};

}  // namespace tombolo
