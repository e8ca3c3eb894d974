#pragma once

// LRN on channels first and on channels in blocks of 16 (ops/tombolo/block.cpp).

#include <cstdint>

namespace tombolo {

/// y[c] = x[c] * (bias + factor * sum of the squares of x[c - before] to x[c + after])^-beta
struct Lrn {
  int64_t before = 0, after = 0;  ///< at most the number of channels
  float factor = 0, bias = 1, beta = 0.75f;
};

/// `pixels` numbers of each channel; channels are `plane` apart.
void lrn_run(const Lrn& lrn, const float* x, float* y, int64_t channels, int64_t plane,
             int64_t pixels);
/// The same of pixels whose channels lie by sixteens, `plane` apart. Lanes beyond the last channel
/// do not count. y may be x.
void lrn_blocks(const Lrn& lrn, const float* x, float* y, int64_t channels, int64_t plane,
                int64_t pixels);

}  // namespace tombolo
