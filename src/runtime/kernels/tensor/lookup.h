#pragma once

// Elements picked by index.

#include <cstdint>

namespace tombolo {

/// Whether all of n places lie in [0, length). Of int32_t and int64_t.
template <typename I>
bool all_places_inside(const I* index, int64_t n, int64_t length);
/// offsets[i] = i * step + place * stride, where place is index[i], counted from the end where it
/// is negative; all of them below 2^31. False if a place is outside [0, length); the offsets are
/// then of no use. Of int32_t and int64_t.
template <typename I>
bool place_offsets(const I* index, int64_t n, int64_t length, int64_t step, int64_t stride,
                   int32_t* offsets);

/// out[i] = sum over taps of weights[t * n + i] * from[offsets[t * n + i]]; taps of weight zero are
/// not looked at.
void blend_places(const float* from, const int32_t* offsets, const float* weights, int64_t taps,
                  int64_t n, float* out);

/// out[j] = sum over taps of weights[t] * from[rows[t] * n + j], for j < n: the same
/// with channels last.
void blend_rows_at(const float* from, const int32_t* rows, const float* weights, int64_t taps,
                   int64_t n, float* out);

/// The places of x[0..n) that are greater (or less) than `limit`, or equal where that is
/// `inclusive`, or NaN, written to `places`, which has room for a vector more; gives their number.
int64_t places_beyond(const float* x, int64_t n, float limit, bool inclusive, bool greater,
                      int32_t* places);
/// The first place from i on whose number is not at most (at least) `limit`; n where there is none.
template <typename T>
int64_t first_beyond(const T* x, int64_t i, int64_t n, T limit, bool greater);
/// A number that at least k of x[0..n) reach, and not many more: none of the others is among the k
/// greatest (or least). NaN does not count; the worst number of the type where there is none. Of
/// float, double, int32_t and int64_t.
template <typename T>
T bound_of_best(const T* x, int64_t n, int64_t k, bool greatest);

}  // namespace tombolo
