#pragma once

#include <cstdint>

namespace tombolo {

/// How far apart the rows lie: whole vectors, and not all in one set of the caches.
inline int64_t inverse_step(int64_t n) { return (n + 7) / 8 * 8 + (n >= 32 ? 8 : 0); }
/// Columns of large matrices that are worked on before all rows are.
inline constexpr int64_t kInverseBlock = 8;
/// Numbers that `factors` has room for.
inline int64_t inverse_room(int64_t n) { return kInverseBlock * (n + inverse_step(n)); }
/// Inverts a matrix of n rows, inverse_step(n) apart, in place: Gauss and Jordan, with the greatest
/// pivot of each column. `factors` has room for inverse_room(n) numbers, `order` for n. False where
/// the matrix is singular.
bool invert(int64_t n, double* matrix, double* factors, int64_t* order);

}  // namespace tombolo
