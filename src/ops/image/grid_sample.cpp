#include <algorithm>
#include <cmath>

#include "ops/expansions.h"
#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/by_parts.h"
#include "ops/kernels/grid_taps.h"
#include "ops/kernels/movement.h"
#include "ops/kernels/numbers.h"
#include "ops/schema.h"
#include "ops/step_context.h"

namespace tombolo::ops {

namespace {
Status infer_grid_sample(InferContext& context) {
  const SymShape* x = context.shape(0);
  const SymShape* grid = context.shape(1);
  const SymShape* known = x != nullptr ? x : grid;
  if (known == nullptr) return ok();
  const size_t rank = known->size();
  if (rank < 3 || (x != nullptr && grid != nullptr && grid->size() != rank))
    return context.error("X and grid must have one rank of at least 3");
  SymShape out(rank);
  if (x != nullptr) {
    out[0] = (*x)[0];
    out[1] = (*x)[1];
  }
  if (grid != nullptr) {
    if (out[0].is_unknown()) out[0] = (*grid)[0];
    for (size_t i = 2; i < rank; ++i) out[i] = (*grid)[i - 1];
  }
  set_shape(context, 0, std::move(out));
  return ok();
}
template <typename T>
void sample_grid(const KernelContext& context, const Tensor& x, const Tensor& grid, GridMode mode,
                 GridPadding padding, bool aligned, Tensor& out) {
  const size_t axes = x.rank() - 2;
  const Dims strides = contiguous_strides(x.dims());
  const int64_t channels = x.dim(1);
  const int64_t points = product(grid.dims(), 1, axes + 1);
  context.parallel_for(x.dim(0) * points, 256, [&](int64_t begin, int64_t end) {
    std::vector<GridTaps> taps(axes);
    std::vector<std::pair<int64_t, double>> points_of;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / points;
      Dims counts;
      for (size_t j = 0; j < axes; ++j) {
        // The grid names the last axis first.
        const double at =
            grid.get_double((i + 1) * static_cast<int64_t>(axes) - 1 - static_cast<int64_t>(j));
        taps[j] = grid_taps(at, x.dim(2 + j), mode, padding, aligned);
        counts.push_back(taps[j].count);
      }
      // All combinations of the axes' taps, once for all channels.
      points_of.clear();
      Odometer walk(counts);
      do {
        double weight = 1;
        int64_t from = 0;
        for (size_t j = 0; j < axes; ++j) {
          const auto tap = static_cast<size_t>(walk.index[j]);
          weight = taps[j].index[tap] < 0 ? 0 : weight * taps[j].weight[tap];
          from += std::max<int64_t>(taps[j].index[tap], 0) * strides[2 + j];
        }
        if (weight != 0) points_of.emplace_back(from, weight);
      } while (walk.next());
      for (int64_t c = 0; c < channels; ++c) {
        const T* plane = x.data<T>() + n * strides[0] + c * strides[1];
        double sum = 0;
        for (const auto& [from, weight] : points_of)
          sum += weight * static_cast<double>(plane[from]);
        T& to = out.data<T>()[(n * channels + c) * points + i % points];
        if constexpr (std::is_floating_point_v<T>)
          to = static_cast<T>(sum);
        else
          to = to_integer<T>(sum);
      }
    }
  });
}

Status sample(KernelContext& context, const Tensor* x) {
  TRY(const Tensor* grid, context.input(1));
  const Text mode = context.attributes.get_string("mode", "linear");
  const Text padding = context.attributes.get_string("padding_mode", "zeros");
  const bool aligned = context.attributes.get_int("align_corners", 0) != 0;
  GridMode how;
  GridPadding beyond;
  if (!read_grid_mode(mode, how) || !read_grid_padding(padding, beyond))
    return context.error("mode \"" + std::string(mode) + "\" or padding_mode \"" +
                         std::string(padding) + "\" is not known");
  const size_t axes = x->rank() < 3 ? 0 : x->rank() - 2;
  if (axes == 0 || grid->rank() != x->rank() || !is_float(grid->dtype()) ||
      grid->dim(0) != x->dim(0) || grid->dim(grid->rank() - 1) != static_cast<int64_t>(axes))
    return context.error("grid " + to_string(*grid) + " does not fit X " + to_string(*x));
  Dims dims{x->dim(0), x->dim(1)};
  for (size_t j = 0; j < axes; ++j) dims.push_back(grid->dim(1 + j));
  return with_numbers(context, *x, [&]<typename T>(const Tensor& numbers) -> Status {
    TRY(Tensor out, context.allocate(dtype_of<T>(), dims));
    if (out.size() != 0 && x->size() == 0)
      return context.error("nothing to sample in " + to_string(*x));
    if (out.size() != 0) sample_grid<T>(context, numbers, *grid, how, beyond, aligned, out);
    return give(context, 0, x->dtype(), std::move(out));
  });
}

Status run_grid_sample(KernelContext& context) {
  TRY(const Tensor* x, context.input(0));
  if (x->is_string() && context.attributes.get_string("mode", "linear") != "nearest")
    return context.error("text can only be sampled by mode \"nearest\"");
  return by_parts(context, *x, [&](const Tensor& numbers) { return sample(context, &numbers); });
}

}  // namespace

namespace {

/// The modes lost the names that they have in two dimensions.
Status step_mode_names(StepContext& step) {
  const Text mode = step.get_string("mode", "bilinear");
  if (mode == "bilinear") step.node.set_string("mode", "linear");
  if (mode == "bicubic") step.node.set_string("mode", "cubic");
  return ok();
}

}  // namespace

namespace {

Status step_old_mode_names(StepContext& step) {
  if (step.rank(0) != 4) return expand_grid_sample(step);  // it sampled images only
  const Text mode = step.get_string("mode", "linear");
  if (mode == "linear") step.node.set_string("mode", "bilinear");
  if (mode == "cubic") step.node.set_string("mode", "bicubic");
  return ok();
}

}  // namespace

OPERATOR(GridSample) = {
    .name = "GridSample",
    .doc = "samples a tensor at given positions",
    .versions = {16, 20, 22},
    .inputs =
        {
            {"X", "T1"},
            {"grid", "T2"},
        },
    .outputs = {{"Y", "T1"}},
    .attributes =
        {
            {"align_corners", 0},
            {"mode", "bilinear", {.until = 19}},
            {"mode", "linear", {.since = 20}},
            {"padding_mode", "zeros"},
        },
    .types =
        {
            {"T1", {{16, kAll}, {22, kBf16}}},
            {"T2", {{16, kFloats}, {22, kBf16}}},
        },
    .infer = infer_grid_sample,
    .reference = run_grid_sample,
    .up = {{16, 20, step_mode_names}},
    .down = {{20, 16, step_old_mode_names}, {16, 0, expand_grid_sample}},
};

}  // namespace tombolo::ops
