#pragma once

#include <cstddef>
#include <cstdint>

namespace tombolo {

/// Matrices of at most so many rows go as many at a time as vectors have lanes.
inline constexpr int64_t kSmallMatrix = 32;
/// How many go at a time here.
int64_t small_matrices_together();
/// Numbers of double that the functions below need as `room`.
inline int64_t small_matrices_room(int64_t n) { return (n * n + 2 * n + 8) * 8; }
/// Of at most small_matrices_together() matrices [n][n], one after the other, in double:
/// elimination with the greatest pivot of each column. T: float or double.
template <typename T>
void small_determinants(int64_t n, int64_t count, const T* x, T* y, double* room);
/// The inverses, infinities where there is none. x may be y.
template <typename T>
void small_inverses(int64_t n, int64_t count, const T* x, T* y, double* room);

}  // namespace tombolo
