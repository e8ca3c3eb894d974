#include <algorithm>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/select_boxes.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

bool overlaps(const Box& a, const Box& b, float threshold) {
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(height > 0 && width > 0) || !(a.area() > 0 && b.area() > 0)) return false;
  const float common = height * width;
  return common / (a.area() + b.area() - common) > threshold;
}

class PickedBoxes {
 public:
  void clear() { boxes_.clear(); }
  void add(const Box& box) { boxes_.push_back(box); }
  static size_t candidates(const BoxSelection& s, const float* scores, uint64_t* to) {
    return box_candidates(s, scores, 0, s.count, to);
  }
  bool overlaps(const Box& box, float threshold) const {
    return std::any_of(boxes_.begin(), boxes_.end(),
                       [&](const Box& other) { return ops::overlaps(box, other, threshold); });
  }

 private:
  std::vector<Box> boxes_;
};

/// A scalar float input, or `fallback`.
Result<float> threshold_input(const KernelContext& context, size_t index, float fallback) {
  TRY(Tensor value, optional_as<float>(context, index));
  if (absent(value) || value.size() == 0) return fallback;
  if (value.size() != 1)
    return context.error("a threshold must be a scalar, is " + to_string(value));
  return value.data<float>()[0];
}

Status run_non_max_suppression(KernelContext& context) {
  TRY(const Tensor* boxes_input, context.input(0));
  TRY(const Tensor* scores_input, context.input(1));
  if (boxes_input->rank() != 3 || scores_input->rank() != 3)
    return context.error("boxes and scores must have rank 3, are " + to_string(*boxes_input) +
                         " and " + to_string(*scores_input));
  const int64_t batch = boxes_input->dim(0), count = boxes_input->dim(1),
                classes = scores_input->dim(1);
  CHECK_OK(check_dims(context, "boxes", *boxes_input, {{batch, count, 4}}));
  CHECK_OK(check_dims(context, "scores", *scores_input, {{batch, classes, count}}));
  if (count > INT32_MAX) return context.error("there are too many boxes");
  TRY(Tensor boxes, as<float>(context, *boxes_input));
  TRY(Tensor scores, as<float>(context, *scores_input));
  BoxSelection s{.batch = batch, .classes = classes, .count = count};
  if (context.has_input(2)) {
    TRY(const std::vector<int64_t> given, context.input_ints(2));
    if (given.size() > 1) return context.error("max_output_boxes_per_class must be a scalar");
    if (!given.empty()) s.most = given[0];
  }
  TRY(s.iou_threshold, threshold_input(context, 3, 0));
  TRY(s.score_threshold, threshold_input(context, 4, 0));
  s.filtered = context.has_input(4);
  s.centred = context.attributes.get_int("center_point_box", 0) != 0;
  const std::vector<int64_t> selected = select_boxes<PickedBoxes>(
      s, boxes.data<float>(), scores.data<float>(),
      [&](int64_t n, int64_t grain, auto&& body) { context.parallel_for(n, grain, body); });
  TRY(Tensor * y,
      context.output(0, DType::kInt64, {{static_cast<int64_t>(selected.size()) / 3, 3}}));
  std::copy(selected.begin(), selected.end(), y->data<int64_t>());
  return ok();
}

}  // namespace

namespace {
Status infer_non_max_suppression(InferContext& context) {
  set_shape(context, 0, {context.host.fresh_symbol("selected"), SymDim(3)});
  return ok();
}
}  // namespace

OPERATOR(NonMaxSuppression) = {
    .name = "NonMaxSuppression",
    .doc = "picks boxes by score, dropping those that overlap a better one",
    .versions = {10, 11},
    .inputs =
        {
            {"boxes", "tensor(float)"},
            {"scores", "tensor(float)"},
            {"max_output_boxes_per_class", "tensor(int64)", kOptional},
            {"iou_threshold", "tensor(float)", kOptional},
            {"score_threshold", "tensor(float)", kOptional},
        },
    .outputs = {{"selected_indices", "tensor(int64)"}},
    .attributes = {{"center_point_box", 0}},
    .infer = infer_non_max_suppression,
    .reference = run_non_max_suppression,
};

}  // namespace tombolo::ops
