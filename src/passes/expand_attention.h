#pragma once

#include "passes/passes.h"

namespace tombolo::passes {

/// Attention, MultiHeadAttention, QAttention and EmbedLayerNormalization of com.microsoft in
/// operators that have fast kernels: 1 where that was done, 0 where the node says more than they
/// can.
size_t expand_microsoft_attention(Rewriter& rewriter, Node& node);

}  // namespace tombolo::passes
