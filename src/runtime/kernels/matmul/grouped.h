#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tombolo {

/// Things by the group that each belongs to: those of group g are members[first[g]] to
/// members[first[g + 1] - 1], in their order.
struct Grouped {
  std::vector<int64_t> first, members;

  /// `group_of` each thing, below `groups`.
  Grouped(std::span<const int64_t> group_of, int64_t groups)
      : first(static_cast<size_t>(groups) + 1), members(group_of.size()) {
    for (const int64_t group : group_of) ++first[static_cast<size_t>(group) + 1];
    for (size_t g = 1; g < first.size(); ++g) first[g] += first[g - 1];
    std::vector<int64_t> next = first;
    for (size_t i = 0; i < group_of.size(); ++i)
      members[static_cast<size_t>(next[static_cast<size_t>(group_of[i])]++)] =
          static_cast<int64_t>(i);
  }
  int64_t begin(int64_t group) const { return first[static_cast<size_t>(group)]; }
  int64_t end(int64_t group) const { return first[static_cast<size_t>(group) + 1]; }
};

}  // namespace tombolo
