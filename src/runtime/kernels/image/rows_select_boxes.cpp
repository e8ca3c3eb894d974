// NonMaxSuppression: a box is compared with a vector of those that were picked before.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/kernels/image/rows_select_boxes.cpp"
#include "runtime/kernels/targets.h"
// After targets.h, which sets macros for Highway.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <vector>

#include "ops/kernels/select_boxes.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/kernel.h"

HWY_BEFORE_NAMESPACE();
namespace tombolo {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Blocks of 16 boxes: their tops, left, bottom and right sides, and areas. Comparisons are those
/// of std::min and std::max, which numbers that are none tell apart.
bool overlaps_any(const float* blocks, int64_t count, const ops::Box& box, float threshold) {
  const hn::CappedTag<float, 16> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V top = hn::Set(d, box.top), left = hn::Set(d, box.left), bottom = hn::Set(d, box.bottom),
          right = hn::Set(d, box.right), area = hn::Set(d, box.area()),
          limit = hn::Set(d, threshold), zero = hn::Zero(d);
  const auto least = [](V a, V b) HWY_ATTR { return hn::IfThenElse(hn::Lt(b, a), b, a); };
  const auto most = [](V a, V b) HWY_ATTR { return hn::IfThenElse(hn::Lt(a, b), b, a); };
  for (int64_t block = 0; block < count; ++block)
    for (int64_t lane = 0; lane < 16; lane += lanes) {
      const float* other = blocks + block * 80 + lane;
      const V height =
          hn::Sub(least(bottom, hn::LoadU(d, other + 32)), most(top, hn::LoadU(d, other)));
      const V width =
          hn::Sub(least(right, hn::LoadU(d, other + 48)), most(left, hn::LoadU(d, other + 16)));
      const V areas = hn::LoadU(d, other + 64);
      const auto meet =
          hn::And(hn::And(hn::Gt(height, zero), hn::Gt(width, zero)), hn::Gt(areas, zero));
      if (hn::AllFalse(d, meet)) continue;
      const V common = hn::Mul(height, width);
      const V share = hn::Div(common, hn::Sub(hn::Add(area, areas), common));
      if (!hn::AllFalse(d, hn::And(meet, hn::Gt(share, limit)))) return true;
    }
  return false;
}

bool any_above(const float* x, int64_t count, float threshold) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto limit = hn::Set(d, threshold);
  auto found = hn::Gt(hn::Zero(d), hn::Zero(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) found = hn::Or(found, hn::Gt(hn::LoadU(d, x + i), limit));
  bool any = !hn::AllFalse(d, found);
  for (; i < count; ++i) any |= x[i] > threshold;
  return any;
}

}  // namespace HWY_NAMESPACE
}  // namespace tombolo
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tombolo {
namespace {

class PickedBlocks {
 public:
  void clear() {
    blocks_.clear();
    count_ = 0;
  }
  void add(const ops::Box& box) {
    if (count_ % 16 == 0) blocks_.resize(blocks_.size() + 80, 0.0f);  // without area: never met
    float* at = blocks_.data() + count_ / 16 * 80 + count_ % 16;
    const float numbers[5] = {box.top, box.left, box.bottom, box.right, box.area()};
    for (size_t i = 0; i < 5; ++i) at[i * 16] = numbers[i];
    ++count_;
  }
  static bool any_above(const float* scores, int64_t count, float threshold) {
    using Fn = bool(const float*, int64_t, float);
    return TOMBOLO_TARGET(Fn, any_above)(scores, count, threshold);
  }
  bool overlaps(const ops::Box& box, float threshold) const {
    using Fn = bool(const float*, int64_t, const ops::Box&, float);
    return box.area() > 0 &&
           TOMBOLO_TARGET(Fn, overlaps_any)(
               blocks_.data(), static_cast<int64_t>(blocks_.size()) / 80, box, threshold);
  }

 private:
  std::vector<float> blocks_;
  size_t count_ = 0;
};

bool supports_select(const KernelQuery& q) {
  if (active_isa() == Isa::kScalar || q.inputs.size() < 2 || q.dtype(0) != DType::kFloat32 ||
      q.dtype(1) != DType::kFloat32)
    return false;
  const auto boxes = q.dims(0), scores = q.dims(1);
  if (boxes.size() != 3 || scores.size() != 3 || boxes[2] != 4 || boxes[0] != scores[0] ||
      boxes[1] != scores[2] || boxes[1] > INT32_MAX)
    return false;
  for (size_t i = 2; i < q.inputs.size(); ++i)
    if (q.has_input(i) &&
        (element_count(q.dims(i)) != 1 || q.dtype(i) != (i == 2 ? DType::kInt64 : DType::kFloat32)))
      return false;
  return true;
}

struct SelectState final : KernelState {
  ops::BoxSelection selection;
};

Result<std::unique_ptr<KernelState>> prepare_select(const PrepareContext& q) {
  auto state = std::make_unique<SelectState>();
  state->selection = {.batch = q.dims(0)[0],
                      .classes = q.dims(1)[1],
                      .count = q.dims(0)[1],
                      .filtered = q.has_input(4),
                      .centred = q.attributes.get_int("center_point_box", 0) != 0};
  return state;
}

Status run_select(KernelRun& run) {
  ops::BoxSelection s = run.state<SelectState>().selection;
  if (run.has_input(2)) s.most = run.data<int64_t>(2)[0];
  if (run.has_input(3)) s.iou_threshold = run.data<float>(3)[0];
  if (run.has_input(4)) s.score_threshold = run.data<float>(4)[0];
  const std::vector<int64_t> selected = ops::select_boxes<PickedBlocks>(
      s, run.data<float>(0), run.data<float>(1),
      [&](int64_t n, int64_t grain, auto&& body) { run.parallel_for(n, grain, body); });
  const int64_t dims[] = {static_cast<int64_t>(selected.size()) / 3, 3};
  TRY(Tensor * y, run.output(0, DType::kInt64, dims));
  std::copy(selected.begin(), selected.end(), y->data<int64_t>());
  return ok();
}

}  // namespace

KERNEL(select_boxes) = {
    .name = "select_boxes",
    .op = "NonMaxSuppression",
    .supports = supports_select,
    .prepare = prepare_select,
    .run = run_select,
};

}  // namespace tombolo
#endif
