#include "ops/microsoft/block_weights.h"

#include <string>
#include <vector>

namespace tombolo::ops {

Result<Tensor> unpack_block_weights(const KernelContext& context, const BlockWeights& shape,
                                    const Tensor& codes, const Tensor& scales, const Tensor* zeros,
                                    const Tensor* group_of) {
  // No structured binding: clang 14 does not let a lambda take one.
  const int64_t n = shape.n, k = shape.k, blocks = shape.blocks, block = shape.block;
  const int bits = shape.bits;
  const int64_t row_bytes = blocks * (block * bits / 8);
  if (codes.dtype() != DType::kUInt8 || codes.size() != n * row_bytes)
    return context.error("B must hold " + std::to_string(n) + " rows of " +
                         std::to_string(row_bytes) + " bytes, is " + to_string(codes));
  if (scales.size() != n * blocks || !is_float(scales.dtype()))
    return context.error("scales must be " + dims_to_string({{n, blocks}}) + ", is " +
                         to_string(scales));
  const int64_t zero_bytes = (blocks * bits + 7) / 8;
  const bool packed_zeros = zeros != nullptr && zeros->dtype() == DType::kUInt8;
  if (zeros != nullptr && zeros->size() != (packed_zeros ? n * zero_bytes : n * blocks))
    return context.error("zero_points must be " +
                         dims_to_string({{n, packed_zeros ? zero_bytes : blocks}}) + ", is " +
                         to_string(*zeros));
  std::vector<int64_t> groups(static_cast<size_t>(k));
  if (group_of != nullptr && group_of->size() != k && group_of->size() != blocks * block)
    return context.error("g_idx must have " + std::to_string(k) + " elements, is " +
                         to_string(*group_of));
  for (int64_t i = 0; i < k; ++i) {
    const int64_t group = group_of != nullptr ? group_of->get_int64(i) : i / block;
    if (group < 0 || group >= blocks)
      return context.error("g_idx has the value " + std::to_string(group) + ", there are " +
                           std::to_string(blocks) + " blocks");
    groups[static_cast<size_t>(i)] = group;
  }
  TRY(const Tensor factors, as<float>(context, scales));
  Tensor float_zeros;
  if (zeros != nullptr && !packed_zeros) {
    TRY(float_zeros, as<float>(context, *zeros));
  }
  TRY(Tensor weights, context.allocate(DType::kFloat32, {{n, k}}));
  context.parallel_for(n, 1, [&](int64_t first, int64_t last) {
    std::vector<float> offsets(static_cast<size_t>(blocks));
    for (int64_t row = first; row < last; ++row) {
      for (int64_t j = 0; j < blocks; ++j) {
        float zero = static_cast<float>(1 << (bits - 1));
        if (packed_zeros)
          zero =
              static_cast<float>(packed_code(zeros->data<uint8_t>() + row * zero_bytes, j, bits));
        else if (zeros != nullptr)
          zero = float_zeros.data<float>()[row * blocks + j];
        offsets[static_cast<size_t>(j)] = zero;
      }
      const uint8_t* from = codes.data<uint8_t>() + row * row_bytes;
      float* to = weights.data<float>() + row * k;
      for (int64_t i = 0; i < k; ++i) {
        const int64_t group = groups[static_cast<size_t>(i)];
        to[i] =
            (static_cast<float>(packed_code(from, i, bits)) - offsets[static_cast<size_t>(group)]) *
            factors.data<float>()[row * blocks + group];
      }
    }
  });
  return weights;
}

}  // namespace tombolo::ops
