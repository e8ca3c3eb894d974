#pragma once

// The operators that passes of kRuntimeLevel write for the runtime, in domain ai.tombolo. They are
// declared, with a reference kernel, in src/ops/tombolo; they never stand in a file.
//
//   Conv   (X, W, B?, Z?)      Y = act(Conv(X, W) + B + Z)
//          All attributes of Conv. Z has the shape of Y.
//   MatMul (A, B, bias?, Z?)   Y = act(Transpose(alpha A B + bias) + Z)
//          perm_a, perm_b: a Transpose of A and B before the product, perm_y the one behind it.
//          transA, transB exchange the last two axes then; alpha. bias has one element or one a
//          column (rank 0 or 1); Z has the shape of Y.
//   GatherMatMul (A, B, I)     Y[t] = A[t] B[I[t]]; `transB` exchanges the last two axes of B.
//          A has a rank of 3; I is a list of as many, or either is one.
//   ScatterRows (data, I, updates)   ScatterElements along `axis` with one index for each row: I is
//          a list; `reduction` as there.
//   Elementwise (X, ...)       several operators of single elements (ops/tombolo/elementwise.h)
//   BlockChannels (X), UnblockChannels (X)   [N, C, ...] to [N, C / 16, ..., 16] and back
//   BlockConcat (X...)                       Concat of such, of so many `channels` each
//   BlockConvTranspose (X, W, B?)            ConvTranspose on such
//   BlockLRN (X)                             LRN on such, of so many `channels`
//   BlockConv (X, W, B?, Z?), BlockPool (X)  Conv above and pools on such tensors: channels in
//          blocks of 16, the last one filled up with what nobody reads. `plain`: X is not in
//          blocks.
//
//   QLinearConvLast (x, ..., B?, Z?, ...)     QLinearConv with channels last, between codes `low`
//   and
//          `high`; Z, under its own scale, is added to the rounded result, and that rounded again.
//
//   QLinearConvTranspose (x, ..., B?)         the same of ConvTranspose, without Z; channels last
//          where `channels_last`
//
//   ConvIntegerToFloat (x, w, x_scale, w_scale, x_zero_point, w_zero_point, B?)   ConvInteger of x
//          with channels last, times both scales, plus B for each output; the result has channels
//          first.
//
//   QLinearAffine (x, factor, shift, y_zero_point)   codes times a factor plus a shift for each
//          channel (axis 1, or the last one where `channels_last`), rounded, between `low` and
//          `high`
//
//   QLinearInstanceNormalization (x, scale, B, y_zero_point)   InstanceNormalization of codes of
//          scale `x_scale` (a zero point changes nothing), quantised by `y_scale`; else as before
//
//   ByteTable (X, table)   a function of single bytes: element X of the 256 of `table`, the bits of
//   X
//          read as a number without sign
//
// W of Conv, BlockConv and MatMul may be a constant of float16 or bfloat16 where the rest is
// float32. act: attribute `activation`, empty for none, with its parameters in `activation_params`:
//   Relu; Clip (low, high); LeakyRelu (alpha); Sigmoid; Tanh; HardSigmoid (alpha, beta); HardSwish;
//   Swish (alpha); Gelu; GeluTanh; Elu (alpha); Softplus; Mish.
// Only float32: what has no fast kernel is better left in parts.

#include <cstdint>
#include <vector>

#include "ir/storage.h"

namespace tombolo::passes {

inline constexpr Text kMicrosoft = "com.microsoft", kOwn = "ai.tombolo";

/// Whether ConvIntegerToFloat takes weights of these dimensions: of few outputs a group most of
/// what it multiplies at once would be empty.
inline bool convolves_integers(const std::vector<int64_t>& w, int64_t groups) {
  constexpr int64_t kFewOutputs = 8;
  return w.size() >= 3 && w.size() <= 5 && groups >= 1 && w[0] / groups >= kFewOutputs;
}

}  // namespace tombolo::passes
