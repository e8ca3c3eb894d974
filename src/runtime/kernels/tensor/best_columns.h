#pragma once

// The few best numbers down each of many columns.

#include <cstdint>

namespace tombolo {

inline constexpr int64_t kBestOfColumns = 8;  ///< so many at most

/// places[r * place_step + j] = the place in column j of its r-th best number, r < k: the greatest
/// (or least) first, of equals the first; NaN is greater than all numbers. `width` columns of n
/// numbers, which are `step` apart; of float, double, int32_t or int64_t. k is at most n.
template <typename T>
void best_of_columns(const T* x, int64_t n, int64_t step, int64_t width, int64_t k, bool greatest,
                     int32_t* places, int64_t place_step);

}  // namespace tombolo
