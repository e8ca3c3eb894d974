#include <algorithm>
#include <cmath>

#include "ops/infer_helpers.h"
#include "ops/kernels/arguments.h"
#include "ops/kernels/by_parts.h"
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
enum class Padding : uint8_t { kZeros, kBorder, kReflection };

/// Reflects x into [low, high].
double reflect(double x, double low, double high) {
  const double range = high - low;
  if (!(range > 0)) return low;
  double away = std::fabs(x - low);
  const double turns = std::floor(away / range);
  away -= turns * range;
  return std::fmod(turns, 2) == 0 ? low + away : high - away;
}

/// What one axis contributes: up to four elements and their weights.
struct AxisTaps {
  int count = 0;
  int64_t index[4];  ///< -1 stands for zero
  double weight[4];
};

AxisTaps axis_taps(double x, int64_t length, std::string_view mode, Padding padding, bool aligned) {
  const auto last = static_cast<double>(length - 1);
  const double low = aligned ? 0 : -0.5, high = aligned ? last : last + 0.5;
  x = aligned ? (x + 1) / 2 * last : ((x + 1) * static_cast<double>(length) - 1) / 2;
  if (mode == "nearest") x = std::nearbyint(x);
  if (padding == Padding::kBorder && !(x >= low && x <= high))
    x = x != x ? 0 : std::clamp(x, 0.0, last);
  if (padding == Padding::kReflection && !(x >= low && x <= high)) x = reflect(x, low, high);
  // What lies this far outside is outside in every mode; NaN too.
  if (!(std::fabs(x) < 1e15)) x = -8;
  const double floor = std::floor(x), t = x - floor;
  const auto base = static_cast<int64_t>(floor);
  AxisTaps taps;
  auto add = [&](int64_t index, double weight) {
    if (index < 0 || index >= length) {
      if (padding == Padding::kZeros) index = -1;
      if (padding == Padding::kReflection)
        index = static_cast<int64_t>(reflect(static_cast<double>(index), low, high));
      if (padding != Padding::kZeros) index = std::clamp<int64_t>(index, 0, length - 1);
    }
    taps.index[taps.count] = index;
    taps.weight[taps.count++] = weight;
  };
  if (mode == "nearest") {
    add(base, 1);
  } else if (mode == "linear" || mode == "bilinear") {
    add(base, 1 - t);
    add(base + 1, t);
  } else {
    constexpr double a = -0.75;
    auto near = [](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    auto far = [](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    add(base - 1, far(t + 1));
    add(base, near(t));
    add(base + 1, near(1 - t));
    add(base + 2, far(2 - t));
  }
  return taps;
}

template <typename T>
void sample_grid(const KernelContext& context, const Tensor& x, const Tensor& grid,
                 std::string_view mode, Padding padding, bool aligned, Tensor& out) {
  const size_t axes = x.rank() - 2;
  const Dims strides = contiguous_strides(x.dims());
  const int64_t channels = x.dim(1);
  const int64_t points = product(grid.dims(), 1, axes + 1);
  context.parallel_for(x.dim(0) * points, 256, [&](int64_t begin, int64_t end) {
    std::vector<AxisTaps> taps(axes);
    std::vector<std::pair<int64_t, double>> points_of;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / points;
      Dims counts;
      for (size_t j = 0; j < axes; ++j) {
        // The grid names the last axis first.
        const double at =
            grid.get_double((i + 1) * static_cast<int64_t>(axes) - 1 - static_cast<int64_t>(j));
        taps[j] = axis_taps(at, x.dim(2 + j), mode, padding, aligned);
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
  constexpr std::string_view kModes[] = {"linear", "bilinear", "cubic", "bicubic", "nearest"};
  constexpr std::string_view kPaddings[] = {"zeros", "border", "reflection"};
  const auto* found = std::find(std::begin(kPaddings), std::end(kPaddings), padding);
  if (std::find(std::begin(kModes), std::end(kModes), mode) == std::end(kModes) ||
      found == std::end(kPaddings))
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
    if (out.size() != 0)
      sample_grid<T>(context, numbers, *grid, mode,
                     static_cast<Padding>(found - std::begin(kPaddings)), aligned, out);
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
  if (step.rank(0) != 4) return step.cannot("it sampled images only");
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
    .down = {{20, 16, step_old_mode_names}},
};

}  // namespace tombolo::ops
