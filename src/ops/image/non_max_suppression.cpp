#include <algorithm>
#include <functional>
#include <vector>

#include "ops/infer_helpers.h"
#include "ops/kernels/compute.h"
#include "ops/kernels/order_key.h"
#include "ops/schema.h"

namespace tombolo::ops {

namespace {

struct Box {
  float top, left, bottom, right;
  float area() const { return (bottom - top) * (right - left); }
};

Box read_box(const float* numbers, bool centred) {
  if (centred)
    return {numbers[1] - numbers[3] / 2, numbers[0] - numbers[2] / 2, numbers[1] + numbers[3] / 2,
            numbers[0] + numbers[2] / 2};
  return {std::min(numbers[0], numbers[2]), std::min(numbers[1], numbers[3]),
          std::max(numbers[0], numbers[2]), std::max(numbers[1], numbers[3])};
}

/// Boxes that were kept, side by side and filled up with empty ones, so that a few are compared at
/// a time.
class KeptBoxes {
 public:
  void clear() {
    count_ = 0;
    numbers_.clear();
  }
  void add(const Box& box) {
    if (count_ % kGroup == 0) numbers_.resize(numbers_.size() + 5 * kGroup, 0.0f);
    float* to = numbers_.data() + count_ / kGroup * 5 * kGroup + count_ % kGroup;
    for (const float number : {box.top, box.left, box.bottom, box.right, box.area()}) {
      *to = number;
      to += kGroup;
    }
    ++count_;
  }
  bool any_overlaps(const Box& a, float threshold) const {
    const float area = a.area();
    if (!(area > 0)) return false;
    for (size_t i = 0; i < numbers_.size(); i += 5 * kGroup) {
      const float *top = numbers_.data() + i, *left = top + kGroup, *bottom = left + kGroup,
                  *right = bottom + kGroup, *areas = right + kGroup;
      int found = 0;
      for (size_t j = 0; j < kGroup; ++j) {
        const float height = std::min(a.bottom, bottom[j]) - std::max(a.top, top[j]);
        const float width = std::min(a.right, right[j]) - std::max(a.left, left[j]);
        const float common = height * width;
        found |= static_cast<int>(height > 0) & static_cast<int>(width > 0) &
                 static_cast<int>(areas[j] > 0) &
                 static_cast<int>(common / (area + areas[j] - common) > threshold);
      }
      if (found != 0) return true;
    }
    return false;
  }

 private:
  static constexpr size_t kGroup = 16;
  size_t count_ = 0;
  std::vector<float> numbers_;  ///< [group][top, left, bottom, right, area][kGroup]
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
  int64_t most = 0;
  if (context.has_input(2)) {
    TRY(const std::vector<int64_t> given, context.input_ints(2));
    if (given.size() > 1) return context.error("max_output_boxes_per_class must be a scalar");
    if (!given.empty()) most = given[0];
  }
  TRY(const float iou_threshold, threshold_input(context, 3, 0));
  TRY(const float score_threshold, threshold_input(context, 4, 0));
  const bool filtered = context.has_input(4);
  const bool centred = context.attributes.get_int("center_point_box", 0) != 0;
  std::vector<std::vector<int64_t>> kept_of(
      most > 0 && count > 0 ? static_cast<size_t>(batch * classes) : size_t{0});
  context.parallel_for(static_cast<int64_t>(kept_of.size()), 1, [&](int64_t begin, int64_t end) {
    std::vector<uint64_t> candidates;  // score and place in one number
    KeptBoxes better;
    for (int64_t n = begin; n < end; ++n) {
      const float* score = scores.data<float>() + n * count;
      const float* box = boxes.data<float>() + n / classes * count * 4;
      std::vector<int64_t>& kept = kept_of[static_cast<size_t>(n)];
      better.clear();
      // Each is written, and the next over it where it is none: no branch foresees a score.
      candidates.resize(static_cast<size_t>(count) + 1);
      size_t some = 0;
      for (int64_t i = 0; i < count; ++i) {
        candidates[some] =
            uint64_t{order_key(score[i])} << 32 | (UINT32_MAX - static_cast<uint32_t>(i));
        some += static_cast<size_t>(score[i] == score[i]) &
                static_cast<size_t>(!filtered | (score[i] > score_threshold));
      }
      candidates.resize(some);
      // The best ones first, sorted a part at a time: few are looked at as a rule.
      auto part = static_cast<size_t>(2 * std::clamp<int64_t>(most, 32, 1 << 19));
      for (size_t done = 0; done < candidates.size() && static_cast<int64_t>(kept.size()) < most;) {
        const size_t stop = std::min(candidates.size(), done + part);
        const auto first = candidates.begin() + static_cast<std::ptrdiff_t>(done),
                   last = candidates.begin() + static_cast<std::ptrdiff_t>(stop);
        if (stop < candidates.size())
          std::nth_element(first, last - 1, candidates.end(), std::greater<>());
        std::sort(first, last, std::greater<>());
        for (; done < stop && static_cast<int64_t>(kept.size()) < most; ++done) {
          const auto i = static_cast<int64_t>(UINT32_MAX - static_cast<uint32_t>(candidates[done]));
          const Box candidate = read_box(box + i * 4, centred);
          if (better.any_overlaps(candidate, iou_threshold)) continue;
          kept.push_back(i);
          better.add(candidate);
        }
        part *= 2;
      }
    }
  });
  std::vector<int64_t> selected;
  for (size_t n = 0; n < kept_of.size(); ++n)
    for (const int64_t i : kept_of[n])
      selected.insert(selected.end(),
                      {static_cast<int64_t>(n) / classes, static_cast<int64_t>(n) % classes, i});
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
