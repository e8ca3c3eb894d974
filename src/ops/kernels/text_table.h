#pragma once

// Where a text stands in a list, by hash. The texts of the list must outlive the table.

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace tombolo::ops {

class TextTable {
 public:
  TextTable() = default;
  explicit TextTable(size_t count) : slots_(std::bit_ceil(2 * count + 2)) {}

  /// Adds a text at `place`. Of equal ones the first counts, or the last. At most `count` of them.
  void add(std::string_view text, int64_t place, bool last_wins = false) {
    const uint64_t hash = hash_of(text);
    Slot& slot = slots_[slot_of(text, hash)];
    if (slot.place >= 0 && !last_wins) return;
    slot = {text, hash, place};
  }
  /// The place of a text in the list; -1 where it is none.
  int64_t find(std::string_view text) const {
    return slots_.empty() ? -1 : slots_[slot_of(text, hash_of(text))].place;
  }

 private:
  struct Slot {
    std::string_view text;
    uint64_t hash = 0;
    int64_t place = -1;
  };

  template <typename T>
  static uint64_t load(const char* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  static uint64_t mix(uint64_t hash, uint64_t word) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(hash ^ word) * 0x9E3779B97F4A7C15u;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  /// Words of eight bytes, the last of which overlaps the one before.
  static uint64_t hash_of(std::string_view text) {
    const size_t n = text.size();
    const char* at = text.data();
    uint64_t hash = n * 0xD6E8FEB86659FD93u;
    if (n >= 8) {
      for (size_t i = 0; i + 8 < n; i += 8) hash = mix(hash, load<uint64_t>(at + i));
      return mix(hash, load<uint64_t>(at + n - 8));
    }
    if (n >= 4) return mix(hash, load<uint32_t>(at) << 32 | load<uint32_t>(at + n - 4));
    if (n == 0) return mix(hash, 0);
    const auto byte = [&](size_t i) { return uint64_t{static_cast<uint8_t>(at[i])}; };
    return mix(hash, byte(0) << 16 | byte(n / 2) << 8 | byte(n - 1));
  }
  /// The slot that holds the text, or the free one where it would stand. Half of them are free.
  size_t slot_of(std::string_view text, uint64_t hash) const {
    const size_t last = slots_.size() - 1;
    size_t at = hash & last;
    while (slots_[at].place >= 0 && (slots_[at].hash != hash || slots_[at].text != text))
      at = (at + 1) & last;
    return at;
  }

  std::vector<Slot> slots_;
};

}  // namespace tombolo::ops
