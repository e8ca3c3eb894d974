#pragma once

// Attention with queries as lanes.

#include <cstddef>

#include "runtime/kernels/attention/attention.h"

namespace tombolo {

/// Whether scores may have keys as rows and queries as lanes: neither keys nor values are packed
/// then, which few queries would not repay, and nothing is done across lanes.
bool attention_turns(const AttentionShape& shape);
bool attention_turns(const AttentionShape& shape, const AttentionData& data);
/// 0 where it does not.
size_t attention_turned_floats(const AttentionShape& shape);
void run_attention_turned(const AttentionShape& shape, const AttentionData& data, float* scratch);

}  // namespace tombolo
