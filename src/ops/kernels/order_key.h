#pragma once

// Floats as numbers of the same order, so that a place can be sorted together with its number.

#include <bit>
#include <cstdint>

namespace tombolo::ops {

/// A number whose order is that of the floats, NaN the greatest, both zeros equal.
inline uint32_t order_key(float x) {
  if (x != x) return UINT32_MAX;
  const auto bits = std::bit_cast<uint32_t>(x == 0 ? 0.0f : x);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}

/// The same of what is no NaN, without a branch.
inline uint32_t order_key_of_number(float x) {
  const auto bits = std::bit_cast<uint32_t>(x + 0.0f);  // both zeros are the positive one
  return bits ^ (static_cast<uint32_t>(static_cast<int32_t>(bits) >> 31) | 0x80000000u);
}

/// The float of a key.
inline float float_of_order_key(uint32_t key) {
  return std::bit_cast<float>((key >> 31) != 0 ? key ^ 0x80000000u : ~key);
}

inline uint64_t order_key(double x) {
  if (x != x) return UINT64_MAX;
  const auto bits = std::bit_cast<uint64_t>(x == 0 ? 0.0 : x);
  return (bits >> 63) != 0 ? ~bits : bits | uint64_t{1} << 63;
}
inline uint64_t order_key(int64_t x) {
  return static_cast<uint64_t>(x) ^ uint64_t { 1 } << 63;
}

}  // namespace tombolo::ops
