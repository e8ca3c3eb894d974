#pragma once

// Where an integer stands in a list: by a table where the list covers its range well, else by hash.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace tombolo::ops {

class IntTable {
 public:
  IntTable() = default;
  /// Of equal keys the first counts, or the last.
  explicit IntTable(std::span<const int64_t> keys, bool last_wins = false) {
    if (keys.empty()) return;
    const auto [low, high] = std::minmax_element(keys.begin(), keys.end());
    least_ = *low;
    const auto range = static_cast<uint64_t>(*high) - static_cast<uint64_t>(*low);
    // One place more, for all that lie beyond: keys come in no order that a branch could foresee.
    if (range <= 4 * static_cast<uint64_t>(keys.size()) + 1024)
      table_.assign(range + 2, -1);
    else
      slots_.resize(std::bit_ceil((keys.size() <= 4096 ? 8 : 2) * keys.size()));
    shift_ = 64 - std::countr_zero(std::max<size_t>(slots_.size(), 2));
    for (size_t i = 0; i < keys.size(); ++i) {
      if (slots_.empty()) {
        int64_t& place = table_[offset(keys[i])];
        if (place < 0 || last_wins) place = static_cast<int64_t>(i);
        continue;
      }
      Slot& slot = slots_[slot_of(keys[i])];
      slot.key = keys[i];
      if (slot.place < 0 || last_wins) slot.place = static_cast<int64_t>(i);
    }
  }
  /// The place of a key in the list; -1 where it is none.
  int64_t find(int64_t key) const {
    if (!table_.empty()) return table_[std::min(offset(key), table_.size() - 1)];
    return slots_.empty() ? -1 : slots_[slot_of(key)].place;
  }
  /// done(place) for key(i) of each i < count in turn: what does not change stays in registers.
  template <typename Key, typename Done>
  void find_each(int64_t count, Key&& key, Done&& done) const {
    if (table_.empty()) {
      for (int64_t i = 0; i < count; ++i) done(find(key(i)));
      return;
    }
    const int64_t* table = table_.data();
    const auto least = static_cast<uint64_t>(least_), beyond = uint64_t{table_.size() - 1};
    for (int64_t i = 0; i < count; ++i)
      done(table[std::min(static_cast<uint64_t>(key(i)) - least, beyond)]);
  }
  template <typename Done>
  void find_each(std::span<const int64_t> keys, Done&& done) const {
    find_each(
        static_cast<int64_t>(keys.size()), [&](int64_t i) { return keys.data()[i]; }, done);
  }

 private:
  struct Slot {
    int64_t key = 0, place = -1;
  };

  size_t offset(int64_t key) const {
    return static_cast<size_t>(static_cast<uint64_t>(key) - static_cast<uint64_t>(least_));
  }
  /// The slot that holds the key, or the free one where it would stand. Half of them are free, or
  /// most.
  size_t slot_of(int64_t key) const {
    size_t at = (static_cast<uint64_t>(key) * 0x9E3779B97F4A7C15u) >> shift_;
    while (slots_[at].place >= 0 && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  int64_t least_ = 0;
  int shift_ = 63;
  std::vector<int64_t> table_;
  std::vector<Slot> slots_;
};

}  // namespace tombolo::ops
