#pragma once

// Powers of integers.

#include <cstdint>

namespace tombolo {

/// y[i] = x[i]^exponent for exponent >= 0, wrapping; y may be x.
void power_u32(const uint32_t* x, uint32_t* y, int64_t n, int64_t exponent);
void power_u64(const uint64_t* x, uint64_t* y, int64_t n, int64_t exponent);

/// y[i] = x[i]^exponents[i], wrapping; y may be x. Of uint32_t and uint64_t.
template <typename T>
void powers(const T* x, const T* exponents, T* y, int64_t n);
/// The same of doubles that are whole numbers, truncated: what is too large for a double to be
/// exact, and exponents that are negative or not whole, by the library. y may be x.
void powers_of_whole(const double* x, const double* exponents, double* y, int64_t n);

}  // namespace tombolo
