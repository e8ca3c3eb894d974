#pragma once

#include <cstddef>
#include <cstdint>

namespace tombolo {

/// Matrices up to so many rows are inverted several at a time: one waits for its pivots while the
/// others go on.
inline constexpr int64_t kInverseSmall = 48;
inline constexpr int64_t kInverseTogether = 4;
inline int64_t inverse_together(int64_t n) { return n <= kInverseSmall ? kInverseTogether : 1; }
/// Bytes of memory, 64-byte aligned, that invert_matrices needs.
size_t inverse_bytes(int64_t n);
/// Inverts at most inverse_together(n) matrices of n rows, in double: Gauss and Jordan, with the
/// greatest pivot of each column. One that is singular gives infinities. x may be y. T: float or
/// double.
template <typename T>
void invert_matrices(int64_t n, int64_t count, const T* x, T* y, std::byte* room);

}  // namespace tombolo
