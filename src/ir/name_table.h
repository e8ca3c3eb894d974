#pragma once

// Name -> Value of one graph: open addressing in one block. A model of a million nodes asks it two
// million times, and hostile names must not collide on purpose, hence the seed.

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace tombolo {

class NameTable {
 public:
  NameTable() : seed_(reinterpret_cast<uintptr_t>(this) * kMultiplier) {}

  /// The slot of `name`: holds null when the name is new. Valid until the next call.
  Value*& slot(std::string_view name) {
    if ((count_ + 1) * 4 > slots_.size() * 3) grow();
    const uint64_t hash = hash_of(name);
    Slot& found = probe(slots_, name, hash);
    if (found.value == nullptr) {
      found.hash = hash;
      ++count_;  // the caller fills it
    }
    return found.value;
  }
  Value* find(std::string_view name) const {
    if (count_ == 0) return nullptr;
    return probe(const_cast<std::vector<Slot>&>(slots_), name, hash_of(name)).value;
  }

 private:
  struct Slot {
    Value* value = nullptr;
    uint64_t hash = 0;
  };
  static constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15ull;

  __extension__ typedef unsigned __int128 Wide;
  static uint64_t mix(uint64_t a, uint64_t b) {
    const auto product = static_cast<Wide>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  uint64_t hash_of(std::string_view name) const {
    uint64_t hash = seed_ ^ name.size();
    const char* at = name.data();
    size_t left = name.size();
    for (; left > 8; left -= 8, at += 8) {
      uint64_t word;
      std::memcpy(&word, at, 8);
      hash = mix(hash ^ word, kMultiplier);
    }
    uint64_t word = 0;
    if (left != 0) std::memcpy(&word, at, left);
    return mix(hash ^ word, kMultiplier ^ seed_);
  }
  static Slot& probe(std::vector<Slot>& slots, std::string_view name, uint64_t hash) {
    const size_t mask = slots.size() - 1;
    for (size_t at = (hash >> 32) & mask;; at = (at + 1) & mask) {
      Slot& slot = slots[at];
      if (slot.value == nullptr || (slot.hash == hash && slot.value->name() == name)) return slot;
    }
  }
  void grow() {
    std::vector<Slot> bigger(slots_.empty() ? 16 : slots_.size() * 2);
    const size_t mask = bigger.size() - 1;
    for (const Slot& slot : slots_) {
      if (slot.value == nullptr) continue;
      size_t at = (slot.hash >> 32) & mask;
      while (bigger[at].value != nullptr) at = (at + 1) & mask;
      bigger[at] = slot;
    }
    slots_ = std::move(bigger);
  }

  uint64_t seed_;
  std::vector<Slot> slots_;
  size_t count_ = 0;
};

}  // namespace tombolo
