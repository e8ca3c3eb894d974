#pragma once

// NonMaxSuppression but for how a box is compared with those that were picked before.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/kernels/order_key.h"

namespace tombolo::ops {

struct Box {
  float top, left, bottom, right;
  float area() const { return (bottom - top) * (right - left); }
};

inline Box read_box(const float* numbers, bool centred) {
  if (centred)
    return {numbers[1] - numbers[3] / 2, numbers[0] - numbers[2] / 2, numbers[1] + numbers[3] / 2,
            numbers[0] + numbers[2] / 2};
  return {std::min(numbers[0], numbers[2]), std::min(numbers[1], numbers[3]),
          std::max(numbers[0], numbers[2]), std::max(numbers[1], numbers[3])};
}

/// Moves some of the greatest of n distinct keys before all others, about `wanted` of them, and
/// gives how many: at least one. A sample says where to part them, by which no branch is foreseen
/// wrongly.
inline size_t greatest_first(uint64_t* keys, size_t n, size_t wanted) {
  constexpr size_t kSample = 32;
  const auto descending = [](uint64_t a, uint64_t b) { return a > b; };
  if (n <= wanted) return n;
  size_t some = n;
  if (n / 2 >= wanted && n >= 4 * kSample) {
    uint64_t sample[kSample];
    for (size_t i = 0; i < kSample; ++i) sample[i] = keys[i * (n / kSample)];
    std::sort(sample, sample + kSample, descending);
    const uint64_t least = sample[wanted * kSample / n + 1];
    some = 0;
    for (size_t i = 0; i < n; ++i) {
      const uint64_t key = keys[i];
      keys[i] = keys[some];
      keys[some] = key;
      some += static_cast<size_t>(key >= least);
    }
  }
  if (some <= 3 * wanted) return some;
  std::nth_element(keys, keys + wanted - 1, keys + some, descending);
  return wanted;
}

struct BoxSelection {
  int64_t batch = 0, classes = 0, count = 0;
  int64_t most = 0;  ///< of each class
  float iou_threshold = 0, score_threshold = 0;
  bool filtered = false, centred = false;
};

/// Score and place of a box in one number: the greatest has the best score, and of equals the first
/// place.
inline uint64_t box_candidate(float score, int64_t place) {
  return uint64_t{order_key_of_number(score)} << 32 | (UINT32_MAX - static_cast<uint32_t>(place));
}
/// Those of the scores that count, of places [first, last), to `to`; how many. Each is written, and
/// the next over it where it is none: no branch foresees a score.
inline size_t box_candidates(const BoxSelection& s, const float* scores, int64_t first,
                             int64_t last, uint64_t* to) {
  const bool all = !s.filtered;
  const float limit = s.score_threshold;
  size_t some = 0;
  for (int64_t i = first; i < last; ++i) {
    const float score = scores[i];
    to[some] = box_candidate(score, i);
    some += static_cast<size_t>(score == score) & static_cast<size_t>(all | (score > limit));
  }
  return some;
}
constexpr int64_t kCandidateRoom = 32;  ///< numbers that may be written behind all candidates

/// [batch, class, box] of each box that is picked. `Picked` has clear(), add(box) and
/// overlaps(box, threshold), with any of them; candidates(selection, scores, to) is
/// box_candidates() of all, with room behind; parallel_for(count, grain, body).
template <typename Picked, typename ParallelFor>
std::vector<int64_t> select_boxes(const BoxSelection& s, const float* boxes, const float* scores,
                                  ParallelFor&& parallel_for) {
  const int64_t lines = s.most > 0 && s.count > 0 ? s.batch * s.classes : 0;
  std::vector<std::vector<int32_t>> kept_of(static_cast<size_t>(lines));
  parallel_for(lines, 1, [&](int64_t begin, int64_t end) {
    std::vector<uint64_t> candidates;  // score and place in one number
    Picked better;
    const auto descending = [](uint64_t a, uint64_t b) { return a > b; };
    for (int64_t n = begin; n < end; ++n) {
      const float* score = scores + n * s.count;
      const float* box = boxes + n / s.classes * s.count * 4;
      std::vector<int32_t>& kept = kept_of[static_cast<size_t>(n)];
      kept.reserve(static_cast<size_t>(std::min<int64_t>({s.most, s.count, 64})));
      better.clear();
      candidates.resize(static_cast<size_t>(s.count + kCandidateRoom));
      const size_t some = Picked::candidates(s, score, candidates.data());
      candidates.resize(some);
      // The best ones first, sorted a part at a time: few are looked at as a rule.
      auto part = static_cast<size_t>(2 * std::clamp<int64_t>(s.most, 12, 1 << 19));
      for (size_t done = 0;
           done < candidates.size() && static_cast<int64_t>(kept.size()) < s.most;) {
        uint64_t* const first = candidates.data() + done;
        const size_t stop = done + greatest_first(first, candidates.size() - done, part);
        std::sort(first, candidates.data() + stop, descending);
        for (; done < stop && static_cast<int64_t>(kept.size()) < s.most; ++done) {
          const auto i = static_cast<int32_t>(UINT32_MAX - static_cast<uint32_t>(candidates[done]));
          const Box candidate = read_box(box + int64_t{i} * 4, s.centred);
          if (better.overlaps(candidate, s.iou_threshold)) continue;
          kept.push_back(i);
          better.add(candidate);
        }
        part *= 2;
      }
    }
  });
  size_t count = 0;
  for (const auto& kept : kept_of) count += kept.size();
  std::vector<int64_t> selected(3 * count);
  int64_t* to = selected.data();
  for (int64_t n = 0; n < lines; ++n) {
    const int64_t image = n / s.classes, of_class = n % s.classes;
    for (const int32_t i : kept_of[static_cast<size_t>(n)]) {
      to[0] = image;
      to[1] = of_class;
      to[2] = i;
      to += 3;
    }
  }
  return selected;
}

}  // namespace tombolo::ops
