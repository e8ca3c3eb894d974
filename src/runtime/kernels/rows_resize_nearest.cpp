// Resize to twice the width by nearest neighbours, of 32-bit elements: each row is doubled, into
// two rows at once where it comes twice.

#include <algorithm>
#include <vector>

#include "ops/kernels/resize.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/no_host.h"
#include "runtime/kernels/resample.h"

namespace tombolo {
namespace {

struct NearestState final : KernelState {
  Dims output;
  std::vector<int64_t> rows;  ///< where each row of the output comes from, in elements
};

bool plan_nearest(const KernelQuery& q, NearestState& s) {
  if (active_isa() == Isa::kScalar || q.inputs.empty() || bits_of(q.dtype(0)) != 32 ||
      q.attributes.get_string("mode", "nearest") != "nearest" || q.dims(0).empty() ||
      element_count(q.dims(0)) < 1 ||
      q.attributes.get_string("coordinate_transformation_mode", "half_pixel") ==
          "tf_crop_and_resize")
    return false;
  std::vector<RunValue> values(q.inputs.size());
  std::vector<const RunValue*> inputs(q.inputs.size(), nullptr);
  for (size_t i = 1; i < q.inputs.size(); ++i) {
    if (!q.has_input(i)) continue;
    if (q.constant(i) == nullptr) return false;
    values[i] = RunValue(*q.constant(i));
    inputs[i] = &values[i];
  }
  NoHost host;
  const KernelContext context{q.node, q.opset, inputs, {}, q.attributes, host, nullptr};
  const auto plan = ops::plan_resize(context, q.dims(0));
  if (!plan) return false;
  const size_t rank = q.dims(0).size();
  s.rows = {0};
  for (size_t j = 0; j < rank; ++j) {
    const auto places = ops::resize_taps(context, plan->options, plan->axes[j], q.dims(0)[j]);
    if (!places) return false;
    s.output.push_back(static_cast<int64_t>(places->size()));
    if (j + 1 == rank) {
      for (size_t i = 0; i < places->size(); ++i)
        if ((*places)[i].first != static_cast<int64_t>(i / 2)) return false;
      return static_cast<int64_t>(places->size()) == 2 * q.dims(0)[j] &&
             element_count(s.output) > 0;
    }
    if (s.rows.size() * places->size() > size_t{1} << 22) return false;
    std::vector<int64_t> next;
    for (const int64_t row : s.rows)
      for (const auto& place : *places) next.push_back(row * q.dims(0)[j] + place.first);
    s.rows = std::move(next);
  }
  return false;
}
bool supports_nearest(const KernelQuery& q) {
  NearestState state;
  return plan_nearest(q, state);
}
Result<std::unique_ptr<KernelState>> prepare_nearest(const PrepareContext& q) {
  auto state = std::make_unique<NearestState>();
  plan_nearest(q, *state);
  for (int64_t& row : state->rows) row *= q.dims(0).back();
  return state;
}

Status run_nearest(KernelRun& run) {
  const auto& s = run.state<NearestState>();
  const Tensor& x = run.input(0);
  TRY(Tensor * y, run.output(0, x.dtype(), s.output));
  const uint32_t* from = x.data<uint32_t>();
  uint32_t* to = y->data<uint32_t>();
  const int64_t width = x.dims().back();
  run.parallel_for(static_cast<int64_t>(s.rows.size()), std::max<int64_t>(1, (1 << 14) / width),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t r = begin; r < end; ++r) {
                       const int64_t source = s.rows[static_cast<size_t>(r)];
                       uint32_t* row = to + r * 2 * width;
                       const bool pair =
                           r + 1 < end && s.rows[static_cast<size_t>(r) + 1] == source;
                       double_row(from + source, width, row, pair ? row + 2 * width : nullptr);
                       if (pair) ++r;
                     }
                   });
  return ok();
}

}  // namespace

KERNEL(resize_nearest) = {
    .name = "resize",
    .op = "Resize",
    .supports = supports_nearest,
    .prepare = prepare_nearest,
    .run = run_nearest,
    .priority = -1,
};

}  // namespace tombolo
