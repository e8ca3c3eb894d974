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
  uint32_t* state = state_.data();
  // Each word needs one that is kShift further on, which is an old one first and then a new one.
  const auto renew = [state](size_t i, size_t next, size_t far) {
    const uint32_t joined = (state[i] & 0x80000000u) | (state[next] & 0x7FFFFFFFu);
    state[i] = state[far] ^ (joined >> 1) ^ (-(joined & 1) & 0x9908B0DFu);
  };
  for (size_t i = 0; i < kSize - kShift; ++i) renew(i, i + 1, i + kShift);
  for (size_t i = kSize - kShift; i < kSize - 1; ++i) renew(i, i + 1, i + kShift - kSize);
  renew(kSize - 1, 0, kShift - 1);
  for (size_t i = 0; i < kSize; ++i) {
    uint32_t y = state[i];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9D2C5680u;
    y ^= (y << 15) & 0xEFC60000u;
    words_[i] = y ^ (y >> 18);
  }
  at_ = 0;
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
