#pragma once

// Attention whose queries, keys and values come from one projection: Attention, QAttention,
// PackedAttention, DecoderMaskedSelfAttention.

#include <algorithm>
#include <utility>

#include "ops/infer_context.h"
#include "ops/microsoft/heads.h"

namespace tombolo::ops {

/// Sizes of the projection's parts, checked to be multiples of the number of heads.
struct Projection {
  int64_t heads = 0;
  int64_t q = 0, k = 0, v = 0;  ///< columns
  int64_t width() const { return q + k + v; }
};

/// Checks input [batch, steps, hidden] against weights [hidden, q + k + v]; the attribute
/// qkv_hidden_sizes tells the parts, else they are thirds.
Result<Projection> read_projection(const KernelContext& context, const Tensor& input,
                                   const Tensor& weights, int64_t heads);

struct Projected {
  Tensor q, k, v;  ///< [batch, heads, steps, size]
};

/// Splits [batch, steps, q + k + v] into heads.
template <typename T>
Result<Projected> split_projection(const KernelContext& context, const Tensor& all,
                                   const Projection& widths) {
  const int64_t batch = all.dim(0), steps = all.dim(1), width = widths.width();
  const int64_t parts[] = {widths.q, widths.k, widths.v};
  Tensor made[3];
  int64_t offset = 0;
  for (int which = 0; which < 3; ++which) {
    const int64_t size = parts[which] / widths.heads;
    TRY(made[which], context.allocate(dtype_of<T>(), {{batch, widths.heads, steps, size}}));
    T* to = made[which].template data<T>();
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < widths.heads; ++h)
        for (int64_t s = 0; s < steps; ++s)
          to = std::copy_n(all.data<T>() + (b * steps + s) * width + offset + h * size, size, to);
    offset += parts[which];
  }
  return Projected{made[0], made[1], made[2]};
}

/// input w + bias, split. `bias` may be undefined.
template <typename T>
Result<Projected> project(const KernelContext& context, const Tensor& input, const Tensor& w,
                          const Tensor& bias, const Projection& widths) {
  const int64_t batch = input.dim(0), steps = input.dim(1), hidden = input.dim(2);
  const int64_t width = widths.width();
  if (!absent(bias)) CHECK_OK(check_dims(context, "bias", bias, {{width}}));
  TRY(Tensor all, context.allocate(dtype_of<T>(), {{batch, steps, width}}));
  for (int64_t row = 0; row < batch * steps; ++row) {
    T* to = all.data<T>() + row * width;
    if (absent(bias))
      std::fill_n(to, width, T{});
    else
      std::copy_n(bias.data<T>(), width, to);
  }
  parallel_gemm<T>(context, batch * steps, width, hidden, {input.data<T>(), hidden, 1},
                   {w.data<T>(), width, 1}, all.data<T>(), width, true);
  return split_projection<T>(context, all, widths);
}

/// Where the other arguments lie; -1: the operator has none. cache_indirection follows `beams`.
struct ProjectedPorts {
  int mask = -1, past = -1, bias = -1, past_length = -1, present = -1, beams = -1;
};

/// The rest of the operator: rotation, cache [2, batch, heads, length, size], masks, attention.
template <typename T>
Status attend_projected(KernelContext& context, Projected parts, const Projection& widths,
                        DType type, const ProjectedPorts& ports);

extern template Status attend_projected<float>(KernelContext&, Projected, const Projection&, DType,
                                               const ProjectedPorts&);
extern template Status attend_projected<double>(KernelContext&, Projected, const Projection&, DType,
                                                const ProjectedPorts&);

/// Shapes of the output and of the present state. `past` and `past_length`: input positions.
Status infer_projected(InferContext& context, size_t past, size_t past_length);

}  // namespace tombolo::ops
