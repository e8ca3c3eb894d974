#include "ops/kernels/random.h"

#include <cmath>

namespace tombolo::ops {

// MT19937 as Matsumoto and Nishimura published it (1998), seeded by their init_genrand.
SeededStream::SeededStream(uint32_t seed) {
  for (uint32_t i = 0; i < state_.size(); ++i) {
    state_[i] = seed;
    seed = 1812433253u * (seed ^ (seed >> 30)) + i + 1;
  }
}

void SeededStream::refill() {
  constexpr size_t kSize = 624, kShift = 397;
  for (size_t i = 0; i < kSize; ++i) {
    const uint32_t joined = (state_[i] & 0x80000000u) | (state_[(i + 1) % kSize] & 0x7FFFFFFFu);
    state_[i] =
        state_[(i + kShift) % kSize] ^ (joined >> 1) ^ ((joined & 1) != 0 ? 0x9908B0DFu : 0);
  }
  at_ = 0;
}

uint32_t SeededStream::next() {
  if (at_ == state_.size()) refill();
  uint32_t y = state_[at_++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9D2C5680u;
  y ^= (y << 15) & 0xEFC60000u;
  return y ^ (y >> 18);
}

double SeededStream::next_unit() {
  const uint32_t high = next() >> 5, low = next() >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

double SeededStream::next_normal() {
  if (second_) {
    const double value = *second_;
    second_.reset();
    return value;
  }
  double x, y, square;
  do {
    x = 2 * next_unit() - 1;
    y = 2 * next_unit() - 1;
    square = x * x + y * y;
  } while (square >= 1 || square == 0);
  const double factor = std::sqrt(-2 * std::log(square) / square);
  second_ = factor * x;
  return factor * y;
}

std::optional<uint32_t> seed_of(const KernelContext& context) {
  if (!context.attributes.has("seed")) return std::nullopt;
  constexpr double kEnd = 4294967296.0;
  if (const std::optional<int64_t> seed = context.attributes.get_int("seed")) {
    if (*seed < 0 || *seed >= static_cast<int64_t>(kEnd)) return std::nullopt;
    return static_cast<uint32_t>(*seed);
  }
  const double seed = static_cast<double>(context.attributes.get_float("seed", NAN));
  if (!(seed > -1 && seed < kEnd)) return std::nullopt;
  return static_cast<uint32_t>(seed);
}

}  // namespace tombolo::ops
