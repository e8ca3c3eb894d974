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

bool overlaps(const Box& a, const Box& b, float threshold) {
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(height > 0 && width > 0) || !(a.area() > 0 && b.area() > 0)) return false;
  const float common = height * width;
  return common / (a.area() + b.area() - common) > threshold;
}

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
    std::vector<Box> better;
    for (int64_t n = begin; n < end; ++n) {
      const float* score = scores.data<float>() + n * count;
      const float* box = boxes.data<float>() + n / classes * count * 4;
      std::vector<int64_t>& kept = kept_of[static_cast<size_t>(n)];
      candidates.clear();
      better.clear();
      for (int64_t i = 0; i < count; ++i)
        if (score[i] == score[i] && (!filtered || score[i] > score_threshold))
          candidates.push_back(uint64_t{order_key(score[i])} << 32 |
                               (UINT32_MAX - static_cast<uint32_t>(i)));
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
          if (std::any_of(better.begin(), better.end(), [&](const Box& other) {
                return overlaps(candidate, other, iou_threshold);
              }))
            continue;
          kept.push_back(i);
          better.push_back(candidate);
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
