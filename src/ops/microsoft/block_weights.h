#pragma once

// Weights of a few bits in blocks that share a scale: what MatMulNBits and its relatives hold.

#include "ops/kernels/compute.h"

namespace tombolo::ops {

/// Codes of 1, 2, 4 or 8 bits, the lowest bits of a byte first.
inline unsigned packed_code(const uint8_t* bytes, int64_t index, int bits) {
  const int64_t bit = index * bits;
  return static_cast<unsigned>(bytes[bit / 8]) >> (bit % 8) & ((1u << bits) - 1);
}

struct BlockWeights {
  int64_t n = 0, k = 0, blocks = 0, block = 0;
  int bits = 4;
};

/// Weights [n, k] as float from codes [n, blocks, block * bits / 8], scales [n, blocks], zero
/// points (absent: 2^(bits - 1); uint8: codes packed for each row; floats: [n, blocks]) and the
/// block of each of the k columns (absent: in order).
Result<Tensor> unpack_block_weights(const KernelContext& context, const BlockWeights& shape,
                                    const Tensor& codes, const Tensor& scales, const Tensor* zeros,
                                    const Tensor* group_of);

}  // namespace tombolo::ops
