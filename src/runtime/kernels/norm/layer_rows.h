#pragma once

// Rows of floats normalised, short ones several at a time: what a row of one or two vectors takes
// is mostly its two sums across lanes.

#include <cstdint>

namespace tombolo {

/// y = (x - mean) / sqrt(variance + epsilon) * scale + bias for each of `rows` rows of n floats,
/// one behind the other; with `rms` the mean counts as zero. y may be x. A null scale or bias is
/// one or zero; means and inverses (the reciprocals of the roots), where not null, get one number a
/// row.
void normalize_rows(bool rms, const float* x, int64_t rows, int64_t n, float epsilon,
                    const float* scale, const float* bias, float* y, float* means, float* inverses);

/// The same of planes [begin, end) of n floats, from `x` on, with one scale and one bias for each
/// channel: plane p is of channel p % channels.
void normalize_planes(const float* x, int64_t begin, int64_t end, int64_t n, float epsilon,
                      const float* scale, const float* bias, int64_t channels, float* y);

}  // namespace tombolo
