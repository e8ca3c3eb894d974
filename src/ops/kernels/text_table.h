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
    const Words words = words_of(text);
    Slot& slot = slots_[slot_of(text, words)];
    if (slot.place >= 0 && !last_wins) return;
    slot = {text, words, place};
  }
  /// The place of a text in the list; -1 where it is none.
  int64_t find(std::string_view text) const {
    return slots_.empty() ? -1 : slots_[slot_of(text, words_of(text))].place;
  }

 private:
  /// A short text, whole: two that are as long are equal where these are. Of a longer one the hash
  /// of all but its end, and the end.
  struct Words {
    uint64_t first = 0, last = 0;
    bool operator==(const Words&) const = default;
  };
  struct Slot {
    std::string_view text;
    Words words;
    int64_t place = -1;
  };
  static constexpr size_t kShort = 16;

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
  static Words words_of(std::string_view text) {
    const size_t n = text.size();
    const char* at = text.data();
    if (n >= 8) {
      uint64_t first = load<uint64_t>(at);
      for (size_t i = 8; n > kShort && i + 8 < n; i += 8)
        first = mix(first, load<uint64_t>(at + i));
      return {first, load<uint64_t>(at + n - 8)};
    }
    if (n >= 4) return {load<uint32_t>(at), load<uint32_t>(at + n - 4)};
    if (n == 0) return {};
    const auto byte = [&](size_t i) { return uint64_t{static_cast<uint8_t>(at[i])}; };
    return {byte(0) << 16 | byte(n / 2) << 8 | byte(n - 1), 0};
  }
  /// The slot that holds the text, or the free one where it would stand. Half of them are free.
  size_t slot_of(std::string_view text, const Words& words) const {
    const size_t last = slots_.size() - 1, n = text.size();
    const uint64_t hash = mix(mix(n * 0xD6E8FEB86659FD93u, words.first), words.last);
    const auto holds = [&](const Slot& slot) {
      return slot.words == words && slot.text.size() == n && (n <= kShort || slot.text == text);
    };
    size_t at = hash & last;
    while (slots_[at].place >= 0 && !holds(slots_[at])) at = (at + 1) & last;
    return at;
  }

  std::vector<Slot> slots_;
};

}  // namespace tombolo::ops
