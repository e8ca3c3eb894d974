#pragma once

// What hides keys of attention, and whether the input `attn_mask` of Attention says it.

#include <optional>
#include <vector>

#include "passes/rewriter.h"

namespace tombolo::passes {

/// Scores vanish beside what is no higher.
constexpr double kScoresVanish = -1e12;

/// What becomes of scores s before their softmax: (hidden is `when` ? low : s + all `inside`) + all
/// `outside`, and `floor` at least.
struct AttentionMask {
  std::vector<Value*> inside, outside;
  Value* hidden = nullptr;
  double low = 0;
  bool when = true;
  std::optional<double> floor;  ///< so low that scores vanish beside it; not with `hidden`

  bool any() const { return hidden != nullptr || !outside.empty(); }
};

/// Attention gives zeros for a row whose keys are all masked by -infinity, where the nodes give
/// NaN: kMarked: such rows may come, and are NaN in the mask; kPartMarked: one part of the sum says
/// which.
enum class MaskFit : uint8_t { kNot, kAsItIs, kMarked, kPartMarked };

/// Whether a mask of type `dtype` says that for queries of shape `q` (four axes) and as many keys.
/// `blind_rows`: what rows without a key give does not matter.
MaskFit fit_of_mask(const Rewriter& rewriter, const AttentionMask& mask, DType dtype,
                    const SymShape& q, const SymDim& keys, bool blind_rows);

/// That mask, for queries `q` and keys `k` (four axes).
Result<Value*> make_mask(Rewriter& rewriter, Node& before, const AttentionMask& mask, Value* q,
                         Value* k, MaskFit fit);

}  // namespace tombolo::passes
