#pragma once

#include <cstdint>

namespace tombolo {

/// to = from with the first 2 * half of its `size` features turned: pairs (a, b) become
/// (a cos - b sin, a sin + b cos). Pairs are neighbours where interleaved, else half apart.
void rotate_row(const float* from, float* to, int64_t size, int64_t half, const float* cosine,
                const float* sine, bool interleaved);

}  // namespace tombolo
