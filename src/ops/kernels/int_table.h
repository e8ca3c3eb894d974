#pragma once

// Where an integer stands in a list: by a table where the list covers its range well, else by hash.

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace tombolo::ops {

class IntTable {
 public:
  /// Of equal keys the first counts, or the last.
  explicit IntTable(std::span<const int64_t> keys, bool last_wins = false) {
    if (keys.empty()) return;
    const auto [low, high] = std::minmax_element(keys.begin(), keys.end());
    least_ = *low;
    const auto range = static_cast<uint64_t>(*high) - static_cast<uint64_t>(*low);
    // One place more, for all that lie beyond: keys come in no order that a branch could foresee.
    if (range <= 4 * static_cast<uint64_t>(keys.size()) + 1024) table_.assign(range + 2, -1);
    for (size_t i = 0; i < keys.size(); ++i) {
      int64_t& place =
          table_.empty() ? places_.try_emplace(keys[i], -1).first->second : table_[offset(keys[i])];
      if (place < 0 || last_wins) place = static_cast<int64_t>(i);
    }
  }
  /// The place of a key in the list; -1 where it is none.
  int64_t find(int64_t key) const {
    if (!table_.empty()) return table_[std::min(offset(key), table_.size() - 1)];
    const auto found = places_.find(key);
    return found == places_.end() ? -1 : found->second;
  }
  /// done(place) for each key in turn: what does not change stays in registers.
  template <typename Done>
  void find_each(std::span<const int64_t> keys, Done&& done) const {
    if (table_.empty()) {
      for (const int64_t key : keys) done(find(key));
      return;
    }
    const int64_t* table = table_.data();
    const auto least = static_cast<uint64_t>(least_), beyond = uint64_t{table_.size() - 1};
    for (const int64_t key : keys)
      done(table[std::min(static_cast<uint64_t>(key) - least, beyond)]);
  }

 private:
  size_t offset(int64_t key) const {
    return static_cast<size_t>(static_cast<uint64_t>(key) - static_cast<uint64_t>(least_));
  }
  int64_t least_ = 0;
  std::vector<int64_t> table_;
  std::unordered_map<int64_t, int64_t> places_;
};

}  // namespace tombolo::ops
