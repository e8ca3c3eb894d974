#pragma once

// What hides keys of attention, and whether the input `attn_mask` of Attention says it.

#include "passes/rewriter.h"

namespace tombolo::passes {

/// What becomes of scores s before their softmax: s + bias, and `low` where `hidden` is `when`.
struct AttentionMask {
  Value *bias = nullptr, *hidden = nullptr;
  double low = 0;
  bool when = true;
  bool bias_last = false;  ///< what is hidden is low + bias

  bool any() const { return bias != nullptr || hidden != nullptr; }
};

/// Whether a mask of type `dtype` says that for queries of shape `q` (four axes) and as many keys.
/// Attention gives zeros for a row whose keys are all masked by -infinity, where the nodes give
/// NaN: `blind_rows`: that does not matter.
bool mask_fits(const Rewriter& rewriter, const AttentionMask& mask, DType dtype, const SymShape& q,
               const SymDim& keys, bool blind_rows);

/// That mask, for queries `q`.
Result<Value*> make_mask(Rewriter& rewriter, Node& before, const AttentionMask& mask, Value* q);

}  // namespace tombolo::passes
