#pragma once

// Which experts a row goes to by the sparse mixer.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tombolo {

/// An expert, and what counts of its result.
struct MixedExpert {
  int64_t expert;
  double weight;
};

inline constexpr int64_t kMixedExperts = 2;

/// Twice the best of the `count` (>= 2) scores that are left, the lower expert where two are equal.
/// It weighs as a softmax over those left says whose distance from it is at most 2 % of the larger
/// magnitude: the evaluation form of the mixer of PhiMoE (Liu et al. 2024, arXiv:2409.12136), for
/// which MoE and QMoE have `use_sparse_mixer`.
inline std::array<MixedExpert, kMixedExperts> sparse_mixer(const float* scores, int64_t count) {
  constexpr double kNear = 0.02;
  std::array<MixedExpert, kMixedExperts> result;
  int64_t taken = -1;
  for (MixedExpert& each : result) {
    int64_t best = taken == 0 ? 1 : 0;
    for (int64_t e = best + 1; e < count; ++e)
      if (e != taken && scores[e] > scores[best]) best = e;
    const auto most = static_cast<double>(scores[best]);
    double sum = 0;
    for (int64_t e = 0; e < count; ++e) {
      const auto score = static_cast<double>(scores[e]);
      const bool far = (most - score) / std::max(std::fabs(score), most) > kNear;
      if (e != taken && !far) sum += std::exp(score - most);
    }
    each = {best, 1 / sum};
    taken = best;
  }
  return result;
}

}  // namespace tombolo
