#pragma once

// What constants, quantised ones included, say channel by channel about what they are added to or
// multiplied with. In double; nothing where a number is not finite.

#include <optional>
#include <vector>

#include "passes/rewriter.h"

namespace tombolo::passes {

/// A tensor whose axis `axis` of `rank` has so many channels.
struct Channels {
  size_t rank, axis;
  int64_t count;
};

/// Makes `constant`, broadcast against such a tensor, one number a channel. Nothing when it differs
/// along another axis, or would give the result more axes.
std::optional<std::vector<double>> by_channel(Rewriter& rewriter, const Value* constant,
                                              const Channels& channels);

/// y = factor x + shift, by channels.
struct Affine {
  std::vector<double> factor, shift;
};

/// What a BatchNormalization of `channels` constant statistics does.
std::optional<Affine> batch_norm_affine(Rewriter& rewriter, const Node& node, int64_t channels);

}  // namespace tombolo::passes
