#pragma once

// Numbers as unsigned integers of the same order, by which the best of a line are selected digit by
// digit.

#include <cstdint>
#include <type_traits>

namespace tombolo {

template <typename T>
using OrderKey = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

/// The better number has the greater key: greater ones are better, or lesser ones. NaN is the
/// greatest number, both zeros are equal. Of float, double, int32_t and int64_t.
template <typename T>
void order_keys(const T* x, int64_t n, bool greatest, OrderKey<T>* keys);

/// out[i] = the greatest of keys[i], keys[i + n], keys[i + 2 n], ..., `rows` of them; i < n. Of
/// uint32_t and uint64_t.
template <typename K>
void greatest_keys(const K* keys, int64_t n, int64_t rows, K* out);

/// The places of keys that are at least `least`, in their order, written to `places`, which has
/// room for n and a vector more; gives their number. Of uint32_t and uint64_t.
template <typename K>
int64_t places_from(const K* keys, int64_t n, K least, int32_t* places);

}  // namespace tombolo
