// Slice with steps along the last axis; Range.

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "ops/kernels/slice_range.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/tensor/pick_steps.h"

namespace tombolo {
namespace {

struct SliceAxis {
  int64_t count, step;  ///< step: in elements of the input
};
struct SliceState final : KernelState {
  int64_t offset = 0;  ///< of the first element
  Dims output;
  int64_t rows = 1;
  std::vector<SliceAxis> axes;  ///< those around the rows, the outermost first
  SliceAxis row{1, 1};
  PickStepsFn* pick = nullptr;
};

/// The numbers of an optional input; false where they are not known.
bool slice_numbers(const KernelQuery& q, size_t index, Dims& numbers) {
  if (!q.has_input(index)) return true;
  const Tensor* given = q.constant(index);
  if (given == nullptr || given->rank() != 1 ||
      (given->dtype() != DType::kInt64 && given->dtype() != DType::kInt32))
    return false;
  for (int64_t i = 0; i < given->size(); ++i) numbers.push_back(given->get_int64(i));
  return true;
}

bool plan_slice(const KernelQuery& q, SliceState& s) {
  if (active_isa() == Isa::kScalar || q.opset < 10 || q.inputs.empty()) return false;
  s.pick = pick_steps_fn(bytes_of(q.dtype(0)));
  Dims starts, ends, axes, steps;
  if (s.pick == nullptr || !slice_numbers(q, 1, starts) || !slice_numbers(q, 2, ends) ||
      !slice_numbers(q, 3, axes) || !slice_numbers(q, 4, steps))
    return false;
  const std::span<const int64_t> x = q.dims(0);
  if (x.empty() || element_count(x) < 1) return false;
  if (!q.has_input(3))
    for (uint32_t k = 0; k < starts.size(); ++k) axes.push_back(k);
  if (!q.has_input(4)) steps.resize(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    return false;
  s.output = Dims(x);
  Dims step;
  step.resize(static_cast<uint32_t>(x.size()), 1);
  for (size_t j = x.size() - 1; j-- > 0;) step[j] = step[j + 1] * x[j + 1];
  std::vector<bool> is_cut(x.size());
  for (size_t k = 0; k < starts.size(); ++k) {
    const auto rank = static_cast<int64_t>(x.size());
    const int64_t axis = axes[k] < 0 ? axes[k] + rank : axes[k], by = steps[k];
    if (axis < 0 || axis >= rank || by == 0 || is_cut[static_cast<size_t>(axis)]) return false;
    const auto j = static_cast<size_t>(axis);
    is_cut[j] = true;
    const auto [start, count] = ops::slice_range(starts[k], ends[k], by, x[j]);
    if (count == 0) return false;
    s.output[j] = count;
    s.offset += start * step[j];
    if (count > 1) step[j] *= by;
  }
  // Short rows would cost more to find than to copy: another order of the axes is better there.
  constexpr int64_t kShortest = 16;
  size_t last = x.size() - 1;
  while (last > 0 && s.output[last] == 1) --last;
  s.row = {s.output[last], step[last]};
  const bool steps_over = s.row.step != 1;
  const bool small_step = s.row.step > -64 && s.row.step < 64;
  if (s.row.count < kShortest || !steps_over || !small_step) return false;
  for (size_t j = 0; j < last; ++j) {
    if (s.output[j] == 1) continue;
    s.rows *= s.output[j];
    s.axes.push_back({s.output[j], step[j]});
  }
  return true;
}
bool supports_slice_steps(const KernelQuery& q) {
  SliceState state;
  return plan_slice(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_slice(const PrepareContext& q) {
  auto state = std::make_unique<SliceState>();
  plan_slice(q, *state);
  return state;
}
Status run_slice(KernelRun& run) {
  const auto& s = run.state<SliceState>();
  const DType dtype = run.input(0).dtype();
  TRY(Tensor * y, run.output(0, dtype, s.output));
  const auto size = static_cast<int64_t>(bytes_of(dtype));
  const std::byte* x = run.data<std::byte>(0);
  std::byte* to = y->data<std::byte>();
  run.parallel_for(s.rows, grain_of(s.row.count, 1 << 14), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t at = s.offset, rest = row;
      for (size_t j = s.axes.size(); j-- > 0; rest /= s.axes[j].count)
        at += rest % s.axes[j].count * s.axes[j].step;
      s.pick(x + at * size, s.row.step, s.row.count, to + row * s.row.count * size);
    }
  });
  return ok();
}

// Range.

bool supports_range(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.size() != 3) return false;
  const DType dtype = q.dtype(0);
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64 && dtype != DType::kInt32 &&
      dtype != DType::kInt64)
    return false;
  for (size_t i = 0; i < 3; ++i)
    if (q.dtype(i) != dtype || q.inputs[i].size() != 1) return false;
  return true;
}

/// Of a range of many: parts of it are made by several threads.
template <typename N, typename T>
void range_parts(const KernelRun& run, N start, N delta, int64_t count, T* y) {
  if constexpr (std::is_floating_point_v<N>) {
    fill_range(start, delta, count, y);
  } else {
    run.parallel_for(count, 1 << 16, [&](int64_t begin, int64_t end) {
      const auto first = static_cast<uint64_t>(start) +
                         static_cast<uint64_t>(begin) * static_cast<uint64_t>(delta);
      fill_range(static_cast<int64_t>(first), delta, end - begin, y + begin);
    });
  }
}

Status run_range(KernelRun& run) {
  const DType dtype = run.input(0).dtype();
  if (is_float(dtype)) {
    const auto given = [&](size_t i) { return run.input(i).get_double(0); };
    const double start = given(0), delta = given(2), steps = std::ceil((given(1) - start) / delta);
    if (delta == 0 || steps != steps)
      return runtime_error("delta is 0, or a bound is not a number");
    if (steps > 1e18) return resource_error("the range is endless");
    const int64_t count = steps > 0 ? static_cast<int64_t>(steps) : 0;
    TRY(Tensor * y, run.output(0, dtype, std::array{count}));
    if (dtype == DType::kFloat32)
      range_parts(run, start, delta, count, y->data<float>());
    else
      range_parts(run, start, delta, count, y->data<double>());
    return ok();
  }
  const auto given = [&](size_t i) { return run.input(i).get_int64(0); };
  const int64_t start = given(0), limit = given(1), delta = given(2);
  if (delta == 0) return runtime_error("delta is 0");
  // The distance may not fit an int64, but fits a uint64.
  const auto from = static_cast<uint64_t>(start), to = static_cast<uint64_t>(limit),
             by = static_cast<uint64_t>(delta);
  uint64_t steps = 0;
  if (delta > 0 && limit > start) steps = (to - from - 1) / by + 1;
  if (delta < 0 && limit < start) steps = (from - to - 1) / (0 - by) + 1;
  const auto count = static_cast<int64_t>(steps);
  TRY(Tensor * y, run.output(0, dtype, std::array{count}));
  if (dtype == DType::kInt32)
    range_parts(run, start, delta, count, y->data<int32_t>());
  else
    range_parts(run, start, delta, count, y->data<int64_t>());
  return ok();
}

}  // namespace

KERNEL(slice_steps) = {
    .name = "slice",
    .op = "Slice",
    .supports = supports_slice_steps,
    .prepare = prepare_slice,
    .run = run_slice,
};
KERNEL(range) = {
    .name = "range",
    .op = "Range",
    .supports = supports_range,
    .run = run_range,
};

}  // namespace tombolo
